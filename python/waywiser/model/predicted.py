"""The time of transfers by the model of a profile: what `waywiser predict` and ``profile.predict``
answer."""

from __future__ import annotations

import msgspec

from waywiser.model.errors import ModelError
from waywiser.model.machine_model import obtained_model
from waywiser.model.prediction import MEASURABLE, Prediction, Predictor, measured_times
from waywiser.model.whatif import MachineChanges
from waywiser.profile import Profile, SeriesFrame
from waywiser.words import Workload


def predicted(
    profile: Profile,
    workload: Workload,
    assumed: MachineChanges,
    messages: int = 1,
    *,
    compare: bool = False,
) -> Prediction:
    """What transfers take that start together, each ``messages`` times.

    ``assumed`` are other bandwidths and latencies of the machine. With ``compare`` also what was
    measured of them. Raises `ModelError` with the file.
    """
    try:
        found = Predictor(obtained_model(profile), assumed).predict(workload, messages)
    except ModelError as error:
        raise ModelError(error.what, where=str(profile.path), remedy=error.remedy) from error
    if "imported" in profile.environment:
        kept = tuple(note for note in found.notes if note != MEASURABLE)
        found = msgspec.structs.replace(found, notes=kept)
    if str(assumed):
        note = f"the machine is assumed to have {assumed}, which was not measured"
        found = msgspec.structs.replace(found, notes=(note, *found.notes))
    if compare:
        measured = measured_times(SeriesFrame.read(profile), profile.machine, workload, messages)
        found = msgspec.structs.replace(found, measured=measured)
    return found
