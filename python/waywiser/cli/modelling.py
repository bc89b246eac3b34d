"""Verbs that fit a model of a machine and ask it, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.app import Changes, GpuCount, Json, ProfileFile, app
from waywiser.cli.command_help import Verb


@app.command(cls=Verb, short_help="Fit a model of a machine, keep it in the profile, show it.")
def model(
    file: ProfileFile,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every curve and every capacity.")
    ] = False,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Instead: hold out half of the sizes and the validation sets, and show how well "
            "the model predicts them.",
        ),
    ] = False,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="Instead: fit messages by another rule. published is that of Bienz et al. "
            "(HPEC 2021).",
        ),
    ] = "",
    switches: Annotated[
        str,
        typer.Option(
            "--switches",
            metavar="TEXT",
            help="With --rule published: the first size of each protocol but the first, by "
            "locality: 'on-socket=256,16KiB; off-node=256,16KiB'.",
        ),
    ] = "",
    export: Annotated[
        str,
        typer.Option(
            "--export",
            metavar="FORMAT",
            help="Instead: write the model for another program: simgrid, astra-sim or json.",
        ),
    ] = "",
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="With --export: write to FILE; by default, or with -, to standard output.",
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Fit latencies, bandwidths and shared capacities, and keep them in the profile for predict."""
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


@app.command(cls=Verb, short_help="Predict the time of transfers that run together.")
def predict(
    file: ProfileFile,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "-w",
            "--workload",
            metavar="TEXT",
            help="Transfers that start together, as survey --workload has them, each with a size: "
            "'A -> B by X of 64MiB; C <-> D by Y of 1MiB'. If repeated, all start together.",
        ),
    ] = None,
    messages: Annotated[
        int,
        typer.Option(
            "--messages", metavar="N", help="So many of each transfer, or message, at once."
        ),
    ] = 1,
    change: Changes = None,
    gpus: GpuCount = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Show what was measured beside it, if the profile has it."),
    ] = False,
    json: Json = False,
) -> int:
    """Predict what transfers take that run together: time, interval, what limits them."""
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
