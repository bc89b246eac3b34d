"""Dips and drops in curves: sizes that take longer than the sizes around them let expect.

The test and its error rate are those of `waywiser.stats.irregular`. What a cache explains is said
to be explained: rates above a cache's size are lower, and often lowest just above.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from waywiser.analysis.questions.irregular_curves import (
    CurveIrregularity,
    by_cause,
    irregular_classes,
)
from waywiser.curves import (
    MOST_EXHIBITS,
    MOST_FINDINGS,
    Answer,
    Curve,
    Exhibit,
    Finding,
    Point,
    Sheet,
    SheetCell,
    Subject,
    amount,
    ranked,
    size_span,
    table,
)
from waywiser.curves.texts import ONE_BLOCK, named
from waywiser.stats import LEAST_SIZES, THRESHOLD, Irregularity
from waywiser.stats.irregular import LEVEL
from waywiser.words import count, format_bytes


def answer(subject: Subject) -> Answer:
    curves = [curve for curve in subject.curves if curve.workload.bytes]
    known = list(irregular_classes(subject, curves))
    found = list(by_cause(known, curves))
    findings = [_finding(subject, each) for each in found]
    tested = [curve for curve in curves if len(curve.measured) >= LEAST_SIZES]
    return Answer(
        question="irregularities",
        title="Irregularities: is a path slower than expected at some sizes?",
        summary=_summary(found, len(tested)),
        findings=ranked(findings)[:MOST_FINDINGS],
        tables=_table(known),
        unanswered=tuple(_unanswered(subject, curves, tested, found)),
        answered=bool(tested),
    )


def _finding(subject: Subject, found: CurveIrregularity) -> Finding:
    what, curve = found.what, found.curve
    return Finding(
        id=f"{what.kind}-by-cache" if found.cache else what.kind,
        severity="warning" if found.corroborated and not found.cache else "info",
        statement=_statement(found),
        detail=f"seen on {named(found.places)}" if found.classes > 1 else "",
        effect=what.depth,
        interval=what.interval,
        devices=subject.gpus(curve.workload.places),
        exhibits=tuple(_exhibits(curve, what)[:MOST_EXHIBITS]),
        remedy=_remedy(subject, found),
    )


def _statement(found: CurveIrregularity) -> str:
    what, curve = found.what, found.curve
    sizes = _sizes(curve, what)
    if what.kind == "dip":
        text = (
            f"{curve.name} takes {what.depth:.0%} longer at {sizes} than the sizes around suggest"
        )
    else:
        best = curve.at(what.reference)
        after = max((p for p in curve.measured if p.bytes >= what.low), key=lambda p: p.rate)
        assert best is not None
        text = (
            f"{curve.name} falls from {best.rate_text} GB/s at {_size(curve, what.reference)} to "
            f"at most {after.rate_text} from {_size(curve, what.low)} on"
        )
    if found.of > 1:
        paths = "equal paths" if found.classes == 1 else "such paths"
        text += f" (on {found.others + 1} of {found.of} {paths})"
    if found.cache:
        text += f": these sizes do not fit into {found.cache}, and {found.beyond} is measured"
    if not found.corroborated:
        text += f"; {ONE_BLOCK}"
    return text


def _remedy(subject: Subject, found: CurveIrregularity) -> str:
    """What to do; empty if a cache explains it, or if one visit may have been disturbed."""
    what, curve = found.what, found.curve
    if found.cache or not found.corroborated:
        return ""
    transfers = _equal_transfers(curve)
    # a drop lasts to the end of the curve, and its edge is what is looked at
    high = what.low if what.kind == "drop" else what.high
    low, high = what.low // transfers, high // transfers
    around = f"--sizes {_compact(low // 2)}:{_compact(high * 2)}:4"
    instead = (
        f"move such sizes in pieces of {_size(curve, what.reference)}, or use another "
        "method (see the crossovers)"
        if what.kind == "drop"
        else f"avoid {_sizes(curve, what)} on {_paths(found)}: {_instead(found)}"
    )
    options = shlex.join([*subject.launch, around])
    more = f"; measure more sizes: waywiser survey {options} --only '{curve.text}'"
    return f"{instead}{subject.surveyed(more)}"


def _instead(found: CurveIrregularity) -> str:
    """Smaller pieces where these are faster, else more at once."""
    what, curve = found.what, found.curve
    before = curve.at(what.reference)
    if before is not None and before.rate > max(point.rate for point in _slow(curve, what)):
        return f"move pieces of {_size(curve, what.reference)}"
    after = next(point.bytes for point in curve.measured if point.bytes > what.high)
    return f"combine transfers into {_size(curve, after)} or more"


def _slow(curve: Curve, what: Irregularity) -> list[Point]:
    return [point for point in curve.measured if what.low <= point.bytes <= what.high]


def _compact(size: int) -> str:
    return format_bytes(size).replace(" ", "")


def _paths(found: CurveIrregularity) -> str:
    return "this path" if not found.others else "these paths"


def _equal_transfers(curve: Curve) -> int:
    """How many transfers of one size there are at once; 1 if their sizes differ."""
    sizes = [transfer.bytes for transfer in curve.workload.transfers]
    return len(sizes) if len(set(sizes)) == 1 else 1


def _size(curve: Curve, size: int) -> str:
    """``4 KiB``; of several equal transfers ``2 × 4 KiB``."""
    transfers = _equal_transfers(curve)
    each = format_bytes(size // transfers)
    return each if transfers == 1 else f"{transfers} × {each}"


def _sizes(curve: Curve, what: Irregularity) -> str:
    """``4 KiB to 16 KiB``, ``2 × 4 KiB to 16 KiB``."""
    transfers = _equal_transfers(curve)
    text = size_span(what.low // transfers, what.high // transfers)
    return text if transfers == 1 else f"{transfers} × {text}"


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


def _table(found: Sequence[CurveIrregularity]) -> tuple[Sheet, ...]:
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


def _row(found: CurveIrregularity) -> tuple[SheetCell, ...]:
    what = found.what
    name = found.curve.name + (f" ({found.others + 1} of {found.of} equal)" if found.of > 1 else "")
    return (
        SheetCell(name, series=found.curve.text),
        SheetCell(what.kind),
        SheetCell(_sizes(found.curve, what)),
        SheetCell(amount(what.depth)),
        SheetCell(f"{amount(what.interval.low)} to {amount(what.interval.high)}"),
        SheetCell(f"{what.p_value:.1g}"),
        SheetCell(f"{what.blocks} of {what.of}"),
        SheetCell(found.cache or "—"),
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
                f"whether {each.curve.name} is slower at {_sizes(each.curve, each.what)}: "
                f"one block shows it; {subject.again(each.curve.text)}"
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
