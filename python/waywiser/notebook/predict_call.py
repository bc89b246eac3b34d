"""The time of a workload, and the model of a machine: `waywiser.predict`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from waywiser.model.whatif import MachineChanges
from waywiser.notebook.model_answers import (
    PUBLISHED,
    crossovers_answer,
    model_answer,
    published_answer,
    validation_answer,
)
from waywiser.notebook.remedies import possible_remedies
from waywiser.notebook.verb_result import FileName, VerbResult, together
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.profile import Profile
    from waywiser.render.parts import Block, Section

SCHEMA = 1
"""The schema of the JSON form. A new field does not change it."""


def predict_file(
    name: FileName,
    *,
    workload: str | Sequence[str] = (),
    messages: int = 1,
    changes: str | Sequence[str] = (),
    compare: bool = False,
    validate: bool = False,
    rule: str = "",
    switches: str = "",
    crossovers: bool = False,
    processes: int | None = None,
    copies: str = "",
    everything: bool = False,
) -> VerbResult:
    """As `waywiser.predict`. Raises `WaywiserError`."""
    file = os.fspath(name)
    workloads = [workload] if isinstance(workload, str) and workload else list(workload)
    assumed = MachineChanges.parse([changes] if isinstance(changes, str) else changes)
    others = validate or rule or switches or crossovers or processes or copies
    answers: list[tuple[str, VerbResult]] = []
    with possible_remedies(file):
        if workloads or compare or messages > 1 or str(assumed):
            text = _required("; ".join(workloads))
            found = _prediction(file, text, assumed, messages, compare=compare)
            answers.append(("prediction", found))
        elif not others:
            answers.append(("model", model_answer(file, everything=everything)))
        if validate:
            answers.append(("validation", validation_answer(file, everything=everything)))
        if rule or switches:
            answers.append(("messages", published_answer(file, rule or PUBLISHED, switches)))
        if crossovers or processes or copies:
            strategies = crossovers_answer(file, processes, copies, everything=everything)
            answers.append(("crossovers", strategies))
    return together(answers)


def _prediction(
    file: str, text: str, assumed: MachineChanges, messages: int, *, compare: bool
) -> VerbResult:
    """The time of the transfers of a text."""
    from waywiser.curves import has_name
    from waywiser.measure.plan.requested_workloads import named_workload_of, parse_workload
    from waywiser.model.predicted import predicted
    from waywiser.profile import Profile
    from waywiser.render.views.prediction import measured_parts, prediction_parts

    if not has_name(text):
        parse_workload(text)  # an error comes before the profile is read
    with Profile.open(file) as profile:
        workload = named_workload_of(text, profile)
        found = predicted(profile, workload, assumed, messages, compare=compare)
        origin = _origin(profile)
        head = {"schema": SCHEMA, "profile": file, "created": profile.created}
    known_or_not = {"is_known": found.is_known, "error": found.error}
    document = head | msgspec.to_builtins(found) | known_or_not
    beside = tuple(measured_parts(found, is_changed=bool(str(assumed)))) if compare else ()

    def parts() -> Iterator[Block | Section]:
        yield from prediction_parts(found)
        yield from beside
        yield from _origin_parts(origin)

    return VerbResult(found, lambda: document, parts)


def _required(text: str) -> str:
    if not text.strip():
        raise WaywiserError(
            "--workload is missing",
            remedy="name transfers as show prints them, with a size each: 'A -> B by X of 64MiB'",
        )
    return text


def _origin_parts(origin: str) -> Iterator[Block]:
    from waywiser.render.parts import Words

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
