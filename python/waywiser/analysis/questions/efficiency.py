"""How good each path is: latency, bandwidth and half-peak size, beside the bound and the best
method.

The fits are those of `waywiser.model.curve`, of one line or of several. Percent of the best
achieved at a size, between the same two places, is the unit of *Auto-tuning of Data Communication
on Heterogeneous Systems* (figures 2 to 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from waywiser.analysis.questions.fitted import (
    SUSTAINED_SPAN,
    Fitted,
    fitted,
    is_within_host,
    peak,
    rate_at,
    saturation,
    sustained,
)
from waywiser.curves import (
    BANDWIDTH_BYTES,
    MOST_FINDINGS,
    START_BYTES,
    Answer,
    Curve,
    Finding,
    PlaceGroup,
    PlacePair,
    Point,
    Sheet,
    SheetCell,
    Subject,
    counted_copies,
    method_text,
    place_groups,
    range_of,
    ranked,
    table,
)
from waywiser.curves.methods import principal
from waywiser.curves.texts import named, span
from waywiser.model.curve import CurveModel
from waywiser.profile.quality_flags import TARGET
from waywiser.stats import Interval, Postal, relative
from waywiser.stats.method_choice import TOLERANCE
from waywiser.words import Memory, count, format_bytes, format_rate, format_time, grouped

USUAL_SHARE = 0.65
"""A share of the bound that needs no explanation: links and memories were seen to carry 75 to 95 %
of it at best (docs/results here, PCIe 3 and NVLink 1 and 2 in CS and the thesis)."""

OUT_OF_CACHE = 1.5
"""Times the sustained rate: smaller copies within host memory that are faster come from caches."""

REMEDY = (
    "check what limits it: link width and generation under load, IOMMU, firmware settings, few "
    "threads where CPUs copy; ask waywiser doctor"
)
"""What to do about a low share of the bound."""

SIZES = (2**12, 2**16, 2**20, 2**24, 2**28)
"""Sizes in the table that compares methods: a page, a message, and what a program streams."""


def answer(subject: Subject) -> Answer:
    alone = [curve for curve in subject.curves if curve.transfer is not None]
    fits = fitted(counted_copies(alone))
    groups = place_groups(subject)
    rated = [(group, tuple(_with_bandwidth(group))) for group in groups]
    found = [PlaceGroup(pairs) for _, pairs in rated if pairs]
    ordered = sorted(found, key=lambda group: _importance(group.first))
    first = {curve.text for curve in principal(alone)}
    return Answer(
        question="efficiency",
        title="Efficiency: which method is fastest, and what share of the bound does it reach?",
        summary=_summary(found, bool(groups)),
        findings=ranked([_best(subject, group) for group in ordered[:MOST_FINDINGS]]),
        tables=(*_of_fits([fit for fit in fits if fit[0].text in first]), *_of_the_best(found)),
        unanswered=tuple(_unanswered(fits, found, [group for group, pairs in rated if not pairs])),
        answered=bool(found),
    )


def _with_bandwidth(group: PlaceGroup) -> Iterator[PlacePair]:
    """The pairs that have curves that show a bandwidth, with these alone."""
    for pair in group.pairs:
        if curves := tuple(filter(_shows_bandwidth, pair.curves)):
            yield msgspec.structs.replace(pair, curves=curves)


def _shows_bandwidth(curve: Curve) -> bool:
    """Whether it has a size whose time is not that of the latency alone."""
    return curve.measured[-1].bytes >= START_BYTES


def _importance(pair: PlacePair) -> int:
    """Links first, then memories, then files."""
    if "file" in (pair.source.kind, pair.destination.kind):
        return 2
    return 0 if pair.source != pair.destination else 1


def _best(subject: Subject, group: PlaceGroup) -> Finding:
    """The method of the highest rate between two places, and whether that is near what it could
    be."""
    pair = group.first
    curve = best_curve(pair)
    top, largest = sustained(curve), curve.measured[-1].bytes
    share = top.of_bound
    low = largest >= BANDWIDTH_BYTES and share is not None and share < USUAL_SHARE
    return Finding(
        id="low-share" if low else "best-method",
        severity="warning" if low else "info",
        statement=_statement(subject, pair, curve) + _range(group, curve),
        effect=1 - share if low and share is not None else None,
        devices=tuple(map(subject.device, dict.fromkeys((pair.source, pair.destination)))),
        exhibits=tuple(point.exhibit() for point in (top, *_second(pair, curve))),
        remedy=REMEDY if low else "",
    )


def _statement(subject: Subject, pair: PlacePair, curve: Curve) -> str:
    """Which method is the fastest, at what rate and share of its bound, and where it saturates."""
    top, even, transfer = sustained(curve), _even(pair, curve), curve.shown_transfer
    places = f"from {pair.source} to {pair.destination}"
    if pair.source == pair.destination or pair.of_ranks:
        places = f"of {pair.text}" if pair.of_ranks else pair.text
    first = "One of the fastest methods" if even else "The fastest method"
    if len(pair.curves) == 1:
        first = "The only method measured"
    text = f"{first} {places} is {method_text(transfer)}"
    if any(_is_mapped(end, subject) for end in transfer.path.ends):
        text += " through the page cache"
    text += f": {top.rate_text} GB/s"
    if top.of_bound is not None and top.bound is not None:
        text += f", {top.of_bound:.0%} of the bound of {top.bound.narrowest}"
        if round(top.of_bound, 2) > 1:
            text += " (above the bound: the number or the bound is wrong)"
    text += f"; {_caches(pair, curve) or _saturates(curve, saturation(curve))}"
    return text + (f"; not slower at that size: {' and '.join(even[:2])}" if even else "")


def _is_mapped(memory: Memory, subject: Subject) -> bool:
    """Whether it is a file at addresses, whose bytes are in the page cache."""
    reached = subject.machine.traits.memory(memory.kind).cpu_accessible
    return memory.place.kind == "file" and reached


def _caches(pair: PlacePair, curve: Curve) -> str:
    """How the caches of CPUs explain the bandwidth; empty if they do not."""
    top = sustained(curve)
    # Copies by more threads may have been measured at sizes alone that caches hold.
    fastest = max((curve, *filter(pair.cached, pair.curves)), key=lambda each: peak(each).rate)
    most = peak(fastest)
    if pair.cached(curve):
        return f"caches can hold {format_bytes(top.bytes)}, and it does not show memory bandwidth"
    if is_within_host(curve) and most.rate > OUT_OF_CACHE * top.rate:
        fits = most.bytes <= pair.caches
        by = f", {method_text(fastest.shown_transfer)}" if fastest is not curve else ""
        return (
            f"that is at {format_bytes(top.bytes)}: "
            f"{'data in the caches' if fits else 'a smaller size'} moves "
            f"at up to {most.rate_text} GB/s ({format_bytes(most.bytes)}{by})"
        )
    return ""


def _saturates(curve: Curve, size: int) -> str:
    if len(curve.measured) == 1:
        return f"{format_bytes(size)} is the only size"
    top = sustained(curve)
    if fall := _fall(curve):
        return f"at {format_bytes(fall.bytes)} it falls to {fall.rate_text} GB/s"
    if size == curve.measured[-1].bytes:
        return f"only its largest size, {format_bytes(size)}, comes within {TOLERANCE:.0%} of it"
    most = max(point.rate for point in curve.measured if point.bytes >= size)
    above = ", or above" if most > (1 + TOLERANCE) * top.rate else ""
    return f"from {format_bytes(size)} on it is within {TOLERANCE:.0%} of this bandwidth{above}"


def _fall(curve: Curve) -> Point | None:
    """Returns the slowest of the sizes above the one that saturates, if it is below the sustained
    bandwidth by more than the tolerance."""
    least, size = (1 - TOLERANCE) * sustained(curve).rate, saturation(curve)
    slow = [point for point in curve.measured if point.bytes > size and point.rate < least]
    return min(slow, key=lambda point: point.rate, default=None)


def best_curve(pair: PlacePair) -> Curve:
    """The curve with the highest rate at large sizes, out of memory if any is. A curve with special
    settings is the best only if it is faster than the others at several sizes, or in several
    processes: one visit may have been disturbed."""
    known = [curve for curve in pair.curves if not pair.cached(curve)] or list(pair.curves)
    first = [curve for curve in pair.principal if curve in known] or known
    best = _fastest(first)
    special = [curve for curve in known if curve not in first and _is_faster(curve, best)]
    return _fastest(special) if special else best


def _fastest(curves: Sequence[Curve]) -> Curve:
    """The curve with the highest rate; of several as high, the first by name. Only sizes that all
    candidates have are compared. Candidates have the largest size that at least half as many curves
    have as any other size."""
    number = Counter(point.bytes for curve in curves for point in curve.measured)
    largest = max(size for size in number if 2 * number[size] >= max(number.values()))
    candidates = [curve for curve in curves if curve.at(largest) is not None]
    sizes = set.intersection(*({point.bytes for point in curve.measured} for curve in candidates))
    least = largest if is_within_host(candidates[0]) else largest / SUSTAINED_SPAN
    rates = {
        curve.text: max(p.rate for p in curve.measured if p.bytes in sizes and p.bytes >= least)
        for curve in candidates
    }
    most = max(rates.values())
    even = [curve for curve in candidates if rates[curve.text] >= (1 - TARGET) * most]
    return min(even, key=lambda curve: curve.text)


def _is_faster(curve: Curve, other: Curve) -> bool:
    """Whether it is faster at all large sizes that both have, and several visits show that."""
    points = curve.beside(other)
    least = points[-1][0].bytes / SUSTAINED_SPAN if points else 0
    large = [each for each in points if each[0].bytes >= least]
    replicated = all(len(point.measured.blocks) > 1 for pair in large for point in pair)
    return (len(large) > 1 or (bool(large) and replicated)) and all(
        point.rate > at.rate * (1 + TARGET) for point, at in large
    )


def _rivals(pair: PlacePair, best: Curve) -> list[Curve]:
    """Other methods, with default settings, out of caches or memory as the best is."""
    return [
        curve
        for curve in pair.principal
        if curve is not best and pair.cached(curve) == pair.cached(best)
    ]


def _even(pair: PlacePair, best: Curve) -> list[str]:
    """Other methods that are as fast, with their bandwidth."""
    least = (1 - TARGET) * sustained(best).rate
    return [
        f"{method_text(curve.shown_transfer)} ({sustained(curve).rate_text} GB/s)"
        for curve in _rivals(pair, best)
        if sustained(curve).rate >= least
    ]


def _second(pair: PlacePair, best: Curve) -> list[Point]:
    """The next best method that is another memory or executor, and no setting of the same."""
    others = [sustained(curve) for curve in _rivals(pair, best) if curve.path != best.path]
    return [max(others, key=lambda point: point.rate)] if others else []


def _range(group: PlaceGroup, curve: Curve) -> str:
    """What the equivalent pairs reach at the largest size that all have and that shows a bandwidth,
    if there are several."""
    own = curve.representative
    mates = [mate for pair in group.pairs for mate in pair.curves if mate.representative == own]
    sizes = set.intersection(
        *({point.bytes for point in mate.measured if point.bytes >= START_BYTES} for mate in mates)
    )
    if len(mates) < 2 or not sizes:
        return ""
    points = [point for mate in mates if (point := mate.at(max(sizes))) is not None]
    reached = range_of(points, lambda point: point.rate or None, format_rate)
    at = format_bytes(max(sizes))
    slow, _, fast = reached.partition("–")
    if _agree(points):
        return f". All {len(mates)} such paths reach {reached} GB/s at {at}"
    if not fast:
        return f". {len(mates)} such paths reach {reached} GB/s at {at}, rounded"
    return (
        f". Of {len(mates)} such paths the slowest reaches {slow} and the fastest {fast} GB/s at "
        f"{at}"
    )


def _agree(points: Sequence[Point]) -> bool:
    """Whether one bandwidth is within the intervals of all; without intervals, whether all are
    equal."""
    found = [point.measured.rate for point in points]
    ends = [rate.interval or Interval(rate.value, rate.value) for rate in found if rate is not None]
    return max(end.low for end in ends) <= min(end.high for end in ends)


def _summary(found: Sequence[PlaceGroup], any_alone: bool) -> str:
    if not found and any_alone:
        return f"No path was measured at {format_bytes(START_BYTES)} or more, as a bandwidth needs."
    if not found:
        return "No path of this profile was measured alone."
    best = [sustained(best_curve(group.first)) for group in found]
    known = [point.of_bound for point in best if point.of_bound is not None]
    text = f"The best method was found for {count(len(found), 'kind')} of path"
    if known:
        share = span(f"{min(known):.0%}", f"{max(known):.0%}")
        text += f"; where a bound is known, it reaches {share} of it"
    return f"{text}."


def _unanswered(
    fits: Sequence[Fitted], found: Sequence[PlaceGroup], small: Sequence[PlaceGroup]
) -> Iterator[str]:
    if small:
        yield (
            "the fastest method, because no size is large enough for a bandwidth: "
            f"{'; '.join(group.text for group in small)}"
        )
    few = sum(model.postal is None for _, model in fits)
    if few:
        yield f"latency and bandwidth of {count(few, 'curve')}: too few sizes for a fit"
    odd = [
        curve.name
        for curve, model in fits
        if model.postal is not None and not model.is_line and not model.lines
    ]
    if odd:
        yield (
            "a fit of one to three latencies and bandwidths does not describe "
            f"{count(len(odd), 'curve')}: {named(odd)}"
        )
    unknown = [group.text for group in found if sustained(best_curve(group.first)).bound is None]
    if unknown:
        yield f"the share of the bound, because no bound is known: {'; '.join(unknown)}"


def _of_fits(fits: Sequence[Fitted]) -> tuple[Sheet, ...]:
    """Latency, rate, half-peak size, saturation and share of the bound; one row for each class."""
    by_class = grouped((fit[0].representative, fit) for fit in fits)
    classes = [found for found in by_class.values() if any(model.postal for _, model in found)]
    drawn = {line.over for found in classes for _, model in found if (line := model.postal)}
    caption = (
        "Latency and bandwidth (GB/s) of t = latency + bytes / bandwidth, with 95 % intervals by "
        f"bootstrap over {' or '.join(sorted(drawn))}; the half-peak size is their product. "
        "Sustained is the highest bandwidth of large sizes; a curve saturates at the first size "
        f"within {TOLERANCE:.0%} of it. A peak is shown if a smaller size is faster by more. If "
        "a curve is several lines, the latency is that of the first line and the bandwidth that "
        "of the last. ? marks curves that no such lines describe."
    )
    if few := len(by_class) - len(classes):
        caption += f" {few} have too few sizes for a fit."
    return table(
        "Latency, bandwidth and half-peak size",
        ("path", "latency", "bandwidth", "half-peak size", "sustained GB/s", "saturates at",
         "peak GB/s", "of bound", "narrowest"),
        map(_row_of_fit, classes),
        caption,
    )  # fmt: skip


def _row_of_fit(found: Sequence[Fitted]) -> tuple[SheetCell, ...]:
    curve, model = max(found, key=lambda each: len(each[0].measured))
    best, top = sustained(curve), peak(curve)
    name = curve.name if len(found) == 1 else f"{curve.name} and {len(found) - 1} equivalent"
    if not _shows_bandwidth(curve):
        latency, *_ = _cells_of_fit(model)
        return (
            SheetCell(name, series=curve.text),
            latency,
            *[SheetCell("—")] * 4,
            SheetCell(),
            *[SheetCell("—")] * 2,
        )
    higher = top.rate * (1 - TOLERANCE) > best.rate
    saturates = "—" if higher and is_within_host(curve) else format_bytes(saturation(curve))
    at = f"{top.rate_text} at {format_bytes(top.bytes)}"
    return (
        SheetCell(name, series=curve.text),
        *_cells_of_fit(model),
        SheetCell(best.rate_text, series=best.text),
        SheetCell(saturates),
        SheetCell(at, series=top.text) if higher else SheetCell(),
        SheetCell(f"{best.of_bound:.0%}" if best.of_bound is not None else "—"),
        SheetCell(best.bound.narrowest if best.bound is not None else "not known"),
    )


def _cells_of_fit(model: CurveModel) -> tuple[SheetCell, SheetCell, SheetCell]:
    """Latency, rate and half-peak size."""
    postal = model.postal
    if postal is None:
        return SheetCell("—"), SheetCell("—"), SheetCell("—")
    if model.is_line:
        latency = format_time(postal.latency, relative(postal.latency, postal.latency_interval))
        known = relative(postal.inverse_rate, postal.inverse_rate_interval)
        return (
            SheetCell(latency),
            _cell_of_rate(postal.inverse_rate, known),
            SheetCell(_half_peak(postal)),
        )
    if model.lines:
        first, *others = model.lines
        switches = ", ".join(format_bytes(each.low) for each in others)
        return (
            SheetCell(format_time(first.latency) if first.latency > 0 else "—"),
            _cell_of_rate(others[-1].inverse_rate, None),
            SheetCell(f"other line from {switches}"),
        )
    return SheetCell("—", "unclear"), SheetCell("—", "unclear"), SheetCell("no line", "unclear")


def _cell_of_rate(inverse: float, known: float | None) -> SheetCell:
    return SheetCell(format_rate(1 / inverse, known) if inverse > 0 else "—")


def _half_peak(line: Postal) -> str:
    if line.half_peak is None:
        return "—"
    interval = line.half_peak_interval
    known = f" ({_about(interval.low)} to {_about(interval.high)})" if interval else ""
    return f"{_about(line.half_peak)}{known}"


def _about(size: float) -> str:
    """``78 KiB``: two or three digits are all that a fit gives."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 2**power:
            value = size / 2**power
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{size:.0f} B"


def _of_the_best(found: Sequence[PlaceGroup]) -> tuple[Sheet, ...]:
    """Percent of the best achieved at some sizes; one row for each method of a group."""
    return table(
        "Bandwidth in percent of the fastest method between the same two places",
        ("places", "method", *map(format_bytes, SIZES), "sustained GB/s"),
        (row for group in found for row in _rows_of_group(group)),
        "At each size the fastest method is 100, with any memory, executor and settings. The rows "
        "are methods with default settings. Skipped sizes are interpolated, also for methods "
        "with other settings that were measured at few sizes.",
    )


def _rows_of_group(group: PlaceGroup) -> Iterator[tuple[SheetCell, ...]]:
    pair = group.first
    if len(pair.curves) < 2:
        return
    best = {size: max(rate_at(curve, size) or 0.0 for curve in pair.curves) for size in SIZES}
    for curve in sorted(pair.principal, key=lambda each: -sustained(each).rate):
        top = sustained(curve)
        yield (
            SheetCell(group.text),
            SheetCell(method_text(curve.shown_transfer), series=curve.text),
            *(_cell_of_share(curve, size, best[size]) for size in SIZES),
            SheetCell(top.rate_text, series=top.text),
        )


def _cell_of_share(curve: Curve, size: int, best: float) -> SheetCell:
    rate, point = rate_at(curve, size), curve.at(size)
    if rate is None or not best:
        return SheetCell("—")
    return SheetCell(f"{100 * rate / best:.0f}", series=point.text if point else curve.text)
