"""Which method to use for boxes, by the size of their rows. Lists are in the policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.questions.duels import margins_text
from waywiser.curves.answer import Cell, Table, table
from waywiser.curves.texts import FROM_CALL
from waywiser.profile.layout_crossover import LayoutCrossover
from waywiser.words import format_bytes


def box_table(boxes: Sequence[LayoutCrossover]) -> tuple[Table, ...]:
    """The fastest method by size of rows."""
    runs = sorted({each.run for found in boxes for each in found.fastest})
    return table(
        "Boxes: the fastest method by size of rows",
        ("memories", "bytes", *map(format_bytes, runs)),
        (
            (Cell(each.ends), Cell(format_bytes(each.bytes)), *_cells_of_box(each, runs))
            for each in boxes
        ),
        "Columns: the size of the rows. "
        f"{FROM_CALL} In brackets: by how much longer the second fastest takes; ? if the "
        "intervals of the two overlap. ≈: not measured, but interpolated between the next smaller "
        "and the next larger rows; ? unless both have the same method without ?.",
    )


def _cells_of_box(found: LayoutCrossover, runs: Sequence[int]) -> Iterator[Cell]:
    by_run = {each.run: each for each in found.fastest}
    for run in runs:
        if best := by_run.get(run):
            about = "≈ " if best.interpolated else ""
            margin = margins_text(best.margin, best.margin)
            yield Cell(f"{about}{best.method} ({margin})", "" if best.clear else "unclear")
        else:
            yield Cell("—")
