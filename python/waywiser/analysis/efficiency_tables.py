"""The tables of `waywiser.analysis.efficiency`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.answer import Cell, Table
from waywiser.analysis.fitted import (
    SATURATED,
    Fitted,
    estimate_of,
    in_host_memory,
    peak,
    rate_at,
    sustained,
)
from waywiser.analysis.subject import Curve, Point
from waywiser.analysis.ways import Group, representative, way
from waywiser.stats.order import Interval
from waywiser.stats.postal import Postal
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate, format_time

MOST_ROWS = 40
SIZES = (4 * 2**10, 64 * 2**10, 2**20, 16 * 2**20, 256 * 2**20)
"""Of the table that compares ways: a page, a message, and what a program streams."""


def of_fits(fits: Sequence[Fitted]) -> Table | None:
    """Latency, rate, half-peak size, saturation and share of the bound; one row for each class."""
    by_class: dict[str, list[Fitted]] = {}
    for fit in fits:
        by_class.setdefault(representative(fit.curve), []).append(fit)
    told = [found for found in by_class.values() if any(fit.postal for fit in found)]
    if not told:
        return None
    columns = ("path", "latency", "rate", "half-peak size", "sustained GB/s", "saturates at",
               "peak GB/s", "of bound", "narrowest")  # fmt: skip
    drawn = sorted({fit.postal.over for found in told for fit in found if fit.postal is not None})
    left = len(told) - MOST_ROWS
    few = len(by_class) - len(told)
    parts = [
        "Latency and rate (GB/s) of t = latency + bytes / rate, with 95 % intervals by bootstrap "
        f"over {' or '.join(drawn)}; half-peak size is their product. Sustained is the best rate "
        f"of large sizes, saturated what is within {SATURATED:.0%} of it; a peak is told where a "
        "smaller size is faster by more. Where a curve is several lines, the latency is that of "
        "the first and the rate that of the last, and ? marks what no such lines describe.",
        f"Left out are {few} of too few sizes for a fit." if few else "",
        f"{left} further rows are left out." if left > 0 else "",
    ]
    return Table(
        title="Latency, rate and half-peak size",
        columns=columns,
        rows=tuple(_row_of_fit(found) for found in told[:MOST_ROWS]),
        caption=" ".join(filter(None, parts)),
    )


def _row_of_fit(found: Sequence[Fitted]) -> tuple[Cell, ...]:
    fit = max(found, key=lambda each: len(each.curve.points))
    curve, best, top = fit.curve, fit.sustained, peak(fit.curve)
    line = best.line
    name = curve.name if len(found) == 1 else f"{curve.name} and {len(found) - 1} alike"
    higher = top.rate * (1 - SATURATED) > best.rate
    return (
        Cell(name, series=curve.text),
        *_cells_of_fit(fit),
        _rate_cell(best),
        Cell(format_bytes(fit.saturates) if not (higher and in_host_memory(curve)) else "—"),
        Cell(f"{_rate_text(top)} at {format_bytes(top.bytes)}", series=top.line.workload)
        if higher
        else Cell(),
        Cell(f"{line.of_bound:.0%}" if line.of_bound is not None else "—"),
        Cell(line.bound.narrowest if line.bound is not None else "not known"),
    )


def _rate_text(point: Point) -> str:
    return format_rate(point.rate, estimate_of(point).relative)


def _rate_cell(point: Point) -> Cell:
    return Cell(_rate_text(point), series=point.line.workload)


def _cells_of_fit(fit: Fitted) -> tuple[Cell, Cell, Cell]:
    postal = fit.postal
    if postal is None:
        return Cell("—"), Cell("—"), Cell("—")
    if fit.is_line:
        return _latency(postal), _rate(postal), _half(postal)
    if fit.stretches:
        first, last = fit.stretches[0], fit.stretches[-1]
        switches = ", ".join(format_bytes(each.low) for each in fit.stretches[1:])
        rate = format_rate(1 / last.inverse_rate) if last.inverse_rate > 0 else "—"
        return (
            Cell(format_time(first.latency) if first.latency > 0 else "—"),
            Cell(rate),
            Cell(f"other line from {switches}"),
        )
    return Cell("—", "unclear"), Cell("—", "unclear"), Cell("no line", "unclear")


def _latency(fit: Postal) -> Cell:
    return Cell(format_time(fit.latency, _relative(fit.latency_interval, fit.latency)))


def _rate(fit: Postal) -> Cell:
    if fit.inverse_rate <= 0:
        return Cell("—")
    relative = _relative(fit.inverse_rate_interval, fit.inverse_rate)
    return Cell(format_rate(1 / fit.inverse_rate, relative))


def _half(fit: Postal) -> Cell:
    if fit.half_peak is None:
        return Cell("—")
    interval = fit.half_peak_interval
    if interval is None:
        return Cell(_about(fit.half_peak))
    return Cell(f"{_about(fit.half_peak)} ({_about(interval.low)} to {_about(interval.high)})")


def _about(size: float) -> str:
    """``78 KiB``: two or three digits are all that a fit tells."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            value = size / factor
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{size:.0f} B"


def _relative(interval: Interval, value: float) -> float | None:
    return interval.width / 2 / value if value > 0 else None


def of_the_best(found: Sequence[Group]) -> Table | None:
    """Percent of the best achieved at some sizes, by way; one row for each way of a group."""
    rows = [row for group in found for row in _rows_of_group(group)]
    if not rows:
        return None
    left = len(rows) - MOST_ROWS
    return Table(
        title="Percent of the best achieved between the same two places",
        columns=("places", "way", *map(format_bytes, SIZES), "sustained GB/s"),
        rows=tuple(rows[:MOST_ROWS]),
        caption="At each size the fastest way is 100, whatever memory and executor it uses and "
        "however it is set; ways are shown with their settings as by default. Sizes that were left "
        "out are interpolated, also of a way that is set otherwise and was measured at few."
        + (f" {left} further rows are left out." if left > 0 else ""),
    )


def _rows_of_group(group: Group) -> Iterator[tuple[Cell, ...]]:
    pair = group.first
    if len(pair.curves) < 2:
        return
    best = {size: max(rate_at(curve, size) or 0.0 for curve in pair.curves) for size in SIZES}
    for curve in sorted(pair.principal, key=lambda each: -sustained(each).rate):
        if curve.transfer is not None:
            yield (
                Cell(group.text),
                Cell(way(curve.transfer), series=curve.text),
                *(_cell_of_share(curve, size, best[size]) for size in SIZES),
                _rate_cell(sustained(curve)),
            )


def _cell_of_share(curve: Curve, size: int, best: float) -> Cell:
    rate, point = rate_at(curve, size), curve.at(size)
    if rate is None or not best:
        return Cell("—")
    return Cell(f"{100 * rate / best:.0f}", series=point.line.workload if point else curve.text)
