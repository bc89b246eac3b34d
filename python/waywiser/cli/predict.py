"""``waywiser predict``: the time of a workload, what limits it, how sure that is, and the model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import msgspec

from waywiser.cli.app import Changes, Json, NamedAnswer, ProfileFile, print_answers, verb
from waywiser.cli.model_answers import (
    PUBLISHED,
    crossovers_answer,
    model_answer,
    published_answer,
    validation_answer,
)
from waywiser.cli.remedies import possible_remedies
from waywiser.words import POSITIVE_COUNTS, Bounds, WaywiserError

if TYPE_CHECKING:
    from waywiser.model.whatif import MachineChanges
    from waywiser.profile import Profile
    from waywiser.report.parts import Block

SCHEMA = 1
"""The schema of the JSON form. A new field does not change it."""

PROCESSES = Bounds(1, 4096)


@verb("Predict how long transfers take, alone and together.")
def predict(
    file: ProfileFile,
    workload: list[str] | None = None,
    messages: Annotated[int, POSITIVE_COUNTS] = 1,
    change: Changes = None,
    compare: bool = False,
    validate: bool = False,
    rule: str = "",
    switches: str = "",
    crossovers: bool = False,
    processes: Annotated[int | None, PROCESSES] = None,
    copies: str = "",
    everything: bool = False,
    json: Json = False,
) -> None:
    """Predict what transfers take that run together: time, interval, what limits them; or show the
    model of the machine that says so.

    -w, --workload TEXT: Transfers that start together, as survey --workload has them, each with a
        size: 'A -> B by X of 64MiB; C <-> D by Y of 1MiB', or paths by the names that --only takes:
        'h2d pinned gpu:0 of 64MiB'. If repeated, all start together. Without it: latencies,
        bandwidths and shared capacities of the model.
    --messages N: So many of each transfer, or message, at once.
    --compare: Show what was measured beside it, if the profile has it.
    --validate: Hold out half of the sizes and the validation sets, and show how well the model
        predicts them.
    --rule RULE: Fit messages by another rule. published is that of Bienz et al. (HPEC 2021).
    --switches TEXT: The same as --rule published with the first size of each protocol but the
        first, by locality: 'on-socket=256,16KiB; off-node=256,16KiB'.
    --crossovers: Compare strategies for messages between GPUs: of surveyed ranks their methods, by
        number and size; of results of BenchPress those between two nodes (direct, 3-step, all
        cores, extra message, duplicate pointer), as measured and as modelled: the fastest by number
        and size, and where they cross.
    --processes N: The same as --crossovers with so many processes of the host that share the bytes
        of one GPU; by default an equal share of those that the profile has.
    --copies PLACE: The same as --crossovers with copies between a process and its GPU on-socket or
        on-node (across sockets); by default where the profile has the first sender.
    --all: Show everything: each curve and each capacity of the model.

    waywiser predict node.wwp -w 'h2d pinned gpu:0 of 50MiB'
        predict the time of a size that was not measured
    waywiser predict node.wwp -w 'pinned@numa:0 <-> device@gpu:0 by sm of 64MiB'
        predict a copy and its opposite together
    """
    from waywiser.model.whatif import MachineChanges

    assumed = MachineChanges.parse(change or ())
    others = validate or rule or switches or crossovers or processes or copies
    answers = []
    with possible_remedies(file):
        if workload or compare or messages > 1 or str(assumed):
            text = _required("; ".join(workload or ()))
            answers.append(_prediction(file, text, assumed, messages, compare=compare))
        elif not others:
            answers.append(model_answer(file, everything=everything))
        if validate:
            answers.append(validation_answer(file, everything=everything))
        if rule or switches:
            answers.append(published_answer(file, rule or PUBLISHED, switches))
        if crossovers or processes or copies:
            answers.append(crossovers_answer(file, processes, copies, everything=everything))
    print_answers(answers, json=json)


def _prediction(
    file: str, text: str, assumed: MachineChanges, messages: int, *, compare: bool
) -> NamedAnswer:
    """The time of the transfers of a text."""
    from waywiser.curves import has_name
    from waywiser.measure.plan.requested_workloads import named_workload_of, parse_workload
    from waywiser.model.predicted import predicted
    from waywiser.profile import Profile
    from waywiser.report.views.prediction import measured_parts, prediction_parts

    if not has_name(text):
        parse_workload(text)  # an error comes before the profile is read
    with Profile.open(file) as profile:
        workload = named_workload_of(text, profile)
        found = predicted(profile, workload, assumed, messages, compare=compare)
        origin = _origin(profile)
        head = {"schema": SCHEMA, "profile": file, "created": profile.created}
    known_or_not = {"is_known": found.is_known, "error": found.error}
    document = head | msgspec.to_builtins(found) | known_or_not
    beside = measured_parts(found, is_changed=bool(str(assumed))) if compare else ()
    return NamedAnswer(
        "prediction", document, chain(prediction_parts(found), beside, _origin_parts(origin))
    )


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
