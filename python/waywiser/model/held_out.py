"""How well a model predicts what it was not fitted to, by a profile's own measurements.

Of each curve with enough sizes every second size is held out, and of curves with fewer sizes,
those that have the shape of a longer one. Sets are those that the survey marked as validation
(``survey --model``), which no model is ever fitted to. Of several messages every second number is
held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.curves import origin_of, points_of
from waywiser.model.capacity import CapacityModel, CapacityModelReader, SetPrediction
from waywiser.model.count_table import CountKey
from waywiser.model.curve import CurveTimes, fit_curves, times_of
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import is_of_copies, profile_capacities
from waywiser.model.messages import OF_SEVERAL, ONE_SENDER, classes_of, curve_of, messages_of
from waywiser.model.prediction_interval import PathKind
from waywiser.model.rate import held_out_deviations
from waywiser.model.timed_sets import TimedSet, timed
from waywiser.profile import Profile, SeriesFrame
from waywiser.profile.planned import planned
from waywiser.stats import LEAST_SIZES, CurveBlocks
from waywiser.stats.scatter import medians
from waywiser.words import Value

LEAST_OF_CURVE = 3
"""Sizes of a curve from which on one can be held out: the ends never are."""

DRAWS = 2
"""Draws of the intervals of parameters, which no prediction needs."""

COUNTED: tuple[str, ...] = ("max-rate", ONE_SENDER, *OF_SEVERAL)
"""Tests of several messages whose number varies."""


class HeldOutSize(Value, frozen=True):
    """A size that was held out of its curve."""

    kind: PathKind
    error: float
    """Predicted over measured time, minus 1."""
    is_in_interval: bool


class AccuracyRow(Value, frozen=True):
    """How well one class of measurements is predicted."""

    what: str
    number: int
    median: float
    """The median of relative errors without their signs, as a fraction."""
    p95: float
    worst: float
    coverage: float | None
    """The share of measurements in their 95 % interval; None if the interval is made from them."""


class ValidatedSet(Value, frozen=True):
    """A measured set beside its prediction."""

    timed: TimedSet
    prediction: SetPrediction

    @property
    def error(self) -> float:
        """Predicted over measured span, minus 1."""
        return self.prediction.span / self.timed.span - 1

    @property
    def is_in_interval(self) -> bool:
        return self.prediction.interval.contains(self.timed.span)

    @property
    def transfer_errors(self) -> tuple[float, ...]:
        """Predicted over measured time of each transfer, minus 1; empty if they were not timed."""
        own = self.timed.transfer_seconds
        if not own:
            return ()
        pairs = zip(self.prediction.own_seconds, own, strict=True)
        return tuple(predicted / measured - 1 for predicted, measured in pairs)

    @property
    def are_transfers_in_interval(self) -> tuple[bool, ...]:
        """Whether each measured time is in its interval; empty if they were not timed."""
        own = self.timed.transfer_seconds
        if not own:
            return ()
        rows = zip(self.prediction.intervals, self.prediction.waited, own, strict=True)
        return tuple(around.contains(waited + measured) for around, waited, measured in rows)


class Validation(Value, frozen=True):
    """What `validation` finds."""

    rows: tuple[AccuracyRow, ...]
    sets: tuple[ValidatedSet, ...] = ()
    notes: tuple[str, ...] = ()


def thinned(curve: CurveTimes, kept: Sequence[int]) -> CurveTimes:
    """The curve with the sizes at these positions alone."""
    blocks = curve.blocks
    chosen = CurveBlocks(
        [blocks.bytes[n] for n in kept],
        [blocks.blocks[n] for n in kept],
        [blocks.within[n] for n in kept],
        blocks.alike,
    )
    scatter, least = ([own[n] for n in kept] if own else () for own in (curve.scatter, curve.least))
    return curve._replace(blocks=chosen, scatter=tuple(scatter), least=tuple(least))


def divided(curve: CurveTimes) -> tuple[list[int], list[int]]:
    """(positions that are fitted, positions that are held out): every second, and never an end."""
    count = len(curve.blocks.bytes)
    kept = sorted({*range(0, count, 2), count - 1})
    return kept, [n for n in range(count) if n not in kept]


def held_out_sizes(curves: Sequence[CurveTimes]) -> Iterator[HeldOutSize]:
    """Sizes that were held out of curves, predicted by the others."""
    long = [curve for curve in curves if len(curve.blocks.bytes) >= LEAST_SIZES]
    few = [curve for curve in curves if LEAST_OF_CURVE <= len(curve.blocks.bytes) < LEAST_SIZES]
    yield from _predicted(long, [])
    yield from _predicted(few, long)


def _predicted(curves: Sequence[CurveTimes], shapes: Sequence[CurveTimes]) -> Iterator[HeldOutSize]:
    fitted = [thinned(curve, divided(curve)[0]) for curve in curves]
    models = fit_curves([*fitted, *shapes], DRAWS)[: len(fitted)]
    for curve, model in zip(curves, models, strict=True):
        if shapes and not model.borrowed_from:
            continue
        seconds = medians(curve.blocks.table).tolist()
        for n in divided(curve)[1]:
            found = model.predict(curve.blocks.bytes[n])
            if found is not None:
                inside = found.interval.contains(seconds[n])
                yield HeldOutSize(curve.kind, found.seconds / seconds[n] - 1, inside)


def validation(profile: Profile) -> Validation:
    """How well models of this profile predict its own measurements that are held out. Raises
    `ProfileError` for a damaged file."""
    frame = SeriesFrame.read(profile)
    machine = profile.machine
    messages = messages_of(points_of(frame), machine.ranks)
    curves = [each for each in times_of(frame, machine) if is_of_copies(each.text, machine)]
    of_messages = [curve_of(each, messages) for each in classes_of(messages)]
    rows = [*_size_rows("size", curves), *_size_rows("size of a message", of_messages)]
    for key in sorted({key for each in messages if (key := CountKey.of(each)) is not None}):
        if key.test in COUNTED:
            off = held_out_deviations(messages, key)
            if off:
                rows.append(accuracy(f"number of messages, {key.name}", off))
    notes = [] if rows else ["no curve has sizes that can be held out"]
    sets = validation_sets(profile, frame)
    found: list[ValidatedSet] = []
    if sets:
        found = validated(profile_capacities(profile, frame), sets)
        rows += _set_rows(found)
        if len(found) < len(sets):
            notes.append(f"{len(sets) - len(found)} validation sets are not in the model")
    elif not messages:
        measures = ": survey the machine with --model" if machine.gpus else ": they need a GPU"
        if origin_of(machine, profile.environment) != "surveyed":
            measures = ""
        notes.append(f"the profile has no validation sets{measures}")
    return Validation(tuple(rows), tuple(found), tuple(notes))


def accuracy(
    what: str, errors: Sequence[float], inside: Sequence[bool] | None = None
) -> AccuracyRow:
    """The row of some relative errors, of which there are any."""
    import numpy as np

    sizes = np.abs(np.array(errors, float))
    middle, most = np.quantile(sizes, (0.5, 0.95))
    coverage = sum(inside) / len(inside) if inside else None
    return AccuracyRow(what, len(errors), float(middle), float(most), float(sizes.max()), coverage)


def _size_rows(what: str, curves: Sequence[CurveTimes]) -> Iterator[AccuracyRow]:
    found = list(held_out_sizes(curves))
    for kind in dict.fromkeys(each.kind for each in found):
        own = [each for each in found if each.kind == kind]
        errors, inside = [e.error for e in own], [e.is_in_interval for e in own]
        yield accuracy(f"{what}, {kind}", errors, inside)


def _set_rows(found: Sequence[ValidatedSet]) -> Iterator[AccuracyRow]:
    for has_host, text in ((True, "set with host memory"), (False, "set of GPUs")):
        own = [each for each in found if each.timed.has_host is has_host]
        if own:
            inside = [each.is_in_interval for each in own]
            yield accuracy(text, [each.error for each in own], inside)
        of_transfers = [error for each in own for error in each.transfer_errors]
        if of_transfers:
            inside = [is_in for each in own for is_in in each.are_transfers_in_interval]
            yield accuracy(f"{text}, each transfer", of_transfers, inside)


def validation_sets(profile: Profile, frame: SeriesFrame | None = None) -> list[TimedSet]:
    """The measured sets that no model is fitted to."""
    identities = set(planned(profile.plan_json).validation)
    _, sets = timed(frame or SeriesFrame.read(profile))
    return [each for each in sets if each.workload.identity in identities]


def validated(model: CapacityModel, sets: Iterable[TimedSet]) -> list[ValidatedSet]:
    """Measured sets beside what the model predicts, without those that it cannot answer."""
    reader = CapacityModelReader(model)
    found = []
    for each in sets:
        try:
            found.append(ValidatedSet(each, reader.predicted(each.workload)))
        except ModelError:
            continue
    return found
