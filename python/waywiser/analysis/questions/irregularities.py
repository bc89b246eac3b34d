"""Dips and drops in curves: sizes that take longer than the sizes around them let expect.

The test and its error rate are those of `waywiser.stats.irregular`. What a cache explains is said
to be explained: rates above a cache's size are lower, and often lowest just above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from waywiser.curves.answer import (
    MOST_EXHIBITS,
    MOST_FINDINGS,
    Answer,
    Cell,
    Exhibit,
    Finding,
    Table,
    ranked,
    table,
)
from waywiser.curves.curve import Curve
from waywiser.curves.point import Point
from waywiser.curves.subject import Subject
from waywiser.curves.texts import ONE_BLOCK, amount, size_span
from waywiser.curves.wrong_bounds import GPU_CACHE
from waywiser.stats.decision import THRESHOLD
from waywiser.stats.irregular import LEVEL, Irregularity, irregularities
from waywiser.stats.scatter import LEAST_SIZES
from waywiser.words import Value, format_bytes, grouped
from waywiser.words.number_format import count

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
    cache: str = ""
    """The cache that is too small for these sizes and so explains it; empty if none does."""
    beyond: str = ""
    """What is measured then: the next cache, or memory."""

    @property
    def corroborated(self) -> bool:
        """Whether several blocks show it, or several equal paths."""
        return self.what.of > 1 or self.others >= OTHERS


def answer(subject: Subject) -> Answer:
    curves = [curve for curve in subject.curves if curve.workload.bytes]
    found = list(_grouped(subject, curves))
    findings = [_finding(subject, each) for each in found]
    tested = [curve for curve in curves if len(curve.measured) >= LEAST_SIZES]
    return Answer(
        question="irregularities",
        title="Irregularities: is a path slower than expected at some sizes?",
        summary=_summary(found, len(tested)),
        findings=ranked(findings)[:MOST_FINDINGS],
        tables=_table(found),
        unanswered=tuple(_unanswered(subject, curves, tested, found)),
        answered=bool(tested),
    )


def _grouped(subject: Subject, curves: Sequence[Curve]) -> Iterator[CurveIrregularity]:
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
        yield CurveIrregularity(curve, what, len(members) - 1, mates, *explained)


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


def _finding(subject: Subject, found: CurveIrregularity) -> Finding:
    what, curve = found.what, found.curve
    return Finding(
        id=f"{what.kind}-by-cache" if found.cache else what.kind,
        severity="warning" if found.corroborated and not found.cache else "info",
        statement=_statement(found),
        effect=what.depth,
        interval=what.interval,
        devices=subject.gpus(curve.workload.places),
        exhibits=tuple(_exhibits(curve, what)[:MOST_EXHIBITS]),
        remedy=_remedy(subject, found),
    )


def _statement(found: CurveIrregularity) -> str:
    what, curve = found.what, found.curve
    sizes = _sizes(what)
    if what.kind == "dip":
        text = (
            f"{curve.name} takes {what.depth:.0%} longer at {sizes} than the sizes around suggest"
        )
    else:
        best = curve.at(what.reference)
        after = max((p for p in curve.measured if p.bytes >= what.low), key=lambda p: p.rate)
        assert best is not None
        text = (
            f"{curve.name} falls from {best.rate_text} GB/s at {format_bytes(what.reference)} to "
            f"at most {after.rate_text} from {format_bytes(what.low)} on"
        )
    if found.of > 1:
        text += f" (on {found.others + 1} of {found.of} equal paths)"
    if found.cache:
        text += f": these sizes do not fit into {found.cache}, and {found.beyond} is measured"
    if not found.corroborated:
        text += f"; {ONE_BLOCK}"
    return text


def _remedy(subject: Subject, found: CurveIrregularity) -> str:
    """What to do; empty if a cache explains it, or if one visit may have been disturbed."""
    what = found.what
    if found.cache or not found.corroborated:
        return ""
    way = found.curve.text
    # a drop lasts to the end of the curve, and its edge is what is looked at
    high = what.low if what.kind == "drop" else what.high
    around = f"--sizes {_compact(what.low // 2)}:{_compact(high * 2)}:4"
    instead = (
        f"move such sizes in pieces of {format_bytes(what.reference)}, or use another "
        "method (see the crossovers)"
        if what.kind == "drop"
        else f"avoid {_sizes(what)} on this path: {_instead(found)}"
    )
    more = f"; measure more sizes: waywiser survey {around} --only '{way}'"
    return f"{instead}{subject.surveyed(more)}"


def _instead(found: CurveIrregularity) -> str:
    """Smaller pieces where these are faster, else more at once."""
    what, curve = found.what, found.curve
    before = curve.at(what.reference)
    if before is not None and before.rate > max(point.rate for point in _slow(curve, what)):
        return f"move pieces of {format_bytes(what.reference)}"
    after = next(point.bytes for point in curve.measured if point.bytes > what.high)
    return f"combine transfers into {format_bytes(after)} or more"


def _slow(curve: Curve, what: Irregularity) -> list[Point]:
    return [point for point in curve.measured if what.low <= point.bytes <= what.high]


def _compact(size: int) -> str:
    return format_bytes(size).replace(" ", "")


def _sizes(what: Irregularity) -> str:
    return size_span(what.low, what.high)


def _exhibits(curve: Curve, what: Irregularity) -> list[Exhibit]:
    """The faster size before, then those that are slow, then the next."""
    next_ones = [point for point in curve.measured if point.bytes > what.high]
    before = curve.at(what.reference)
    slow = _slow(curve, what)[: MOST_EXHIBITS - 2]
    ordered = [*([before] if before else []), *slow, *next_ones[:1]]
    return [point.exhibit() for point in ordered if point.measured.rate is not None]


def _summary(found: Sequence[CurveIrregularity], tested: int) -> str:
    if not tested:
        return "Not determined: no curve has enough sizes to find dips."
    unexplained = sum(each.corroborated and not each.cache for each in found)
    by_cache = sum(bool(each.cache) for each in found)
    dips = "unexplained dip or drop" if unexplained < 2 else "unexplained dips or drops"
    text = f"{unexplained or 'No'} {dips} in {count(tested, 'curve')}"
    if single := len(found) - unexplained - by_cache:
        text += f"; {single} more {ONE_BLOCK}"
    if by_cache:
        text += f"; a cache explains {by_cache}"
    return f"{text}."


def _table(found: Sequence[CurveIrregularity]) -> tuple[Table, ...]:
    ordered = sorted(found, key=lambda each: (bool(each.cache), -each.what.depth))
    return table(
        "Dips and drops",
        ("path", "what", "sizes", "takes longer by", "95 %", "p", "blocks", "explained by"),
        map(_row, ordered),
        "A dip is slower than smaller and larger sizes suggest; a drop lasts to the end of the "
        f"curve. The table has those of at least {THRESHOLD:.0%} that exceed the scatter of "
        "blocks and the unevenness of the curve (one-sided t, Bonferroni over all sizes of the "
        f"profile, level {LEVEL:g}). Blocks: how many show it.",
    )


def _row(found: CurveIrregularity) -> tuple[Cell, ...]:
    what = found.what
    name = found.curve.name + (f" ({found.others + 1} of {found.of} equal)" if found.of > 1 else "")
    return (
        Cell(name, series=found.curve.text),
        Cell(what.kind),
        Cell(_sizes(what)),
        Cell(amount(what.depth)),
        Cell(f"{amount(what.interval.low)} to {amount(what.interval.high)}"),
        Cell(f"{what.p_value:.1g}"),
        Cell(f"{what.blocks} of {what.of}"),
        Cell(found.cache or "—"),
    )


def _unanswered(
    subject: Subject,
    curves: Sequence[Curve],
    tested: Sequence[Curve],
    found: Sequence[CurveIrregularity],
) -> Iterator[str]:
    for each in found:
        if not each.corroborated and not each.cache:
            yield (
                f"whether {each.curve.name} is slower at {_sizes(each.what)}: one block shows it; "
                f"{subject.again(each.curve.text)}"
            )
    few = len(curves) - len(tested)
    if few:
        yield f"{count(few, 'curve')} with fewer than {LEAST_SIZES} sizes, too few to find dips"
    single = sum(all(len(p.measured.blocks) < 2 for p in curve.measured) for curve in tested)
    if single:
        yield (
            f"{count(single, 'curve')} with a single block: the scatter of blocks is not known, "
            "and only very deep dips are reported"
        )
