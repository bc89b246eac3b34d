"""Which series to keep when there is not time for all: the best coverage of curves and sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from waywiser.plan.point import Point

TELLING = 16 * 2**20
"""The size that says most about a path in one visit: its rate, nearly saturated, quickly had."""

PRINCIPAL_ROUNDS = 4
"""Sizes that every principal curve gets for each one of a secondary curve, which comes after them:
first a rate, a latency, and two between."""

EQUAL_ROUNDS = 2
"""Sizes that the first of a class of equal curves gets before the others get one."""


def best_coverage(points: list[Point], seconds: float) -> list[Point]:
    """As many points as fit into the expected time, in their given order.

    Curves take turns, principal ones first; each adds the size that is furthest from those it has,
    so that whatever is cut, no path is left without its most telling sizes; where not all of a
    round fit, the quickest do. What is measured only
    under a condition comes after what is certain, of all curves.
    """
    turns = sorted(
        _turns(points), key=lambda turn: (turn[1].conditional, turn[0], turn[1].expected_seconds)
    )
    kept: set[str] = set()
    for _, point in turns:
        if point.expected_seconds <= seconds:
            seconds -= point.expected_seconds
            kept.add(point.workload.identity)
    return [point for point in points if point.workload.identity in kept]


def _turns(points: list[Point]) -> Iterator[tuple[int, Point]]:
    """Each point with the round in which its curve asks for it."""
    for _, group in groupby(points, key=lambda point: point.workload.curve):
        curve = {point.size: point for point in group}
        certain = tuple(size for size, point in curve.items() if not point.conditional)
        others = tuple(size for size, point in curve.items() if point.conditional)
        order = (*coverage_order(certain), *coverage_order(others))
        for turn, point in enumerate(curve[size] for size in order):
            yield _round(turn, point), point


def _round(turn: int, point: Point) -> int:
    if not point.curve.principal:
        return PRINCIPAL_ROUNDS * (turn + 1)
    return turn + (EQUAL_ROUNDS if point.like else 0)


def coverage_order(sizes: tuple[int, ...]) -> Iterator[int]:
    """The size nearest `TELLING`, then the smallest, then always the one furthest (in octaves)
    from those before; the smaller one of two."""
    left = {size: math.log2(max(size, 1)) for size in sizes}
    taken: list[float] = []
    while left:
        if not taken:
            size = min(left, key=lambda s: abs(left[s] - math.log2(TELLING)))
        elif len(taken) == 1:
            size = min(left)
        else:
            size = max(left, key=lambda s: (min(abs(left[s] - t) for t in taken), -s))
        taken.append(left.pop(size))
        yield size
