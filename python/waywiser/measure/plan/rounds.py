"""In which order the curves of a plan get their sizes, if there is no time for all of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from waywiser.measure.plan.points import PlannedPoint, Priority

PRINCIPAL_ROUNDS = 4
"""Sizes that every principal curve gets for each one of a secondary curve."""


def coverage_rounds(points: Sequence[PlannedPoint]) -> dict[str, int]:
    """The round in which a curve asks for each of its sizes, by identity: curves take turns, and
    each adds the size that is furthest from those it has. Sizes that the other curves of its class
    have come first: they are compared there. A size at which another method of the same copy is
    planned counts as twice as far, for the same reason."""
    found: dict[str, int] = {}
    shared = _shared_sizes(points)
    of_class: dict[str, set[int]] = defaultdict(set)
    for point in points:
        if point.like and not point.conditional:
            of_class[point.like].add(point.size)
    for _, group in groupby(points, key=lambda point: point.curve.text):
        curve = list(group)
        first = [point.size for point in curve if point.priority <= Priority.REPRESENTATIVE]
        rest = {p.size: p for p in curve if p.priority > Priority.REPRESENTATIVE}
        # A bandwidth before a latency.
        found |= {p.identity: int(p.size < max(first)) for p in curve if p.size in first}
        certain = [size for size, point in rest.items() if not point.conditional]
        late = [size for size, point in rest.items() if point.conditional]
        text = curve[0].curve.text
        own = shared.get(text, frozenset())
        order = _coverage_order(of_class[text] & set(certain), first)
        order += _coverage_order(set(certain) - set(order), [*first, *order], own)
        order += _coverage_order(late, [*first, *certain], own)
        for turn, size in enumerate(order):
            point = rest[size]
            found[point.identity] = turn if point.curve.principal else PRINCIPAL_ROUNDS * (turn + 1)
    return found


def _shared_sizes(points: Sequence[PlannedPoint]) -> dict[str, frozenset[int]]:
    """The sizes of each principal curve at which other methods of the same copy are planned, of
    those that have fewer sizes. By the text of the curve."""
    copies: dict[tuple[str, str], dict[str, set[int]]] = {}
    principal: dict[str, tuple[str, str]] = {}
    for point in points:
        curve = point.curve
        if curve.kind != "copy" or curve.layout is not None or curve.cache != "warm":
            continue
        path = curve.transfers[0].path
        ends = str(path.source), str(path.destination)
        copies.setdefault(ends, {}).setdefault(curve.text, set()).add(point.size)
        if curve.principal:
            principal[curve.text] = ends
    return {
        text: frozenset().union(*(s for s in copies[ends].values() if s < copies[ends][text]))
        for text, ends in principal.items()
    }


def _coverage_order(
    sizes: Iterable[int], measured: Iterable[int], double: Collection[int] = ()
) -> list[int]:
    """``sizes`` in the order in which they add most to those that are measured anyway: always the
    one furthest (in octaves) from those before, the smaller one of two. Distances of the sizes
    ``double`` count twice."""
    left = {size: math.log2(max(size, 1)) for size in sizes}
    taken = [math.log2(max(size, 1)) for size in measured]
    found: list[int] = []
    while left:
        size = max(left, key=lambda s: (_distance(left[s], taken) * (1 + (s in double)), -s))
        taken.append(left.pop(size))
        found.append(size)
    return found


def _distance(size: float, taken: Iterable[float]) -> float:
    return min((abs(size - other) for other in taken), default=0.0)
