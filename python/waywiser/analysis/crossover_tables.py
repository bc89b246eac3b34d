"""The tables of `waywiser.analysis.crossovers`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from waywiser.analysis.answer import Cell, Mark, Table
from waywiser.analysis.duels import Duel, timed_of
from waywiser.analysis.fitted import estimate_of, seconds_at
from waywiser.analysis.subject import Curve, Point, Subject
from waywiser.analysis.uncertainty import amount
from waywiser.analysis.ways import Group, sizes_of, way
from waywiser.series.estimate import Estimate
from waywiser.series.overtaking import Overtaking, overtaking
from waywiser.stats.duel import EVEN, UNKNOWN, Stretch, Timed
from waywiser.stats.policy import TOLERANCE, ranges
from waywiser.topology.traits import Traits
from waywiser.words import Path, Transfer, format_bytes
from waywiser.words.number_format import format_rate, format_time

MOST_ROWS = 40
MATTERS = 0.10
"""A way that is never better by more is no reason to choose."""
LARGE = 2**20
"""From here on a way is told by its rate, below by its time."""


def sizes_text(stretch: Stretch) -> str:
    """``at 4 KiB``, ``from 8 B to 32 KiB``."""
    if stretch.low == stretch.high:
        return f"at {format_bytes(stretch.low)}"
    return f"from {format_bytes(stretch.low)} to {format_bytes(stretch.high)}"


def of_ways(found: Sequence[Group], traits: Traits) -> Table | None:
    """Use which way where: a row for each range of sizes between two places."""
    rows = [row for group in found for row in _rows_of_group(group, traits)]
    if not rows:
        return None
    return Table(
        title="Use which way where",
        columns=("places", "sizes", "way", "it does", "next best", "takes longer by"),
        rows=tuple(rows[:MOST_ROWS]),
        caption="The fewest changes by which no size is known to take more than "
        f"{TOLERANCE:.0%} longer than by the fastest way, of all that were measured; from "
        "call to completion, as an application sees it. Sizes that a way left out are "
        "interpolated. Write-combined memory, which CPUs read slowly, is left out where pinned "
        "memory does the same. The next best is another way over the same sizes, at its best and "
        "at its worst." + _left(len(rows)),
    )


def _rows_of_group(group: Group, traits: Traits) -> Iterator[tuple[Cell, ...]]:
    """Of all settings that were measured, those by default first."""
    usual = group.first.principal
    curves = sorted(
        _for_anything(group.first.curves, traits), key=lambda each: (each not in usual, each.text)
    )
    if len(curves) < 2:
        return
    sizes = sizes_of(curves)
    timed = [[_timed_at(curve, size) for size in sizes] for curve in curves]
    times = [[each.seconds if each is not None else None for each in row] for row in timed]
    for told in ranges(timed):
        row = times[told.way]
        inside = [n for n in range(told.first, told.last + 1) if row[n] is not None]
        first, last = inside[0], inside[-1]
        other, margins = _next_best(times, told.way, inside)
        yield (
            Cell(group.text),
            Cell(_span(format_bytes(sizes[first]), format_bytes(sizes[last]))),
            _name_cell(curves, told.way),
            Cell(_span(_does(row[first], sizes[first]), _does(row[last], sizes[last]))),
            _name_cell(curves, other),
            Cell(_span(_share(min(margins)), _share(max(margins))) if margins else "—"),
        )


def _for_anything(curves: Sequence[Curve], traits: Traits) -> list[Curve]:
    """Without memory that GPUs reach exactly as another kind, if the other was measured too. So is
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


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _share(value: float) -> str:
    return amount(max(value, 0))


def _name_cell(curves: Sequence[Curve], n: int | None) -> Cell:
    transfer = curves[n].transfer if n is not None else None
    if n is None or transfer is None:
        return Cell("none was measured there")
    return Cell(way(transfer), series=curves[n].text)


def _next_best(
    times: Sequence[Sequence[float | None]], chosen: int, inside: Sequence[int]
) -> tuple[int | None, list[float]]:
    """(the way that loses least over these sizes, by how much at each)."""
    found: dict[int, list[float]] = {}
    for other, row in enumerate(times):
        margins = [
            theirs / ours - 1
            for n in inside
            if (theirs := row[n]) is not None and (ours := times[chosen][n]) is not None
        ]
        if other != chosen and len(margins) == len(inside):
            found[other] = margins
    if not found:
        return None, []
    best = min(found, key=lambda n: sum(found[n]))
    return best, found[best]


def _timed_at(curve: Curve, size: int) -> Timed | None:
    point = curve.at(size)
    if point is None:
        seconds = seconds_at(curve, size, _seen_seconds)
        return Timed(seconds, None) if seconds is not None else None
    return timed_of(estimate_of(point), host=True)


def _seen_seconds(point: Point) -> float:
    """From call to completion, where somebody took that."""
    return timed_of(estimate_of(point), host=True).seconds


def _does(seconds: float | None, size: int) -> str:
    if seconds is None:
        return "—"
    return f"{format_rate(size / seconds)} GB/s" if size >= LARGE else format_time(seconds)


def of_duels(fought: Sequence[Duel]) -> Table | None:
    """Who wins where, of ways that differ in one thing."""
    told = [each for each in fought if each.most >= MATTERS]
    if not told:
        return None
    even = len(fought) - len(told)
    return Table(
        title="Duels",
        columns=("places", "in common", "one", "other", "one is faster", "other is faster"),
        rows=tuple(_row_of_duel(each) for each in told[:MOST_ROWS]),
        caption="Sizes at which one is faster, with how much longer the other takes; where "
        f"intervals separate and by more than {EVEN:.0%}, without intervals by {UNKNOWN:.0%}; at a "
        f"single size by {UNKNOWN:.0%} or where blocks agree. ✓ at all sizes."
        + (f" {even} further pairs never differ by {MATTERS:.0%}." if even else "")
        + _left(len(told)),
    )


def _row_of_duel(found: Duel) -> tuple[Cell, ...]:
    return (
        Cell(found.pair.text + (f" and {found.of} alike" if found.of else "")),
        Cell(found.common),
        Cell(found.names[0], series=found.first.text),
        Cell(found.names[1], series=found.second.text),
        _won(found, "first"),
        _won(found, "second"),
    )


def _won(found: Duel, who: str) -> Cell:
    mine = [stretch for stretch in found.stretches if stretch.winner == who]
    if not mine:
        return Cell("—")
    text = "; ".join(
        f"{sizes_text(each)}: {_span(_share(each.least), _share(each.most))}" for each in mine
    )
    mark: Mark = "yes" if len(mine) == len(found.stretches) else ""
    return Cell(text, mark)


def laid_out(subject: Subject) -> list[Overtaking]:
    """The fastest way of each list and box over its pieces, as an application sees it."""
    found: list[tuple[Transfer, Estimate]] = [
        (transfer, _seen(estimate_of(point)))
        for curve in subject.curves
        if curve.workload.cache == "warm"
        for point in curve.points
        if (transfer := point.workload.transfer) is not None
    ]
    return overtaking(found)


def _seen(found: Estimate) -> Estimate:
    if found.host_median is None:
        return found
    return msgspec.structs.replace(found, median=found.host_median, interval=found.host_interval)


def of_layouts(lists: Sequence[Overtaking]) -> Table | None:
    """The fastest way by size of pieces."""
    if not lists:
        return None
    runs = sorted({each.run for found in lists for each in found.fastest})
    largest = sorted(lists, key=lambda each: -each.bytes)[:MOST_ROWS]
    return Table(
        title="Lists and boxes: the fastest way by size of pieces",
        columns=("memories", "layout", "bytes", *map(format_bytes, runs)),
        rows=tuple(
            _row_of_layout(each, runs)
            for each in sorted(largest, key=lambda each: (each.ends, each.kind, each.bytes))
        ),
        caption="Of a list the pieces, of a box the rows are of the size above each column; from "
        "call to completion. How much longer the second fastest takes is in brackets; ? where the "
        "intervals of the two overlap." + _left(len(lists)),
    )


def _row_of_layout(found: Overtaking, runs: Sequence[int]) -> tuple[Cell, ...]:
    by_run = {each.run: each for each in found.fastest}
    cells = []
    for run in runs:
        best = by_run.get(run)
        if best is None:
            cells.append(Cell("—"))
        else:
            mark: Mark = "" if best.clear else "unclear"
            cells.append(Cell(f"{best.way} ({_share(best.margin)})", mark))
    return (Cell(found.ends), Cell(found.kind), Cell(format_bytes(found.bytes)), *cells)


def _left(rows: int) -> str:
    return f" {rows - MOST_ROWS} further rows are left out." if rows > MOST_ROWS else ""
