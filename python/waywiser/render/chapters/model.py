"""The model that is kept of a profile: what transfers share, its parameters, how it predicts.

Without a model that `waywiser predict` has fitted before there is no such chapter: a fit
would take longer than the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from waywiser.curves import capital, label_of
from waywiser.model.errors import ModelError
from waywiser.model.held_out import accuracy
from waywiser.model.machine_model import MachineModel
from waywiser.model.prediction import Prediction, Predictor
from waywiser.model.texts import first_of_classes, not_identified
from waywiser.render.chapters.each import each as each_machine
from waywiser.render.entry import Entry
from waywiser.render.parts import Block, Fold, Listing, Section, Sheet, Words, numbers
from waywiser.render.views.model import capacity_sheet, curve_sheet
from waywiser.words import Workload, count, format_time, with_sizes

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
        return self.prediction.interval.contains(self.seconds)


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
        yield Words(f"{capital(finding)}.")
    caption = "Links that one transfer fills are not listed."
    sheet = msgspec.structs.replace(capacity_sheet(found), caption=caption)
    if sheet.rows:
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


def _curves(found: MachineModel) -> Iterator[Block]:
    known = [curve for curve in found.curves if curve.latency.value or curve.inverse_rate.value]
    messages = {each.name for each in found.messages}
    shown = first_of_classes([c for c in known if c.text not in messages], found.machine)
    shown += [curve for curve in known if curve.text in messages]
    reasons = tuple(text.removesuffix(".") for text in not_identified(found.curves))
    blocks: list[Block] = [curve_sheet(shown[:MOST_ROWS])] if shown else []
    if reasons:
        blocks.append(Listing(reasons))
    if blocks:
        paths = count(len(shown[:MOST_ROWS]), "path")
        yield Fold(f"Latency and bandwidth: {paths}", tuple(blocks))


def _sets(sets: Sequence[PredictedSet]) -> Sheet:
    shown = sets[:MOST_ROWS]
    rows = (
        (
            with_sizes(label_of(each.workload)),
            format_time(each.seconds, 0.005),
            format_time(each.prediction.span, 0.005),
            f"{each.error:+.1%}",
            "yes" if each.is_inside else "no",
            "yes" if each.is_fitted else "no",
            ", ".join(each.prediction.unknown),
        )
        for each in shown
    )
    more = len(sets) - len(shown)
    figures = numbers("measured", "predicted", "error")
    return Sheet.of(
        "Predicted against measured",
        ("set", *figures, "in the interval", "fitted", "unknown limit"),
        rows,
        "The largest errors first." + (f" {more} more sets have smaller errors." if more else ""),
    )
