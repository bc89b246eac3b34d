"""Pairs of methods between the same two places that differ in one thing, and who wins where.

Times are what an application sees, from call to completion, wherever both methods have that: it is
the same clock for all, while paths are otherwise timed by whom they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, groupby

import msgspec

from waywiser.curves import (
    MATTERS,
    Curve,
    Mark,
    PlaceGroup,
    PlacePair,
    Point,
    Sheet,
    SheetCell,
    amount,
    executor_text,
    memory_text,
    method_text,
    size_span,
    table,
)
from waywiser.curves.texts import span
from waywiser.machine import Traits, task_settings
from waywiser.profile import Estimate
from waywiser.stats import THRESHOLD, FastestRange, Timed
from waywiser.stats.method_choice import UNKNOWN, fastest_ranges
from waywiser.words import Place, Transfer, Value, grouped

LEAST_SIZES = 3
"""Sizes that both were measured at."""

LEAST_SAVED = 1e-6
"""Seconds. A method that never saves so much, about the time of a call of the GPU runtime, at any
of the sizes is no reason to change a program."""

USED_BYTES = 4096
NARROW = 16
"""A range of sizes below `USED_BYTES` whose ends differ by a smaller factor than `NARROW` is no
reason either: no program chooses by it, and noise makes such ranges."""


class MethodPair(Value, frozen=True):
    """Two curves between the same two places."""

    pair: PlacePair
    first: Curve
    second: Curve
    names: tuple[str, str]
    """What the two differ in: ``pageable`` and ``pinned``."""
    common: str
    """What they have in common: ``to device by copy-engine``; empty if that is nothing."""
    stretches: tuple[FastestRange, ...]
    like: int = 0
    """Further pairs of equivalent places whose winners are the same."""
    of: int = 0
    """Further pairs of equivalent places where both methods were measured."""

    @property
    def decided(self) -> tuple[FastestRange, ...]:
        """The ranges of sizes with a winner. A single size counts only if several processes
        measured it: one visit may have been disturbed."""
        return tuple(
            stretch
            for stretch in self.stretches
            if stretch.fastest and self._is_replicated(stretch)
        )

    @property
    def practical(self) -> MethodPair:
        """The pair with those ranges alone in which a program gains by the choice: `MATTERS` of the
        time, and `LEAST_SAVED`, at sizes that are used."""
        kept = (
            s
            for s in self.decided
            if s.most >= MATTERS
            and (s.high >= USED_BYTES or s.high >= NARROW * s.low)
            and self._saved(s) >= LEAST_SAVED
        )
        return msgspec.structs.replace(self, stretches=tuple(kept))

    def _saved(self, stretch: FastestRange) -> float:
        """The most seconds that the winner of a range saves."""
        seen = (timed(*points) for points in self.within(stretch))
        return max((abs(a.seconds - b.seconds) for a, b in seen), default=0.0)

    def _is_replicated(self, stretch: FastestRange) -> bool:
        inside = self.within(stretch)
        return len(inside) > 1 or all(len(p.measured.blocks) > 1 for both in inside for p in both)

    def within(self, stretch: FastestRange) -> list[tuple[Point, Point]]:
        """The points of both at the sizes of a range."""
        both = self.first.beside(self.second)
        return [each for each in both if stretch.low <= each[0].bytes <= stretch.high]

    @property
    def most(self) -> float:
        """The largest margin of any winner."""
        return max((stretch.most for stretch in self.decided), default=0.0)

    @property
    def winners(self) -> tuple[str, ...]:
        """The names in the order in which they win, each change once."""
        return tuple(name for name, _ in groupby(map(self.winner, self.decided)))

    @property
    def crosses(self) -> bool:
        return len(self.winners) > 1

    @property
    def gpus(self) -> list[Place]:
        return [p for p in (self.pair.source, self.pair.destination) if p.kind == "gpu"]

    def winner(self, stretch: FastestRange) -> str:
        return self.names[0 if stretch.fastest == "first" else 1]

    def loser(self, stretch: FastestRange) -> str:
        return self.names[1 if stretch.fastest == "first" else 0]


def method_pairs(group: PlaceGroup, traits: Traits) -> Iterator[MethodPair]:
    """Pairs of methods between the places that were measured most; how many equivalent places
    agree is counted."""
    first = group.first
    elsewhere = grouped(
        ((other.names, other.common), other)
        for pair in group.pairs
        if pair is not first
        for other in _method_pairs_of(pair, traits)
    )
    for found in _method_pairs_of(first, traits):
        others = elsewhere.get((found.names, found.common), [])
        agree = sum(other.practical.winners == found.practical.winners for other in others)
        yield msgspec.structs.replace(found, like=agree, of=len(others))


def _method_pairs_of(pair: PlacePair, traits: Traits) -> Iterator[MethodPair]:
    principal = {curve.text for curve in pair.principal}
    for first, second in combinations(pair.curves, 2):
        difference = _difference(first, second, principal, traits)
        if difference is None:
            continue
        points = first.beside(second)
        if len(points) >= LEAST_SIZES:
            seen = [timed(a, b) for a, b in points]
            stretches = fastest_ranges([p.bytes for p, _ in points], *zip(*seen, strict=True))
            yield MethodPair(pair, first, second, *difference, tuple(stretches))


def timed(first: Point, second: Point) -> tuple[Timed, Timed]:
    """What an application sees of both, or what was timed if one lacks that."""
    a, b = first.measured, second.measured
    host = a.host_median is not None and b.host_median is not None
    return timed_of(a, host=host), timed_of(b, host=host)


def timed_of(found: Estimate, *, host: bool = True) -> Timed:
    """The time that an application sees, if it is known and ``host`` is asked for; else the
    span."""
    if host and found.host_median is not None:
        blocks = [each.host_median for each in found.used]
        return Timed(found.host_median, found.host_interval, tuple(b for b in blocks if b))
    return Timed(found.median, found.interval, tuple(each.median for each in found.used))


def _difference(
    first: Curve, second: Curve, principal: set[str], traits: Traits
) -> tuple[tuple[str, str], str] | None:
    """(what each has for itself, what both have), if that is one thing, of which one of the two
    is as by default. Two tests of a benchmark are no two methods."""
    one, other = first.first_transfer, second.first_transfer
    if task_settings(one) != task_settings(other):
        return None
    both = {first.text, second.text} <= principal
    if not {first.text, second.text} & principal:
        return None
    a, b = one.path, other.path
    source, destination = memory_text(a.source), memory_text(a.destination)
    shown = first.shown_transfer or one, second.shown_transfer or other
    executors = executor_text(shown[0]), executor_text(shown[1])
    differences = [
        (a.source != b.source, (source, memory_text(b.source)),
         f"to {destination} by {executors[0]}"),
        (a.destination != b.destination, (destination, memory_text(b.destination)),
         f"from {source} by {executors[0]}"),
        (a.executor != b.executor, executors, f"{source} -> {destination}"),
        (one.parameters != other.parameters, executors, f"{source} -> {destination}"),
    ]  # fmt: skip
    apart = [(names, common) for is_apart, names, common in differences if is_apart]
    # otherwise a variant would be compared with each other kind
    same = a.source.kind == b.source.kind and a.destination.kind == b.destination.kind
    if len(apart) == 1 and (both or same):
        return apart[0]
    if both and is_explicit(one, other, traits):
        return (method_text(shown[0]), method_text(shown[1])), ""
    return None


def is_explicit(one: Transfer, other: Transfer, traits: Traits) -> bool:
    """Whether a program chooses between them: managed memory and memory that is copied, each as
    such paths are compared."""
    by_class = {traits.executor(each.path.executor).reference: each for each in (one, other)}
    if not by_class.keys() >= {"unified", "gpu"}:
        return False
    copied = by_class["gpu"].path
    host = [end for end in (copied.source, copied.destination) if end.place.kind == "numa"]
    return any(traits.memory(end.kind).reference == "gpu" for end in host)


def sizes_text(low: int, high: int) -> str:
    """``at 4 KiB``, ``from 8 B to 32 KiB``."""
    return f"{'at' if low == high else 'from'} {size_span(low, high)}"


def margins_text(least: float, most: float) -> str:
    """``3% to 17%``."""
    return span(*(amount(max(value, 0)) for value in (least, most)))


def method_pair_table(found: Sequence[MethodPair]) -> tuple[Sheet, ...]:
    """Who wins where, of methods that differ in one parameter."""
    matter = [each for each in found if each.most >= MATTERS]
    caption = (
        "Sizes at which one method is faster, and by how much longer the other takes; where "
        f"intervals separate and by more than {THRESHOLD:.0%}, without intervals by {UNKNOWN:.0%}; "
        f"at a single size by {UNKNOWN:.0%}. yes: at all sizes."
    )
    if even := len(found) - len(matter):
        caption += f" {even} further pairs never differ by {MATTERS:.0%}."
    return table(
        "Methods compared pairwise",
        ("places", "in common", "one", "other", "one is faster", "other is faster"),
        (
            (
                SheetCell(each.pair.text + (f" and {each.of} equivalent" if each.of else "")),
                SheetCell(each.common),
                SheetCell(each.names[0], series=each.first.text),
                SheetCell(each.names[1], series=each.second.text),
                _won(each, "first"),
                _won(each, "second"),
            )
            for each in matter
        ),
        caption,
    )


def _won(found: MethodPair, who: str) -> SheetCell:
    mine = [stretch for stretch in found.stretches if stretch.fastest == who]
    won = (f"{sizes_text(s.low, s.high)}: {margins_text(s.least, s.most)}" for s in mine)
    mark: Mark = "yes" if mine and len(mine) == len(found.stretches) else ""
    return SheetCell("; ".join(won) or "—", mark)
