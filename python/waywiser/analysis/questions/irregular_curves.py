"""Irregular sizes of curves, grouped by what they have in common.

What equal paths show at the same sizes is one irregularity. What paths between the same kinds of
memory by one executor show at the same sizes has one cause, and is reported once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from waywiser.curves import Curve, Subject
from waywiser.curves.wrong_bounds import GPU_CACHE
from waywiser.stats import Irregularity
from waywiser.stats.irregular import irregularities
from waywiser.words import Value, format_bytes, grouped

OTHERS = 2
"""Equal paths that must confirm an irregularity of a single block."""
NEAR = 4
"""Times the capacity of all caches of a level: a drop at larger sizes is not explained by them."""


class CurveIrregularity(Value, frozen=True):
    """One irregularity of a curve, and of those of its class that show the same."""

    curve: Curve
    what: Irregularity
    others: int
    """Curves of the class that show it too."""
    of: int
    """Curves of the class that were measured at these sizes."""
    confirmed: int = 0
    """The most equal paths that show it beside one of them."""
    places: tuple[str, ...] = ()
    """The names of the curves that show it."""
    classes: int = 1
    """Classes of equal paths that show it."""
    cache: str = ""
    """The cache that is too small for these sizes and so explains it; empty if none does."""
    beyond: str = ""
    """What is measured then: the next cache, or memory."""

    @property
    def corroborated(self) -> bool:
        """Whether several blocks show it, or several equal paths."""
        return self.what.of > 1 or self.confirmed >= OTHERS


_Cause = tuple[object, ...]


def irregular_classes(subject: Subject, curves: Sequence[Curve]) -> Iterator[CurveIrregularity]:
    """The same of several curves of a class once, of the one where it is deepest."""
    irregular = irregularities([curve.blocks for curve in curves])
    groups = grouped(
        ((curve.representative, what.kind, what.low), (curve, what))
        for curve, found in zip(curves, irregular, strict=True)
        for what in found
    )
    for (first, _, low), members in groups.items():
        curve, what = max(members, key=lambda member: member[1].depth)
        mates = sum(mate.representative == first and mate.at(low) is not None for mate in curves)
        explained = _outgrown(subject, curve, what)
        names = tuple(member.name for member, _ in members)
        others = len(members) - 1
        yield CurveIrregularity(curve, what, others, mates, others, names, 1, *explained)


def by_cause(
    known: Sequence[CurveIrregularity], curves: Sequence[Curve]
) -> Iterator[CurveIrregularity]:
    """Those of one cause once, of the curve where it is deepest."""
    number: Counter[_Cause] = Counter(map(_cause, curves))
    causes = grouped(((_cause(each.curve), each.what.kind, each.cache), each) for each in known)
    for (cause, *_), members in causes.items():
        for same in _at_the_same_sizes(members):
            first = max(same, key=lambda each: (each.corroborated, each.what.depth))
            if len(same) == 1:
                yield first
                continue
            places = tuple(dict.fromkeys(name for each in same for name in each.places))
            yield replace(
                first,
                others=len(places) - 1,
                of=number[cause],
                confirmed=max(each.confirmed for each in same),
                places=places,
                classes=len({each.curve.representative for each in same}),
            )


def _cause(curve: Curve) -> _Cause:
    """What curves have in common that are slow for one reason: the kinds of memory, the executor,
    and how many transfers there are at once, whichever places these are between."""
    ways = {
        (
            *((end.kind, end.place.kind) for end in transfer.path.ends),
            len(set(transfer.path.places)),
            transfer.path.executor,
            transfer.layout.kind if transfer.layout is not None else "",
        )
        for transfer in curve.workload.transfers
    }
    return len(curve.workload.transfers), curve.workload.states, *sorted(ways, key=str)


def _at_the_same_sizes(members: Sequence[CurveIrregularity]) -> list[list[CurveIrregularity]]:
    """The members in groups whose ranges of sizes overlap."""
    found: list[list[CurveIrregularity]] = []
    high = -1
    for each in sorted(members, key=lambda member: member.what.low):
        if each.what.low > high:
            found.append([])
        found[-1].append(each)
        high = max(high, each.what.high)
    return found


def _outgrown(subject: Subject, curve: Curve, what: Irregularity) -> tuple[str, ...]:
    """The cache between the faster sizes and the slower ones, and what comes after it. Rates that
    recover to more than they were before the dip were held down by no cache."""
    before, after = curve.at(what.reference), curve.measured[-1]
    if before is None or after.rate >= before.rate or curve.path is None:
        return ()
    places = set(curve.path.places)
    if all(place.kind == "gpu" for place in places):
        fits = len(places) == 1 and GPU_CACHE[0] <= what.low <= GPU_CACHE[1]
        return ("the last cache of the GPU", "memory") if fits else ()
    sizes = {cache.level: cache.bytes for cache in subject.machine.caches}
    between = [
        level
        for level, size in sizes.items()
        if what.reference <= size <= 2 * what.low
        and what.low <= NEAR * sum(c.bytes for c in subject.machine.caches if c.level == level)
    ]
    if not between:
        within_host = all(place.kind == "numa" for place in places)
        if within_host and 2 * what.low <= subject.machine.last_caches:
            return f"a share of {_named(max(sizes), sizes)}, which others use too", "memory"
        return ()
    level = max(between)
    larger = [each for each in sizes if each > level and sizes[each] > sizes[level]]
    return _named(level, sizes), _named(min(larger), sizes) if larger else "memory"


def _named(level: int, sizes: Mapping[int, int]) -> str:
    return f"the L{level} cache of {format_bytes(sizes[level])}"
