"""``waywiser predict``: the time of a workload, what limits it, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import msgspec

from waywiser.cli.app import Changes, GpuCount, Json, ProfileFile, print_result, verb
from waywiser.cli.remedies import possible_remedies
from waywiser.words import WaywiserError
from waywiser.words.numbers import POSITIVE_COUNTS

if TYPE_CHECKING:
    from waywiser.model.machine_model import MachineModel
    from waywiser.model.prediction import Prediction
    from waywiser.model.whatif import MachineChanges
    from waywiser.profile import Profile
    from waywiser.report.parts import Block
    from waywiser.words import Workload

SCHEMA = 1
"""The schema of the JSON form. A new field does not change it."""


@verb("Predict the time of transfers that run together.")
def predict(
    file: ProfileFile,
    workload: list[str] | None = None,
    messages: Annotated[int, POSITIVE_COUNTS] = 1,
    change: Changes = None,
    gpus: GpuCount = None,
    compare: bool = False,
    json: Json = False,
) -> None:
    """Predict what transfers take that run together: time, interval, what limits them.

    -w, --workload TEXT: Transfers that start together, as survey --workload has them, each with a
        size: 'A -> B by X of 64MiB; C <-> D by Y of 1MiB', or paths by the names that --only takes:
        'h2d gpu:0 of 64MiB'. If repeated, all start together.
    --messages N: So many of each transfer, or message, at once.
    --compare: Show what was measured beside it, if the profile has it.

    waywiser predict node.wwp -w 'h2d gpu:0 of 50MiB'
        predict the time of a size that was not measured
    waywiser predict node.wwp -w 'pinned@numa:0 <-> device@gpu:0 by sm of 64MiB'
        predict a copy and its opposite together
    """
    from waywiser.curves.named_workloads import has_name, with_paths
    from waywiser.measure.plan.requested_workloads import parse_workload
    from waywiser.model.machine_model import obtained_model
    from waywiser.model.prediction import measured_times
    from waywiser.model.whatif import Change, MachineChanges
    from waywiser.profile import Profile
    from waywiser.profile.series_frame import SeriesFrame
    from waywiser.report.views.prediction import measured_parts, prediction_parts

    text = _required("; ".join(workload or ()))
    if not has_name(text):
        parse_workload(text)  # an error comes before the profile is read
    assumed = MachineChanges(tuple(map(Change.parse, change or ())), gpus)
    if compare:
        _require_unchanged(assumed)
    with possible_remedies(file), Profile.open(file) as profile:
        known = SeriesFrame.read(profile).workloads if has_name(text) else ()
        selected = parse_workload(with_paths(text, known, profile.machine))
        found = _predicted(profile, obtained_model(profile), assumed, selected, messages)
        if compare:
            measured = measured_times(
                SeriesFrame.read(profile), profile.machine, selected, messages
            )
            found = msgspec.structs.replace(found, measured=measured)
        origin = _origin(profile)
        head = {"schema": SCHEMA, "profile": file, "created": profile.created}
    known_or_not = {"is_known": found.is_known, "error": found.error}
    document = head | msgspec.to_builtins(found) | known_or_not
    beside = measured_parts(found) if compare else ()
    parts = chain(prediction_parts(found), beside, _origin_parts(origin))
    print_result(document, parts, json=json)


def _require_unchanged(assumed: MachineChanges) -> None:
    """Raises `WaywiserError` if the machine is another one than the one that was measured."""
    if str(assumed):
        raise WaywiserError(
            "--compare has no measurement of a changed machine",
            remedy="remove it, or --set and --gpus",
        )


def _predicted(
    profile: Profile,
    model: MachineModel,
    assumed: MachineChanges,
    workload: Workload,
    messages: int,
) -> Prediction:
    from waywiser.model.errors import ModelError
    from waywiser.model.prediction import MEASURABLE, Predictor

    try:
        found = Predictor(model, assumed).predict(workload, messages)
    except ModelError as error:
        raise ModelError(error.what, where=str(profile.path), remedy=error.remedy) from error
    if "imported" in profile.environment:
        kept = tuple(note for note in found.notes if note != MEASURABLE)
        found = msgspec.structs.replace(found, notes=kept)
    if not str(assumed):
        return found
    note = f"the machine is assumed to have {assumed}, which was not measured"
    return msgspec.structs.replace(found, notes=(note, *found.notes))


def _required(text: str) -> str:
    if not text.strip():
        raise WaywiserError(
            "--workload is missing",
            remedy="name transfers as show prints them, with a size each: 'A -> B by X of 64MiB'",
        )
    return text


def _origin_parts(origin: str) -> Iterator[Block]:
    from waywiser.report.parts import Words

    yield Words(
        "Times are those of the transfers on the devices; waywiser advise has times from the call "
        "to completion, which are longer for small transfers."
    )
    yield Words(f"The profile was {origin}; a machine in another state takes other times.")


def _origin(profile: Profile) -> str:
    """``measured on 2026-11-20``; results of other tools are only known to be imported."""
    day = profile.created[:10]
    if profile.machine.simulated:
        return f"simulated on {day} {profile.machine.simulated}"
    return f"imported on {day}" if "imported" in profile.environment else f"measured on {day}"
