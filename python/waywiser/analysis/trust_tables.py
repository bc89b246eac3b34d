"""The tables of `waywiser.analysis.trust`."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.answer import Cell, Table
from waywiser.analysis.doubted import KINDS, Doubted
from waywiser.analysis.fitted import estimate_of
from waywiser.analysis.shown import FAMILIES, Shown
from waywiser.analysis.subject import Point
from waywiser.analysis.uncertainty import STEPS, amount, blocks_differ_by, uncertainty
from waywiser.stats.order import median


def of_families(points: Sequence[Point]) -> Table | None:
    """How uncertain the numbers of each family of paths are."""
    families: dict[str, list[Point]] = {}
    known: dict[str, str] = {}
    for point in points:
        curve = point.line.curve
        if curve not in known:
            known[curve] = Shown(curve, (point.line,)).family
        families.setdefault(known[curve], []).append(point)
    if not families:
        return None
    ordered = sorted(families.items(), key=lambda item: FAMILIES.index(item[0]))
    return Table(
        title="How uncertain numbers are",
        columns=(
            "paths", "series", "converged", *(f"within {step:.0%}" for step in STEPS),
            "typically", "blocks differ by", "worst",
        ),
        rows=tuple(_row_of_family(family, members) for family, members in ordered),
        caption="Uncertain by half the interval, or half of what blocks differ by where that is "
        "more, in shares of the value; typically: half of the series are less.",
    )  # fmt: skip


def _row_of_family(family: str, points: Sequence[Point]) -> tuple[Cell, ...]:
    known = [(value, point) for point in points if (value := uncertainty(point)) is not None]
    values = [value for value, _ in known]
    differences = [
        blocks_differ_by(point) for point in points if len(estimate_of(point).blocks) > 1
    ]
    worst, at = max(known, key=lambda each: each[0], default=(None, points[0]))
    converged = sum(estimate_of(point).converged for point in points)
    return (
        Cell(family),
        Cell(str(len(points))),
        Cell(f"{converged / len(points):.0%}"),
        *(Cell(f"{sum(v <= step for v in values) / len(points):.0%}") for step in STEPS),
        Cell(f"{median(values):.1%}" if values else "—"),
        Cell(f"{median(differences):.1%}" if differences else "—"),
        Cell(amount(worst) if worst is not None else "—", series=at.line.workload),
    )


def of_doubts(doubts: Sequence[Doubted], of: int) -> Table | None:
    """Each kind of doubt with its counts and its remedy."""
    if not doubts:
        return None
    return Table(
        title="Doubts",
        columns=("kind", "series", "share", "typically", "at most", "remedy"),
        rows=tuple(_row_of_doubt(each, of) for each in doubts),
        caption="The weightiest first: those that make numbers wrong, then by series times size.",
    )


def _row_of_doubt(found: Doubted, of: int) -> tuple[Cell, ...]:
    def share(value: float | None) -> str:
        return amount(value, 1) if value is not None else "—"

    wrong = KINDS[found.kind].wrong
    return (
        Cell(found.kind, mark="no" if wrong else ""),
        Cell(str(len(found.points))),
        Cell(f"{len(found.points) / of:.0%}"),
        Cell(share(found.typical)),
        Cell(share(found.most), series=found.worst.line.workload),
        Cell(found.remedy),
    )
