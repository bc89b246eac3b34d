"""Verbs that look at this machine, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.app import Json, Only, app


@app.command()
def survey(
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The profile; by default HOST-TIME.wwp."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="check or quick (under 30 s), standard (minutes; the default) or full (hours).",
        ),
    ] = None,
    only: Only = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="TEXT",
            help="Instead of the preset's series: transfers that start together, as "
            "'A -> B by X; C -> D by Y of 64MiB'; may be repeated.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes", metavar="SIZES", help="8:1GiB, 8:1GiB:4 (points per octave) or 1KiB,1MiB."
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            metavar="SECONDS",
            min=1.0,
            help="End in so many seconds: measure less if need be, and repeat more if there is "
            "time.",
        ),
    ] = None,
    gpus: Annotated[
        str | None, typer.Option("--gpus", metavar="LIST", help="0,1 or none; by default all.")
    ] = None,
    expect_gpus: Annotated[
        int,
        typer.Option(
            "--expect-gpus", metavar="N", min=0, help="Fail if fewer GPUs can be measured."
        ),
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="BYTES",
            help="For all buffers of a workload together; by default 4GiB.",
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            help="Also measure reads of this file, which is never written; may be repeated.",
        ),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch",
            metavar="FOLDER",
            help="Where to make scratch files, on the disk to be measured; by default where the "
            "profile is written.",
        ),
    ] = None,
    no_scratch: Annotated[
        bool, typer.Option("--no-scratch", help="Make no scratch files: leave disks out.")
    ] = False,
    share: Annotated[
        bool, typer.Option("--share", help="Also measure GPUs that others are using.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Of orders and patterns; by default 1."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the survey in -o FILE, if there is one.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be measured, and how long it takes.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure this machine into a profile, and show what was found."""
    from waywiser.cli.survey import Options, run_survey

    options = Options(
        output=output,
        preset=preset,
        only=tuple(only or ()),
        workloads=tuple(workload or ()),
        files=tuple(file or ()),
        scratch=scratch,
        no_scratch=no_scratch,
        sizes=sizes,
        deadline=deadline,
        gpus=gpus,
        expect_gpus=expect_gpus,
        memory=memory,
        share=share,
        seed=seed,
        resume=resume,
        dry_run=dry_run,
        json=json,
    )
    run_survey(options)


@app.command("list", short_help="List executors and memories, their parameters and sources.")
def list_(json: Json = False) -> None:
    """List the executors and kinds of memory, their parameters and their sources."""
    from waywiser.cli.list import run_list

    run_list(json=json)


@app.command()
def topology(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A profile, a capture or hwloc XML; this machine."),
    ] = None,
    xml: Annotated[
        str | None,
        typer.Option("--xml", metavar="FILE", help="The same as FILE."),
    ] = None,
    capture: Annotated[
        str | None,
        typer.Option(
            "--capture",
            metavar="FILE",
            help="Write a capture of this machine to send to others; - for standard output.",
        ),
    ] = None,
    anonymous: Annotated[
        bool,
        typer.Option("--anonymous", help="Remove from the capture what identifies its owner."),
    ] = False,
    json: Json = False,
) -> int:
    """Show what the machine is, and what its links could do at best."""
    from waywiser.cli.topology import run_topology

    if file is not None and xml is not None:
        raise typer.BadParameter("name one file, without --xml")
    return run_topology(file or xml, capture, json, anonymous)
