"""What a model has found: curves, and what transfers share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.model.curve import CurveModel
from waywiser.model.machine_model import MachineModel
from waywiser.model.texts import bandwidth_text, form_text, latency_text, shared_capacities
from waywiser.report.parts import Sheet, SheetColumn
from waywiser.words.number_format import format_time


def curve_sheet(curves: Sequence[CurveModel]) -> Sheet:
    """The parameters of single transfers."""
    return Sheet.of(
        "Latency and bandwidth of single transfers",
        (
            SheetColumn("path", folds=True),
            SheetColumn("latency", number=True),
            SheetColumn("GB/s", number=True),
            SheetColumn("sizes", number=True),
            "predicted from",
            SheetColumn("deviation of held-out sizes", number=True, short="held-out sizes"),
        ),
        (
            (
                curve.text,
                latency_text(curve.latency),
                bandwidth_text(curve.inverse_rate),
                len(curve.sizes),
                form_text(curve),
                "—" if curve.error is None else f"{curve.error:.1%}",
            )
            for curve in curves
        ),
        "In parentheses: 95 % intervals. Held-out sizes: the median deviation of each size from "
        "what the others predict.",
    )


def capacity_sheet(model: MachineModel, *, everything: bool = False) -> Sheet:
    """What carries several transfers at once; ``everything``: also links that one transfer
    fills."""
    return Sheet.of(
        "What transfers share",
        (
            SheetColumn("resource", folds=True),
            SheetColumn("method", folds=True),
            SheetColumn("GB/s, 95 % interval", number=True, short="GB/s"),
            SheetColumn("shared by", folds=True),
            SheetColumn("sets that show it", number=True, short="sets"),
        ),
        [*_capacities(model, everything), *_queues(model)],
    )


def _capacities(model: MachineModel, everything: bool) -> Iterator[tuple[object, ...]]:
    for each in shared_capacities(model):
        own = each.capacity
        if everything or own.basis == "sets":
            sets = len(own.rests_on) if own.basis == "sets" else "one fills it"
            yield own.resource, own.method, each.rate, each.sharers, sets


def _queues(model: MachineModel) -> Iterator[tuple[object, ...]]:
    for queue in model.capacities.queues:
        end = "out of" if queue.end == "source" else "into"
        gap = f"{format_time(queue.gap)} between transfers"
        one = "one transfer runs after another"
        yield f"queue {end} each GPU", queue.method, gap, one, len(queue.rests_on)
