"""The model that is kept in a profile: what transfers share, its parameters, how it predicts.

A profile without a kept model has no such chapter: a fit would take longer than the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.curves.name import label_of
from waywiser.model.errors import ModelError
from waywiser.model.held_out import accuracy
from waywiser.model.machine_model import MachineModel
from waywiser.model.prediction import Prediction, Predictor
from waywiser.model.texts import (
    bandwidth_text,
    first_of_classes,
    form_text,
    latency_text,
    not_identified,
    shared_capacities,
)
from waywiser.report.chapters.each import each as each_machine
from waywiser.report.entry import Entry
from waywiser.report.parts import Block, Fold, Listing, Section, Sheet, SheetCell, SheetRow, Words
from waywiser.words import Workload
from waywiser.words.number_format import count, format_time
from waywiser.words.sizes_in_text import with_sizes

MOST_ROWS = 100
"""Rows of a table; the rest is counted."""


class PredictedSet(NamedTuple):
    """A measured set beside its prediction."""

    workload: Workload
    seconds: float
    """As measured."""
    prediction: Prediction
    is_fitted: bool

    @property
    def error(self) -> float:
        """Predicted over measured time, minus 1."""
        return self.prediction.span / self.seconds - 1

    @property
    def is_inside(self) -> bool:
        """Whether the measured time is in the interval."""
        around = self.prediction.interval
        return around.low <= self.seconds <= around.high


def model(entries: Sequence[Entry]) -> Section:
    """The model of each machine that has one."""
    return each_machine(entries, "model", "Model of transfers", lambda entry: [*_blocks(entry)])


def _blocks(entry: Entry) -> Iterator[Block]:
    found = entry.model
    if found is None:
        return
    sets = predicted_sets(entry, found)
    yield Words(_lead(found, sets), "lead")
    yield Words(
        "waywiser predict says what other sizes and sets take. On a busy host sets with host "
        "memory take longer than the model says.",
        "note",
    )
    for finding in found.capacities.findings:
        yield Words(f"{finding[:1].upper()}{finding[1:]}.")
    if (sheet := _capacities(found)).rows:
        yield Fold(f"What transfers share: {count(len(sheet.rows), 'limit')}", (sheet,))
    yield from _curves(found)
    if sets:
        title = f"Predicted against measured: {count(len(sets), 'set')}"
        yield Fold(title, (_sets(sets),))


def _lead(found: MachineModel, sets: Sequence[PredictedSet]) -> str:
    text = f"Fitted to {count(len(found.curves), 'curve')} of single transfers"
    if not sets:
        return f"{text}."
    fitted = sum(each.is_fitted for each in sets)
    text += f" and {count(fitted, 'set')}"
    shown = [each for each in sets if any(p.kind == "gpu" for p in each.workload.places)]
    if not shown:
        return f"{text}."
    row = accuracy("", [each.error for each in shown], [each.is_inside for each in shown])
    left = len(sets) - len(shown)
    others = f" {count(left, 'set')} within the host are not counted." if left else ""
    return (
        f"{text}. Predicted and measured times of {count(len(shown), 'set')} with GPUs differ by "
        f"{row.median:.1%} in the median, and by up to {row.p95:.1%} in 95 % of them.{others}"
    )


def predicted_sets(entry: Entry, found: MachineModel) -> list[PredictedSet]:
    """The measured sets whose transfers the model knows, those that it predicts worst first."""
    predictor = Predictor(found)
    fitted = {text for each in found.capacities.capacities for text in each.rests_on}
    fitted |= {text for queue in found.capacities.queues for text in queue.rests_on}
    sets = []
    for curve in entry.subject.curves:
        for point in curve.measured if len(curve.workload.transfers) > 1 else ():
            if point.workload.shared or point.workload.cache != "warm" or point.seconds <= 0:
                continue
            try:
                prediction = predictor.predict(point.workload)
            except ModelError:
                continue
            is_fitted = str(point.workload) in fitted
            sets.append(PredictedSet(point.workload, point.seconds, prediction, is_fitted))
    return sorted(sets, key=lambda each: -abs(each.error))


def _capacities(found: MachineModel) -> Sheet:
    rows = []
    for shared in shared_capacities(found):
        own = shared.capacity
        if own.basis == "sets":
            cells = (
                SheetCell(own.resource),
                SheetCell(own.method),
                SheetCell(shared.rate, number=True),
                SheetCell(shared.sharers),
                SheetCell(str(len(own.rests_on)), number=True),
            )
            rows.append(SheetRow(cells))
    for queue in found.capacities.queues:
        end = "out of" if queue.end == "source" else "into"
        cells = (
            SheetCell(f"queue {end} each GPU"),
            SheetCell(queue.method),
            SheetCell(f"{format_time(queue.gap)} between transfers", number=True),
            SheetCell("one transfer runs after another"),
            SheetCell(str(len(queue.rests_on)), number=True),
        )
        rows.append(SheetRow(cells))
    return Sheet(
        "What transfers share",
        ("resource", "method", "GB/s, 95 % interval", "shared by", "sets that show it"),
        tuple(rows),
        "Links that one transfer fills are not listed.",
    )


def _curves(found: MachineModel) -> Iterator[Block]:
    known = [curve for curve in found.curves if curve.latency.value or curve.inverse_rate.value]
    messages = {each.name for each in found.messages}
    shown = first_of_classes([c for c in known if c.text not in messages], found.machine)
    shown += [curve for curve in known if curve.text in messages]
    rows = [
        SheetRow(
            (
                SheetCell(curve.text),
                SheetCell(latency_text(curve.latency), number=True),
                SheetCell(bandwidth_text(curve.inverse_rate), number=True),
                SheetCell(form_text(curve)),
                SheetCell("—" if curve.error is None else f"{curve.error:.1%}", number=True),
            )
        )
        for curve in shown[:MOST_ROWS]
    ]
    sheet = Sheet(
        "Latency and bandwidth of single transfers",
        ("path", "latency", "GB/s", "predicted from", "deviation of held-out sizes"),
        tuple(rows),
        "Of equal paths the first. With 95 % intervals.",
    )
    reasons = tuple(text.removesuffix(".") for text in not_identified(found.curves))
    blocks: list[Block] = [sheet] if rows else []
    if reasons:
        blocks.append(Listing(reasons))
    if blocks:
        yield Fold(f"Latency and bandwidth: {count(len(rows), 'path')}", tuple(blocks))


def _sets(sets: Sequence[PredictedSet]) -> Sheet:
    rows = [
        SheetRow(
            (
                SheetCell(with_sizes(label_of(each.workload))),
                SheetCell(format_time(each.seconds, 0.005), number=True),
                SheetCell(format_time(each.prediction.span, 0.005), number=True),
                SheetCell(f"{each.error:+.1%}", number=True),
                SheetCell("yes" if each.is_inside else "no"),
                SheetCell("yes" if each.is_fitted else "no"),
                SheetCell(", ".join(each.prediction.unknown)),
            )
        )
        for each in sets[:MOST_ROWS]
    ]
    more = len(sets) - len(rows)
    return Sheet(
        "Predicted against measured",
        ("set", "measured", "predicted", "error", "in the interval", "fitted", "unknown limit"),
        tuple(rows),
        "The largest errors first." + (f" {more} more sets have smaller errors." if more else ""),
    )
