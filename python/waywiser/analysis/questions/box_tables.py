"""Which method to use for boxes, by the size of their rows. Lists are in the policy."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.questions.duels import margins_text
from waywiser.curves.answer import Cell, Mark, Table, table
from waywiser.curves.subject import Subject
from waywiser.curves.texts import FROM_CALL
from waywiser.profile.estimate import Estimate
from waywiser.profile.layout_crossover import LayoutCrossover, layout_crossovers
from waywiser.words import Transfer, format_bytes


def fastest_by_row(subject: Subject) -> list[LayoutCrossover]:
    """The fastest method of each box over its rows."""
    found: list[tuple[Transfer, Estimate]] = [
        (transfer, point.measured)
        for curve in subject.curves
        if curve.workload.cache == "warm"
        for point in curve.measured
        if (transfer := point.workload.transfer) is not None
    ]
    return [each for each in layout_crossovers(found) if each.kind == "box"]


def box_table(boxes: Sequence[LayoutCrossover]) -> tuple[Table, ...]:
    """The fastest method by size of rows."""
    runs = sorted({each.run for found in boxes for each in found.fastest})
    return table(
        "Boxes: the fastest method by size of rows",
        ("memories", "bytes", *map(format_bytes, runs)),
        (_row_of_box(each, runs) for each in boxes),
        "Columns: the size of the rows. "
        f"{FROM_CALL} In brackets: by how much longer the second fastest takes; ? if the "
        "intervals of the two overlap. ≈: not measured, but interpolated between the next smaller "
        "and the next larger rows; ? unless both have the same method without ?.",
    )


def _row_of_box(found: LayoutCrossover, runs: Sequence[int]) -> tuple[Cell, ...]:
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
    return (Cell(found.ends), Cell(format_bytes(found.bytes)), *cells)
