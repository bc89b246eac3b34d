"""Pairs of ways between the same two places that differ in one thing, and who wins where.

Times are what an application sees, from call to completion, wherever both ways have that: it is the
same clock for all, while paths are otherwise timed by whom they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from waywiser.analysis.fitted import estimate_of
from waywiser.analysis.subject import Curve, Point
from waywiser.analysis.ways import Group, Pair, memory_text, way
from waywiser.series.estimate import Estimate
from waywiser.stats.duel import Stretch, Timed, duel
from waywiser.topology.traits import Traits
from waywiser.words import Transfer, Value, format_settings

LEAST_SIZES = 3
"""That both were measured at."""


class Duel(Value, frozen=True):
    """Two curves between the same two places."""

    pair: Pair
    first: Curve
    second: Curve
    names: tuple[str, str]
    """What the two differ in: ``pageable`` and ``pinned``."""
    common: str
    """What they have in common: ``to device by copy-engine``; empty where that is nothing."""
    stretches: tuple[Stretch, ...]
    like: int = 0
    """Further pairs of alike places whose winners are the same."""
    of: int = 0
    """Further pairs of alike places where both ways were measured."""

    @property
    def most(self) -> float:
        """The largest margin of any winner."""
        return max((s.most for s in self.stretches if s.winner != "neither"), default=0.0)

    @property
    def decided(self) -> tuple[Stretch, ...]:
        return tuple(stretch for stretch in self.stretches if stretch.winner != "neither")


def duels(group: Group, traits: Traits) -> Iterator[Duel]:
    """Of the pair of places that was measured most; how many alike pairs agree is counted."""
    first = group.first
    elsewhere: dict[tuple[tuple[str, str], str], list[Duel]] = {}
    for pair in group.pairs:
        for other in _duels_of(pair, traits) if pair is not first else ():
            elsewhere.setdefault((other.names, other.common), []).append(other)
    for found in _duels_of(first, traits):
        others = elsewhere.get((found.names, found.common), [])
        agree = sum(_winners(other) == _winners(found) for other in others)
        yield Duel(found.pair, found.first, found.second, found.names, found.common,
                   found.stretches, agree, len(others))  # fmt: skip


def _duels_of(pair: Pair, traits: Traits) -> Iterator[Duel]:
    principal = {curve.text for curve in pair.principal}
    for first, second in combinations(pair.curves, 2):
        told = _difference(first, second, principal, traits)
        if told is None:
            continue
        names, common = told
        sizes = [p.bytes for p in first.points if second.at(p.bytes) is not None]
        if len(sizes) < LEAST_SIZES:
            continue
        ones = [point for point in first.points if point.bytes in sizes]
        others = [point for point in second.points if point.bytes in sizes]
        seen = [timed(a, b) for a, b in zip(ones, others, strict=True)]
        stretches = duel(sizes, [a for a, _ in seen], [b for _, b in seen])
        yield Duel(pair, first, second, names, common, tuple(stretches))


def timed(first: Point, second: Point) -> tuple[Timed, Timed]:
    """What an application sees of both, or what was timed where one lacks that."""
    a, b = estimate_of(first), estimate_of(second)
    host = a.host_median is not None and b.host_median is not None
    return timed_of(a, host=host), timed_of(b, host=host)


def timed_of(told: Estimate, *, host: bool) -> Timed:
    """By what an application sees, where it has that and it is asked for, or by its span."""
    if host and told.host_median is not None:
        blocks = [each.host_median for each in told.blocks]
        return Timed(told.host_median, told.host_interval, tuple(b for b in blocks if b))
    return Timed(told.median, told.interval, tuple(each.median for each in told.blocks))


def _winners(found: Duel) -> Sequence[str]:
    return [stretch.winner for stretch in found.decided]


def _difference(
    first: Curve, second: Curve, principal: set[str], traits: Traits
) -> tuple[tuple[str, str], str] | None:
    """(what each has for itself, what both have), where that is one thing, of which one of the two
    is as by default."""
    one, other = first.transfer, second.transfer
    both = {first.text, second.text} <= principal
    if one is None or other is None or not {first.text, second.text} & principal:
        return None
    apart = [
        name
        for name, a, b in (
            ("source", one.path.source, other.path.source),
            ("destination", one.path.destination, other.path.destination),
            ("executor", one.path.executor, other.path.executor),
            ("parameters", one.parameters, other.parameters),
        )
        if a != b
    ]
    if len(apart) == 1 and (both or _same_kinds(one, other)):
        return _names(one, other, apart[0])
    return ((way(one), way(other)), "") if both and is_explicit(one, other, traits) else None


def _same_kinds(one: Transfer, other: Transfer) -> bool:
    """Otherwise a variant would be compared with each other kind."""
    ends = zip(
        (one.path.source, one.path.destination),
        (other.path.source, other.path.destination),
        strict=True,
    )
    return all(mine.kind == theirs.kind for mine, theirs in ends)


def _names(one: Transfer, other: Transfer, apart: str) -> tuple[tuple[str, str], str]:
    path = one.path
    source, destination = memory_text(path.source), memory_text(path.destination)
    if apart == "source":
        return (source, memory_text(other.path.source)), f"to {destination} by {_executor(one)}"
    if apart == "destination":
        names = (destination, memory_text(other.path.destination))
        return names, f"from {source} by {_executor(one)}"
    return (_executor(one), _executor(other)), f"{source} -> {destination}"


def _executor(transfer: Transfer) -> str:
    return f"{transfer.path.executor}{format_settings(transfer.parameters)}"


def is_explicit(one: Transfer, other: Transfer, traits: Traits) -> bool:
    """Whether a program chooses between them: managed memory and memory that is copied, each as
    such paths are judged."""
    by_class = {traits.executor(each.path.executor).reference: each for each in (one, other)}
    if not by_class.keys() >= {"unified", "gpu"}:
        return False
    copied = by_class["gpu"].path
    host = [end for end in (copied.source, copied.destination) if end.place.kind == "numa"]
    return any(traits.memory(end.kind).reference == "gpu" for end in host)
