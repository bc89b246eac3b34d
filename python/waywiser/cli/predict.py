"""``waywiser predict``: the time of a workload, what limits it, how sure that is, and the model."""

from __future__ import annotations

from typing import Annotated

import waywiser
from waywiser.cli.app import Changes, Json, ProfileFile, given_of, print_verb, verb
from waywiser.words import POSITIVE_COUNTS, Bounds

PROCESSES = Bounds(1, 4096)


@verb("Predict how long transfers take, alone and together.")
def predict(
    file: ProfileFile,
    workload: list[str] | None = None,
    messages: Annotated[int, POSITIVE_COUNTS] = 1,
    set: Changes = None,
    compare: bool = False,
    validate: bool = False,
    rule: str = "",
    switches: str = "",
    crossovers: bool = False,
    processes: Annotated[int | None, PROCESSES] = None,
    copies: str = "",
    all: bool = False,
    json: Json = False,
) -> None:
    """Predict what transfers take that run together: time, interval, what limits them; or show the
    model of the machine that says so.

    -w, --workload TEXT: Each has a size. If repeated, all start together. Without it: latencies,
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
    --all: Each curve and each capacity of the model.

    waywiser predict node.wwp -w 'h2d pinned gpu:0 of 50MiB'
        predict the time of a size that was not measured
    waywiser predict node.wwp -w 'pinned@numa:0 <-> device@gpu:0 by sm of 64MiB'
        predict a copy and its opposite together
    """
    given = given_of(locals())
    del given["json"]
    print_verb(waywiser.predict(**given), json=json)
