"""Verbs that fit a model of a machine and ask it, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from waywiser.cli.app import Changes, GpuCount, Json, ProfileFile
from waywiser.cli.verb import verb


@verb("Fit a model of a machine, keep it in the profile, show it.")
def model(
    file: ProfileFile,
    everything: bool = False,
    validate: bool = False,
    rule: str = "",
    switches: str = "",
    export: str = "",
    output: str = "",
    json: Json = False,
) -> int:
    """Fit latencies, bandwidths and shared capacities, and keep them in the profile for predict.

    --all: Show every curve and every capacity.
    --validate: Instead: hold out half of the sizes and the validation sets, and show how well the
        model predicts them.
    --rule RULE: Instead: fit messages by another rule. published is that of Bienz et al. (HPEC
        2021).
    --switches TEXT: With --rule published: the first size of each protocol but the first, by
        locality: 'on-socket=256,16KiB; off-node=256,16KiB'.
    --export FORMAT: Instead: write the model for another program: simgrid, astra-sim or json.
    -o, --output FILE: With --export: write to FILE; by default, or with -, to standard output.

    waywiser model node.wwp
        fit the model of this machine, keep it and show it
    waywiser model node.wwp --validate
        show how well it predicts
    """
    from waywiser.cli.model import run_export_of_model, run_model, run_published, run_validation
    from waywiser.words import WaywiserError

    if output and not export:
        raise WaywiserError("-o is for --export", remedy="add --export simgrid")
    others = {"--rule": rule, "--validate": validate, "--all": everything, "--json": json}
    if export and (given := [name for name, value in others.items() if value]):
        raise WaywiserError(
            f"--export and {given[0]} do not go together", remedy=f"remove {given[0]}"
        )
    if export:
        return run_export_of_model(file, export, output)
    if rule not in ("", "published"):
        raise WaywiserError(f"{rule!r} is no rule", remedy="write --rule published")
    if switches and not rule:
        raise WaywiserError("--switches is for --rule published", remedy="add --rule published")
    if rule and (validate or everything):
        option = "--validate" if validate else "--all"
        raise WaywiserError(f"--rule and {option} do not go together", remedy=f"remove {option}")
    if rule:
        return run_published(file, switches, json=json)
    if validate:
        return run_validation(file, everything=everything, json=json)
    return run_model(file, everything=everything, json=json)


@verb("Predict the time of transfers that run together.")
def predict(
    file: ProfileFile,
    workload: list[str] | None = None,
    messages: int = 1,
    change: Changes = None,
    gpus: GpuCount = None,
    compare: bool = False,
    json: Json = False,
) -> int:
    """Predict what transfers take that run together: time, interval, what limits them.

    -w, --workload TEXT: Transfers that start together, as survey --workload has them, each with a
        size: 'A -> B by X of 64MiB; C <-> D by Y of 1MiB'. If repeated, all start together.
    --messages N: So many of each transfer, or message, at once.
    --compare: Show what was measured beside it, if the profile has it.

    waywiser predict node.wwp -w 'pinned@numa:0 -> device@gpu:0 by sm of 50MiB'
        predict the time of a size that was not measured
    waywiser predict node.wwp -w 'pinned@numa:0 <-> device@gpu:0 by sm of 64MiB'
        predict a copy and its opposite together
    """
    from waywiser.cli.predict import run_predict

    return run_predict(
        file,
        "; ".join(workload or ()),
        messages=messages,
        changes=change or (),
        gpus=gpus,
        compare=compare,
        json=json,
    )
