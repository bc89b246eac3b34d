"""The model of a machine: its curves, its capacities and its messages.

A model is fitted from samples alone, so it can be fitted again at any time. It is kept in the
user's cache (`waywiser.profile.derived`), because that takes seconds, and a prediction should not.
"""

from __future__ import annotations

from functools import cached_property

from waywiser.curves import Classes, points_of
from waywiser.curves.classes import Key
from waywiser.machine import Machine
from waywiser.model.alone import longest
from waywiser.model.capacity import CapacityModel
from waywiser.model.capacity_fit import fit_capacities
from waywiser.model.curve import CurveModel, fit_curves, times_of
from waywiser.model.errors import ModelError
from waywiser.model.messages import MessageClass, classes_of, curve_of, messages_of
from waywiser.model.rate import CountModel, fit_all_counts
from waywiser.model.timed_sets import timed
from waywiser.profile import Profile, SeriesFrame, decide_sides
from waywiser.profile.derived import derived, found
from waywiser.profile.planned import planned
from waywiser.words import Value, Workload

SCHEMA = 2
"""The schema of the JSON form."""

RULES = 5
"""The version of the rules that fit curves and messages; those of capacities have their own."""

PART = "model"
"""The name of a model among what is kept of a profile."""


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


def obtained_model(profile: Profile, frame: SeriesFrame | None = None) -> MachineModel:
    """The model of a profile, fitted if it is not kept. ``frame`` and what is raised are as for
    `fitted_model`."""
    return derived(profile, PART, MachineModel, lambda: fitted_model(profile, frame))


def kept_model(profile: Profile) -> MachineModel | None:
    """The model of a profile if it is kept."""
    return found(profile, PART, MachineModel)


def is_of_copies(text: str, machine: Machine) -> bool:
    """Whether a curve is no load and no message, which have models of their own, and no
    collective."""
    workload = Workload.parse(text)
    executors = [transfer.path.executor for transfer in workload.transfers]
    is_load = any(machine.traits.executor(name).bystander for name in executors)
    return bool(workload.copies) and not is_load and not workload.is_of_ranks
