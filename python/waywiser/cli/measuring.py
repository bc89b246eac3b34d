"""Verbs that look at this machine, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.app import Json, Only, Seed
from waywiser.cli.verb import verb

Gpus = Annotated[
    str | None,
    typer.Option("--gpus", metavar="LIST", help="GPUs to measure: 0,1 or none; by default all."),
]
Share = Annotated[bool, typer.Option("--share", help="Also measure GPUs that other processes use.")]


@verb()
def survey(
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the profile to FILE; by default HOST-TIME.wwp.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="How much to measure: check or quick (under 30 s), standard (minutes; the "
            "default) or full (hours).",
        ),
    ] = None,
    only: Only = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="TEXT",
            help="Measure these transfers, which start together, instead of the preset's: "
            "'A -> B by X; C -> D by Y of 64MiB'. May be repeated.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="SIZES",
            help="Sizes to measure: every power of two in 8:1GiB, four sizes for each in 8:1GiB:4, "
            "or a list, 1KiB,1MiB. By default those of the preset.",
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            metavar="SECONDS",
            help="End after this time: measure less if it is short, repeat more if time is left.",
        ),
    ] = None,
    gpus: Gpus = None,
    expect_gpus: Annotated[
        int,
        typer.Option(
            "--expect-gpus", metavar="N", min=0, help="Fail if fewer than N GPUs can be measured."
        ),
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="BYTES",
            help="Most memory for all buffers of a workload together; by default 4GiB.",
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
            help="Make scratch files in this folder, on the disk to measure; by default where the "
            "profile is written.",
        ),
    ] = None,
    no_scratch: Annotated[
        bool, typer.Option("--no-scratch", help="Make no scratch files, and measure no disk.")
    ] = False,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Also measure the sets of transfers that a model of the machine needs.",
        ),
    ] = False,
    share: Share = False,
    seed: Seed = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with the survey in -o FILE; start it if there is none."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be measured and how long it takes.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure this machine, write a profile, and show what was found.

    waywiser survey --preset check --expect-gpus 8 -o node.wwp
        measure every link in under half a minute; fail if a GPU is missing
    waywiser survey --only 'h2d copy-engine' --sizes 8:1GiB
        measure H2D bandwidth and latency of each GPU by copy engine
    """
    from waywiser.cli.survey import Options, run_survey

    options = Options(
        output=output,
        preset=preset,
        only=tuple(only or ()),
        workloads=tuple(workload or ()),
        files=tuple(file or ()),
        scratch=scratch,
        no_scratch=no_scratch,
        model=model,
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


@verb("Search the fastest settings of copies on this machine.")
def tune(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A profile of this machine, or a new one (.wwp)."),
    ],
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--paths",
            metavar="PATTERN",
            help="Tune the paths that have all these words, as for 'survey --only'; may be "
            "repeated. By default one of each class of equivalent paths.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="SIZES",
            help="Sizes to tune, as for a survey; by default those of 1MiB,16MiB,256MiB,1GiB "
            "that fit into the budget.",
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Measure for at most this time: 60s, 2min. By default 60s.",
        ),
    ] = "60s",
    grid: Annotated[
        int,
        typer.Option(
            "--grid",
            metavar="N",
            min=0,
            help="Do not search: measure every configuration in N processes.",
        ),
    ] = 0,
    gpus: Gpus = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="BYTES",
            help="Most memory for all buffers of a transfer together; by default 4GiB.",
        ),
    ] = None,
    from_file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            help="Also tune reads of this file, which is never written; may be repeated.",
        ),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch",
            metavar="FOLDER",
            help="Also tune copies of scratch files in this folder; by default of none.",
        ),
    ] = None,
    share: Share = False,
    seed: Seed = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be searched and how long it takes.")
    ] = False,
    json: Json = False,
) -> None:
    """Search the fastest settings of copies, per path and size; the same command goes on later.

    waywiser tune node.wwp --dry-run
        show which settings would be searched, and how long it takes
    waywiser tune node.wwp --paths 'h2d staged' --sizes 64MiB --budget 30s
        search the settings of staged H2D copies of 64 MiB
    """
    from waywiser.cli.tune import TuneOptions, run_tune

    run_tune(
        TuneOptions(
            file=file,
            paths=tuple(paths or ()),
            sizes=sizes or "",
            budget=budget,
            grid=grid,
            gpus=gpus,
            memory=memory,
            files=tuple(from_file or ()),
            scratch=scratch,
            share=share,
            seed=1 if seed is None else seed,
            dry_run=dry_run,
            json=json,
        )
    )
