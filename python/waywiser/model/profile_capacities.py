"""The capacities of a profile, and how well they predict its validation sets."""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.model.capacity import CapacityModel, CapacityModelReader, SetPrediction
from waywiser.model.capacity_fit import fit_capacities
from waywiser.model.errors import ModelError
from waywiser.model.timed_sets import TimedSet, timed
from waywiser.profile import Profile
from waywiser.profile.locality import decide_sides
from waywiser.profile.planned import planned
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Value


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


def profile_capacities(profile: Profile, frame: SeriesFrame | None = None) -> CapacityModel:
    """The model of a profile, from all but its validation sets. ``frame`` is the profile's, if it
    was read already. Raises `ProfileError` for a damaged file, `ModelError` if it has no
    transfers."""
    singles, sets = timed(frame or SeriesFrame.read(profile))
    if not singles:
        raise ModelError(
            "no transfer was measured alone, so that there is nothing to model",
            where=str(profile.path),
            remedy="survey the machine with transfers: waywiser survey --model -o FILE",
        )
    sides = decide_sides(profile.localities())
    groups = sides.groups if sides is not None and len(sides.groups) > 1 else ()
    validation = planned(profile.plan_json).validation
    return fit_capacities(profile.machine, singles, sets, validation=validation, sides=groups)


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
