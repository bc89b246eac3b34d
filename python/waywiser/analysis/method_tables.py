"""Which method to use: by the size of a transfer, and by the size of the pieces of a layout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from waywiser.analysis.answer import Cell, Mark, Table, table
from waywiser.analysis.duels import margins_text, timed_of
from waywiser.analysis.fitted import seconds_at
from waywiser.analysis.methods import PlaceGroup, method_text
from waywiser.analysis.subject import MeasuredCurve, Subject
from waywiser.analysis.texts import FROM_CALL, size_span, span
from waywiser.hardware.traits import Traits
from waywiser.series.estimate import Estimate
from waywiser.series.layout_crossover import LayoutCrossover, layout_crossovers
from waywiser.stats.method_choice import TOLERANCE, Timed, policy
from waywiser.words import Path, Transfer, format_bytes
from waywiser.words.number_format import format_rate, format_time

LARGE = 2**20
"""Size from which a method is reported by its bandwidth, below by its time."""


def policy_table(found: Sequence[PlaceGroup], traits: Traits) -> tuple[Table, ...]:
    """A row for each range of sizes between two places."""
    return table(
        "Which method to use",
        ("places", "sizes", "method", "bandwidth or time", "second fastest", "takes longer by"),
        (row for group in found for row in _rows_of_group(group, traits)),
        "At each size the first method, those with default settings before others, that is not "
        "known to be slower than the fastest one. A method stays for a neighbouring size if it "
        f"loses no more than {TOLERANCE:.0%} there. {FROM_CALL} Skipped "
        "sizes are interpolated. Write-combined memory, which CPUs read slowly, is "
        "not shown if pinned memory was measured too. The second fastest is another method at "
        "the same sizes, with its smallest and its largest difference.",
    )


def _rows_of_group(group: PlaceGroup, traits: Traits) -> Iterator[tuple[Cell, ...]]:
    """Rows for all settings that were measured, those by default first."""
    usual = group.first.principal
    curves = sorted(
        _for_anything(group.first.curves, traits), key=lambda each: (each not in usual, each.text)
    )
    if len(curves) < 2:
        return
    sizes = sorted({point.bytes for curve in curves for point in curve.points})
    timed = [[_timed_at(curve, size) for size in sizes] for curve in curves]
    times = [[each.seconds if each is not None else math.inf for each in row] for row in timed]
    for best in policy(timed):
        row = times[best.method]
        inside = [n for n in range(best.first, best.last + 1) if row[n] < math.inf]
        first, last = inside[0], inside[-1]
        other, margins = _next_best(times, best.method, inside)
        yield (
            Cell(group.text),
            Cell(size_span(sizes[first], sizes[last])),
            _name_cell(curves, best.method),
            Cell(span(_does(row[first], sizes[first]), _does(row[last], sizes[last]))),
            _name_cell(curves, other),
            Cell(margins_text(min(margins), max(margins)) if margins else "—"),
        )


def _for_anything(curves: Sequence[MeasuredCurve], traits: Traits) -> list[MeasuredCurve]:
    """Drops memory that GPUs reach exactly as another kind, if the other was measured too, and
    write-combined memory beside pinned memory: nothing moves faster for it than by a few percent,
    and CPUs read it many times more slowly."""
    paths = {str(curve.path) for curve in curves}

    def stands_for_itself(path: Path | None) -> bool:
        if path is None:
            return True
        ends = (path.source, path.destination)
        same = [msgspec.structs.replace(m, kind=traits.same_memory(m.kind)) for m in ends]
        plain = Path(same[0], same[1], path.executor)
        return plain == path or str(plain) not in paths

    return [curve for curve in curves if stands_for_itself(curve.path)]


def _name_cell(curves: Sequence[MeasuredCurve], n: int | None) -> Cell:
    transfer = curves[n].transfer if n is not None else None
    if n is None or transfer is None:
        return Cell("none was measured")
    return Cell(method_text(transfer), series=curves[n].text)


def _next_best(
    times: Sequence[Sequence[float]], chosen: int, inside: Sequence[int]
) -> tuple[int | None, list[float]]:
    """(the method that loses least over these sizes, by how much at each); None if no other method
    has all of them. A time that is not known is infinite."""
    losses = {
        other: [row[n] / times[chosen][n] - 1 for n in inside]
        for other, row in enumerate(times)
        if other != chosen and all(row[n] < math.inf for n in inside)
    }
    best = min(losses, key=lambda other: sum(losses[other]), default=None)
    return best, losses[best] if best is not None else []


def _timed_at(curve: MeasuredCurve, size: int) -> Timed | None:
    """The time from call to completion, if that was measured."""
    point = curve.at(size)
    if point is not None:
        return timed_of(point.estimate)
    seconds = seconds_at(curve, size, lambda point: timed_of(point.estimate).seconds)
    return Timed(seconds, None) if seconds is not None else None


def _does(seconds: float, size: int) -> str:
    return f"{format_rate(size / seconds)} GB/s" if size >= LARGE else format_time(seconds)


def fastest_by_piece(subject: Subject) -> list[LayoutCrossover]:
    """The fastest method of each list and box over its pieces."""
    found: list[tuple[Transfer, Estimate]] = [
        (transfer, point.estimate)
        for curve in subject.curves
        if curve.workload.cache == "warm"
        for point in curve.points
        if (transfer := point.workload.transfer) is not None
    ]
    return layout_crossovers(found)


def layout_table(lists: Sequence[LayoutCrossover]) -> tuple[Table, ...]:
    """The fastest method by size of pieces."""
    runs = sorted({each.run for found in lists for each in found.fastest})
    return table(
        "Lists and boxes: the fastest method by size of pieces",
        ("memories", "layout", "bytes", *map(format_bytes, runs)),
        (_row_of_layout(each, runs) for each in lists),
        "Columns: the size of the pieces of a list, or of the rows of a box. "
        f"{FROM_CALL} In brackets: by how much longer the second fastest takes; ? if the "
        "intervals of the two overlap. ≈: not measured, but interpolated between the next smaller "
        "and the next larger pieces; ? unless both have the same method without ?.",
    )


def _row_of_layout(found: LayoutCrossover, runs: Sequence[int]) -> tuple[Cell, ...]:
    by_run = {each.run: each for each in found.fastest}
    cells = []
    for run in runs:
        best = by_run.get(run)
        if best is None:
            cells.append(Cell("—"))
        else:
            mark: Mark = "" if best.clear else "unclear"
            about = "≈ " if best.interpolated else ""
            margin = margins_text(best.margin, best.margin)
            cells.append(Cell(f"{about}{best.method} ({margin})", mark))
    return (Cell(found.ends), Cell(found.kind), Cell(format_bytes(found.bytes)), *cells)
