"""Verbs that turn files into profiles and profiles into what is read, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.app import Changes, GpuCount, Json, Only, ProfileFile, Seed, app
from waywiser.cli.command_help import Verb


@app.command(cls=Verb, short_help="Show the curves and the headline paths of a profile.")
def show(
    file: ProfileFile,
    only: Only = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show every size, every setting and every path.")
    ] = False,
    json: Json = False,
) -> int:
    """Show what a profile says: a line for each curve, what is missing and why, headline paths."""
    from waywiser.cli.show import run_show

    return run_show(file, json, only or (), everything)


@app.command("import", cls=Verb, short_help="Make one profile from results of other tools.")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Results of another tool, or a folder of them."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the profile to FILE; by default NAME-TIME.wwp with the name of --machine, "
            "else imported-TIME.wwp.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="nvbandwidth, google-benchmark, google-benchmark-csv, osu, nccl or benchpress; "
            "by default what the content shows.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine", metavar="NAME", help="Name of the machine; by default that in the files."
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="FILE",
            help="A capture or hwloc XML of the machine that was measured: links and peaks.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Make one profile from results of nvbandwidth, Comm|Scope, OSU, nccl-tests or BenchPress."""
    from waywiser.cli.import_ import run_import

    return run_import(files, output, format=format, machine=machine, topology=topology, json=json)


@app.command(cls=Verb, short_help="Survey a simulated machine: that of a profile, with changes.")
def simulate(
    file: ProfileFile,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Write the profile to FILE."),
    ],
    change: Changes = None,
    gpus: GpuCount = None,
    seed: Seed = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="How much to measure, as for 'survey'. By default as the profile was surveyed.",
        ),
    ] = None,
    only: Only = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="TEXT",
            help="Measure these transfers, as for 'survey'. May be repeated.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="SIZES", help="Sizes to measure, as for 'survey'."),
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Also measure the sets of transfers that a model of the machine needs.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Survey a simulated machine: that of a profile, with its noise and with changes."""
    from waywiser.cli.simulate import SimulateOptions, run_simulate

    run_simulate(
        SimulateOptions(
            file=file,
            output=output,
            changes=tuple(change or ()),
            gpus=gpus,
            seed=seed,
            preset=preset,
            only=tuple(only or ()),
            workloads=tuple(workload or ()),
            sizes=sizes,
            model=model,
            json=json,
        )
    )


@app.command(cls=Verb)
def export(
    file: ProfileFile,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Write a row per path and size: bandwidth, latency and intervals.",
        ),
    ] = False,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json, csv (a row per sample), parquet (the same, with pyarrow) or "
            "google-benchmark (its JSON, under Comm|Scope's names); by default what the name of "
            "-o says, else json.",
        ),
    ] = "",
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE; by default to standard output, or with -. A terminal gets more "
            "than a screen of text only with -.",
        ),
    ] = "",
    consumer: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="PROGRAM",
            help="Write settings of another program from what was measured: ucx, vllm, sglang, "
            "flexkv or kv-offload (JSON).",
        ),
    ] = "",
    piece: Annotated[
        str,
        typer.Option(
            "--piece",
            metavar="SIZE",
            help="With --for sglang or flexkv: bytes of one piece of the KV cache, as 32KiB.",
        ),
    ] = "",
) -> int:
    """Write a profile's samples, a summary, or settings of other programs."""
    from waywiser.cli.export import run_export

    return run_export(file, format, output, summary, consumer, piece)


@app.command(cls=Verb, short_help="Make a page of profiles: status, findings, figures.")
def report(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Profiles (.wwp), side by side.")
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="By default report.html, and standard output for md; - for standard output. "
            "A former report is replaced.",
        ),
    ] = "",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="html (one page that needs no network), md (a summary of at most 8 KB), or svg, "
            "pdf or png of one figure; without it, what the name of FILE says, else html.",
        ),
    ] = "",
    figure: Annotated[
        str,
        typer.Option(
            "--figure", metavar="NAME", help="Of svg, pdf and png; list names all of them."
        ),
    ] = "",
    whole: Annotated[
        bool, typer.Option("--all", help="With md: the whole report, not the summary.")
    ] = False,
) -> int:
    """Make a page of profiles: status, findings, figures, everything that was measured."""
    from waywiser.cli.report import run_report

    return run_report(files, output, format, figure, whole=whole)
