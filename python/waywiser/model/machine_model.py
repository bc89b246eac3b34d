"""The model of a machine: its curves, its capacities and its messages, kept in its profile.

A model is fitted from samples alone, so it can be fitted again at any time. It is kept because that
takes seconds, and a prediction should not. `obtained_model` takes the kept one only if nothing that
it depends on has changed since: the samples, the machine, the schema of the model and the rules by
which it is fitted. A kept model that is damaged, or that has values which no fit gives, is fitted
again too: files come from anyone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec

from waywiser.curves.classes import Classes, Key
from waywiser.curves.point import points_of
from waywiser.machine.machine import Machine
from waywiser.model import capacity
from waywiser.model.alone import TransferCurve, longest
from waywiser.model.capacity import CapacityModel
from waywiser.model.capacity_fit import fit_capacities
from waywiser.model.curve import CurveModel, FittedParameter, fit_curves, times_of
from waywiser.model.errors import ModelError
from waywiser.model.messages import MessageClass, classes_of, curve_of, messages_of
from waywiser.model.rate import CountModel, fit_all_counts
from waywiser.model.timed_sets import timed
from waywiser.profile import Profile
from waywiser.profile.errors import DamagedProfile, ProfileError
from waywiser.profile.locality import decide_sides
from waywiser.profile.planned import planned
from waywiser.profile.profile import KeptModel
from waywiser.profile.series_frame import SeriesFrame
from waywiser.profile.writable import keep_model
from waywiser.words import Value, Workload, json_text

SCHEMA = 2
"""The schema of the JSON form. A kept model of another schema is fitted again."""

RULES = 5
"""The version of the rules that fit curves and messages; those of capacities have their own."""

MOST_SECONDS = 1e9
MOST_BYTES = 2**62


class MachineModel(Value, frozen=True):
    """All that predictions of one machine are made from."""

    surveyed: str
    """When the samples were taken, as the profile says: UTC, ISO 8601."""
    capacities: CapacityModel
    """What transfers share; without curves if nothing of it can be fitted."""
    curves: tuple[CurveModel, ...] = ()
    """Single transfers, by their text; and one curve for each of `messages`, by its name."""
    messages: tuple[MessageClass, ...] = ()
    """Pairs of ranks that take the same time."""
    counts: tuple[CountModel, ...] = ()
    """Several messages at once, by kind of memory and test."""
    schema: int = SCHEMA
    rules: int = RULES

    @property
    def machine(self) -> Machine:
        return self.capacities.machine

    @property
    def is_current(self) -> bool:
        """Whether it has the schema and the rules of this program."""
        own = self.schema, self.rules, self.capacities.schema, self.capacities.rules
        return own == (SCHEMA, RULES, capacity.SCHEMA, capacity.RULES)


class CurveFinder:
    """The curve of a workload of one transfer: its own, else that of an equivalent one."""

    def __init__(self, model: MachineModel) -> None:
        self._own = {curve.text: curve for curve in model.curves}
        self._messages = {each.name for each in model.messages}
        self._classes = Classes(model.machine)

    @cached_property
    def _first(self) -> dict[Key, CurveModel]:
        """The longest curve of each class of equivalent transfers."""
        return longest(
            (self._classes.key(Workload.parse(text)), curve)
            for text, curve in self._own.items()
            if text not in self._messages
        )

    def of(self, workload: Workload) -> CurveModel | None:
        """Returns None if neither the transfer nor an equivalent one was measured. A size that is
        too far from those of the own curve has an equivalent curve, if that reaches it."""
        own = self._own.get(workload.curve)
        if own is None:
            return self._first.get(self._classes.key(workload))
        bytes = workload.size
        if own.text in self._messages or own.reaches(bytes):
            return own
        other = self._first.get(self._classes.key(workload))
        return other if other is not None and other.reaches(bytes) else own

    def named(self, name: str) -> CurveModel | None:
        """The curve with this text, or of the messages with this name."""
        return self._own.get(name)


class ObtainedModel(NamedTuple):
    """A model with where it is from."""

    model: MachineModel
    is_kept: bool
    """It is in the profile now."""
    note: str
    """Why it was fitted now, or is not kept; empty if the kept one was taken."""


def fitted_model(profile: Profile, frame: SeriesFrame | None = None) -> MachineModel:
    """The model of a profile's samples. ``frame`` is the profile's, if it was read already. Raises
    `ProfileError` for a damaged file, `ModelError` if it has nothing to fit."""
    frame = frame or SeriesFrame.read(profile)
    machine = profile.machine
    curves = [each for each in times_of(frame, machine) if is_of_copies(each.text, machine)]
    messages = messages_of(points_of(frame), machine.ranks)
    classes = classes_of(messages)
    models = [*fit_curves(curves), *fit_curves([curve_of(each, messages) for each in classes])]
    counts = fit_all_counts(messages)
    try:
        capacities = profile_capacities(profile, frame)
    except ModelError:
        if not models and not counts:
            raise
        capacities = CapacityModel(machine, {})
    return MachineModel(
        surveyed=profile.created,
        capacities=capacities,
        curves=tuple(models),
        messages=tuple(classes),
        counts=counts,
    )


def profile_capacities(profile: Profile, frame: SeriesFrame | None = None) -> CapacityModel:
    """The model of a profile, from all but its validation sets. ``frame`` is the profile's, if it
    was read already. Raises `ProfileError` for a damaged file, `ModelError` if it has no
    transfers."""
    singles, sets = timed(frame or SeriesFrame.read(profile))
    if not singles:
        raise ModelError(
            "no transfer was measured alone, so that there is nothing to model",
            where=str(profile.path),
            remedy="name a profile of single transfers: waywiser survey --model measures them",
        )
    sides = decide_sides(profile.localities())
    groups = sides.groups if sides is not None and len(sides.groups) > 1 else ()
    validation = planned(profile.plan_json).validation
    return fit_capacities(profile.machine, singles, sets, validation=validation, sides=groups)


def obtained_model(
    profile: Profile, frame: SeriesFrame | None = None, *, keep: bool = False
) -> ObtainedModel:
    """The kept model if it is current, else one that is fitted now, and with ``keep`` stored. A
    file that does not take it is no error. ``frame`` and what is raised are as for
    `fitted_model`."""
    state = profile.samples_state
    kept, why = _kept(profile, state)
    if kept is not None:
        return ObtainedModel(kept, True, "")
    found = fitted_model(profile, frame)
    if not keep:
        return ObtainedModel(found, False, why)
    try:
        keep_model(profile.path, KeptModel(state, json_text(found)))
    except ProfileError as error:
        return ObtainedModel(found, False, f"the model is not kept: {error.what}")
    return ObtainedModel(found, True, why)


def kept_model(profile: Profile) -> MachineModel | None:
    """The model that is kept in the profile; None if there is none that can be used."""
    return _kept(profile, profile.samples_state)[0]


def _kept(profile: Profile, state: str) -> tuple[MachineModel | None, str]:
    """(the kept model, if it can be used; why not)."""
    try:
        stored = profile.kept_model
    except DamagedProfile:
        return None, "the kept model is damaged"
    if stored is None:
        return None, "the profile has no kept model"
    if stored.samples != state:
        return None, "the profile has other samples than its kept model was fitted to"
    try:
        model = msgspec.json.decode(stored.json, type=MachineModel)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None, "the kept model is of another version or damaged"
    if not model.is_current:
        return None, "the kept model was fitted by other rules"
    if model.machine != profile.machine or model.surveyed != profile.created:
        return None, "the kept model is of another profile"
    if not all(_has_sense(model)):
        return None, "the kept model is damaged"
    return model, ""


def is_of_copies(text: str, machine: Machine) -> bool:
    """Whether a curve is no load and no message, which have models of their own, and no
    collective."""
    workload = Workload.parse(text)
    executors = [transfer.path.executor for transfer in workload.transfers]
    is_load = any(machine.traits.executor(name).bystander for name in executors)
    return bool(workload.copies) and not is_load and not workload.is_of_ranks


# What a fit can give: checked of a model that comes from a file.


def _has_sense(model: MachineModel) -> Iterable[bool]:
    timed_curves: list[TransferCurve] = [*model.curves, *model.capacities.curves.values()]
    for known in timed_curves:
        yield _are_sizes(known.sizes) and len(known.times) == len(known.sizes)
        yield _are_times(known.times)
    for curve in model.curves:
        yield len(curve.deviations) == len(curve.sizes)
        nodes = [bytes for bytes, _ in curve.nodes]
        yield (not nodes or _are_sizes(nodes)) and _are_times([t for _, t in curve.nodes])
        yield len(curve.scatter) in (0, len(curve.sizes)) and all(
            0 <= each < 50 for each in curve.scatter
        )
        yield len(curve.least) in (0, len(curve.sizes)) and _are_times(curve.least)
        yield (curve.form != "switched lines" or bool(curve.switches)) and curve.ratio_spread >= 0
        yield all(map(_is_parameter, (curve.latency, curve.inverse_rate)))
    for each in model.capacities.capacities:
        around = each.interval
        yield 0 < each.bytes_per_second <= MOST_BYTES and 0 <= each.deviation < 10
        yield 0 <= each.freedom < math.inf and 0 <= each.measured <= MOST_BYTES
        yield around is None or 0 < around.low <= each.bytes_per_second <= around.high
    for queue in model.capacities.queues:
        yield 0 <= queue.gap <= MOST_SECONDS
    for carried in model.capacities.carried.values():
        yield all(0 <= value <= MOST_BYTES for value in carried.values())
    yield all(0 <= value < 10 for value in model.capacities.deviations.values())
    yield {each.name for each in model.messages} <= {curve.text for curve in model.curves}
    for counts in model.counts:
        yield _are_sizes(counts.sizes) and _are_sizes(counts.counts)
        yield len(counts.first) == len(counts.gaps) == len(counts.sizes)
        yield _are_times(counts.first) and all(0 <= gap <= MOST_SECONDS for gap in counts.gaps)
        limit = counts.limit
        yield limit is None or 0 < limit.bytes_per_second <= MOST_BYTES
        yield limit is None or 0 <= limit.overhead <= MOST_SECONDS
        yield 0 <= counts.deviation < 10 and counts.jobs > 0


def _are_sizes(sizes: Sequence[int]) -> bool:
    """Whether there are any, ascending, each possible."""
    ascend = all(a < b for a, b in pairwise(sizes))
    return bool(sizes) and ascend and sizes[0] > 0 and sizes[-1] <= MOST_BYTES


def _are_times(times: Sequence[float]) -> bool:
    return all(0 < time <= MOST_SECONDS for time in times)


def _is_parameter(parameter: FittedParameter) -> bool:
    value = parameter.value
    return (value is None) == bool(parameter.reason) and (value is None or math.isfinite(value))
