"""How good each path is: latency, rate and half-peak size, beside the bound and the best way.

The fits are those of `waywiser.stats.postal`; where a curve is no single line,
`waywiser.stats.protocols` finds between which sizes it is one. Percent of the best achieved at a
size, between the same two places, is the unit of *Auto-tuning of Data Communication on
Heterogeneous Systems* (figures 2 to 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.answer import Answer, Exhibit, Finding, ranked
from waywiser.analysis.efficiency_tables import of_fits, of_the_best
from waywiser.analysis.fitted import (
    SATURATED,
    Fitted,
    estimate_of,
    fitted,
    peak,
    saturation,
    sustained,
)
from waywiser.analysis.subject import Curve, Point, Subject
from waywiser.analysis.ways import (
    Group,
    Pair,
    groups,
    is_way,
    principal,
    representative,
    way,
)
from waywiser.words import Memory, format_bytes
from waywiser.words.number_format import count, format_rate

QUESTION = "efficiency"

USUAL_SHARE = 0.65
"""Of the bound: links and memories were seen to carry 75 to 95 % of it at best (docs/results here,
PCIe 3 and NVLink 1 and 2 in CS and the thesis), so that less asks for a reason."""
EVEN = 0.02
"""Ways whose rates differ by less are not told apart: the target of a survey's intervals."""
ABOVE = 1.005
"""Of the bound: no path carries so much of it, and what says so asks for a reason."""
OUT_OF_CACHE = 1.5
"""Times the sustained rate: smaller copies within host memory that are faster come from caches."""
MOST_FINDINGS = 8
"""Of best ways: more pairs of places than that are in the table."""


def answer(subject: Subject) -> Answer:
    alone = [curve for curve in subject.curves if curve.transfer is not None]
    fits = fitted([curve for curve in alone if is_way(curve)])
    found = groups(subject)
    ordered = sorted(found, key=lambda group: _importance(group.first))
    best = [finding for group in ordered if (finding := _best(subject, group)) is not None]
    first = {curve.text for curve in principal(alone)}
    tables = (of_fits([fit for fit in fits if fit.curve.text in first]), of_the_best(found))
    return Answer(
        question=QUESTION,
        title="How good is each path, and what is the best way between two places?",
        summary=_summary(found),
        findings=ranked(best[:MOST_FINDINGS]),
        tables=tuple(table for table in tables if table is not None),
        unanswered=tuple(_unanswered(fits, found)),
        judged=bool(found),
    )


def _importance(pair: Pair) -> int:
    """Links first, then memories, then files."""
    kinds = {pair.source.kind, pair.destination.kind}
    if "file" in kinds:
        return 2
    return 0 if pair.source != pair.destination else 1


def _best(subject: Subject, group: Group) -> Finding | None:
    """The way of the highest rate between two places, and whether that is near what it could be."""
    pair = group.first
    curve = best_curve(pair)
    transfer = curve.transfer
    if transfer is None:
        return None
    top = sustained(curve)
    share, bound, saturates = top.line.of_bound, top.line.bound, saturation(curve)
    said = f"the fastest way {_where(pair)} is {way(transfer)}"
    if any(_is_mapped(end, subject) for end in (transfer.path.source, transfer.path.destination)):
        said += " through the page cache"
    said += f": {_rate(top)} GB/s"
    if share is not None and bound is not None:
        said += f", {share:.0%} of what {bound.narrowest} could carry at best"
        said += " (more than it can: doubt the number or the bound)" if share > ABOVE else ""
    caches = _caches(pair, curve)
    said += f"; {caches or _saturates(curve, saturates)}"
    even = _even(pair, curve)
    said += f"; as fast is {' and '.join(even[:2])}" if even else ""
    low = share is not None and share < USUAL_SHARE
    return Finding(
        id="low-share" if low else "best-way",
        severity="warning" if low else "info",
        statement=said[0].upper() + said[1:] + _range(group, curve),
        effect=1 - share if low and share is not None else None,
        devices=tuple(map(subject.device, dict.fromkeys((pair.source, pair.destination)))),
        exhibits=(exhibit(top), *_second(pair, curve)),
        remedy=_remedy(low, saturates if len(curve.points) > 1 and not caches else None),
    )


def _is_mapped(memory: Memory, subject: Subject) -> bool:
    """Whether it is a file at addresses, whose bytes are in the page cache."""
    reached = subject.machine.traits.memory(memory.kind).cpu_accessible
    return memory.place.kind == "file" and reached


def _caches(pair: Pair, curve: Curve) -> str:
    """What the caches of CPUs have to do with the rate; empty where nothing."""
    top, most = sustained(curve), peak(curve)
    if pair.cached(curve):
        return f"caches can hold {format_bytes(top.bytes)}, and of memory it tells nothing"
    if pair.source.kind == pair.destination.kind == "numa" and most.rate > OUT_OF_CACHE * top.rate:
        fits = most.bytes <= pair.caches
        return (
            f"that is at {format_bytes(top.bytes)}: {'what caches hold' if fits else 'less'} moves "
            f"at up to {_rate(most)} GB/s ({format_bytes(most.bytes)})"
        )
    return ""


def _saturates(curve: Curve, size: int) -> str:
    if len(curve.points) == 1:
        return f"{format_bytes(size)} is the only size"
    if size == curve.points[-1].bytes:
        return f"only its largest size, {format_bytes(size)}, comes within {SATURATED:.0%} of it"
    return f"from {format_bytes(size)} on it is within {SATURATED:.0%} of this rate"


def best_curve(pair: Pair) -> Curve:
    """Of the highest sustained rate, out of memory where any is; of several as high, the one with
    least that is special."""
    known = [curve for curve in pair.curves if not pair.cached(curve)] or pair.curves
    most = max(sustained(curve).rate for curve in known)
    even = [curve for curve in known if sustained(curve).rate >= (1 - EVEN) * most]
    first = pair.principal
    return min(even, key=lambda curve: (curve not in first, curve.text))


def _even(pair: Pair, best: Curve) -> list[str]:
    """Other ways, as they are by default, of the same rate."""
    least = (1 - EVEN) * sustained(best).rate
    return [
        way(curve.transfer)
        for curve in pair.principal
        if curve is not best
        and curve.transfer is not None
        and pair.cached(curve) == pair.cached(best)
        and sustained(curve).rate >= least
    ]


def _rate(point: Point) -> str:
    return format_rate(point.rate, estimate_of(point).relative)


def _where(pair: Pair) -> str:
    if pair.source == pair.destination:
        return f"within {pair.source}"
    return f"from {pair.source} to {pair.destination}"


def _remedy(low: bool, saturates: int | None) -> str:
    if low:
        return (
            "look for what holds it back: link width and generation under load, IOMMU, firmware "
            "settings, few threads where CPUs copy; ask waywiser doctor"
        )
    if saturates is None:
        return ""
    return f"move at least {format_bytes(saturates)} at once, or combine small transfers"


def _range(group: Group, curve: Curve) -> str:
    """What the alike pairs reach at the largest size that all have, where there are several."""
    wanted = representative(curve)
    mates = [mate for pair in group.pairs for mate in pair.curves if representative(mate) == wanted]
    sizes = set.intersection(*({point.bytes for point in mate.points} for mate in mates))
    if len(mates) < 2 or not sizes:
        return ""
    points = [point for mate in mates if (point := mate.at(max(sizes))) is not None]
    slow, *_, fast = map(_rate, sorted(points, key=lambda point: point.rate))
    at = format_bytes(max(sizes))
    if slow == fast:
        return f". All {len(mates)} such paths reach {fast} GB/s at {at}"
    return (
        f". Of {len(mates)} such paths the slowest reaches {slow} and the fastest {fast} GB/s at "
        f"{at}"
    )


def exhibit(point: Point) -> Exhibit:
    found = estimate_of(point).rate
    assert found is not None
    return Exhibit(point.line.workload, "rate", found.value, "B/s", found.interval)


def _second(pair: Pair, best: Curve) -> Iterator[Exhibit]:
    """The next best way that is another memory or executor, and no setting of the same."""
    others = [
        curve
        for curve in pair.principal
        if curve.path != best.path and pair.cached(curve) == pair.cached(best)
    ]
    if others:
        yield exhibit(max(map(sustained, others), key=lambda point: point.rate))


def _summary(found: Sequence[Group]) -> str:
    best = [sustained(best_curve(group.first)) for group in found]
    known = [point.line.of_bound for point in best if point.line.of_bound is not None]
    if not found:
        return "No path of this profile was measured alone."
    text = f"The best way was found between {count(len(found), 'kind')} of places"
    if known:
        least, most = f"{min(known):.0%}", f"{max(known):.0%}"
        share = least if least == most else f"{least} to {most}"
        text += f"; where a bound is known, it reaches {share} of it"
    return f"{text}."


def _unanswered(fits: Sequence[Fitted], found: Sequence[Group]) -> Iterator[str]:
    few = sum(fit.postal is None for fit in fits)
    if few:
        yield f"latency and rate of {count(few, 'curve')}: too few sizes for a fit"
    odd = [
        fit.curve.name
        for fit in fits
        if fit.postal is not None and not fit.is_line and not fit.stretches
    ]
    if odd:
        yield (
            f"one latency and rate, or up to three, do not describe {count(len(odd), 'curve')}: "
            f"{'; '.join(odd[:5])}{'; …' if len(odd) > 5 else ''}"
        )
    unknown = [
        group.text for group in found if sustained(best_curve(group.first)).line.bound is None
    ]
    if unknown:
        yield f"what share of the possible is reached, no bound being known: {'; '.join(unknown)}"
