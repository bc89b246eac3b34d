"""Verbs whose exit code is a verdict, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from waywiser.cli.app import FilesVerb, Json, Only, ProfileFile, Threshold, app


@app.command(cls=FilesVerb, short_help="Say whether this machine is fit to be measured.")
def doctor(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A profile: check its machine, as it was stored."),
    ] = None,
    severity: Annotated[
        str,
        typer.Option(
            "--severity",
            metavar="WORD",
            help="The least severity that counts as a finding: info, warning or error.",
        ),
    ] = "warning",
    json: Json = False,
) -> int:
    """Say whether this machine, or the one of a profile, is fit to be measured, and what to do
    where it is not."""
    from waywiser.cli.doctor import run_doctor

    return run_doctor(json, severity, file)


class _Sides(FilesVerb):
    """A verb with two sides: ``--`` divides its words, and options may follow the second."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        from waywiser.cli.compare import SEPARATOR

        return super().parse_args(ctx, [SEPARATOR if word == "--" else word for word in args])


Repeat = Annotated[
    list[str] | None,
    typer.Option(
        "--repeat",
        metavar="FILE",
        help="A profile in which suspected paths were measured again; may be repeated.",
    ),
]


@app.command(cls=_Sides, short_help="Compare profiles path by path, the worst first.")
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE... -- NEW...", help="Profiles of before, and of now; or BASE NEW."
        ),
    ],
    repeat: Repeat = None,
    threshold: Threshold = "3%",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="WORD",
            help="What is a finding: regression (or a missing path); suspected (or these); never.",
        ),
    ] = "regression",
    only: Only = None,
    json: Json = False,
    junit: Annotated[
        str,
        typer.Option(
            "--junit",
            metavar="FILE",
            help="Also write JUnit XML, a test per path; - for standard output.",
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="List all paths, not only those that changed.")
    ] = False,
) -> int:
    """Compare profiles path by path: regressions, missing paths, improvements, or no change, with
    the smallest change that would have been found.

    Three files of a side show the noise between surveys. With fewer, a loss is suspected until a
    second file of now, or --repeat, shows it again. Exit codes: 0 no regression; 1 a regression or
    a missing path (see --fail-on); 2 it could not be done; 3 a loss is suspected, or nothing could
    be compared. With --fail-on never: 0 or 2.

    Of --json and --junit -, one at most writes to standard output; the text then goes to standard
    error.
    """
    from waywiser.cli.compare import run_compare

    return run_compare(files, threshold, fail_on, only or (), json, junit, everything, repeat or ())


@app.command(cls=FilesVerb, short_help="Say in one line whether a node is as it was.")
def check(
    file: ProfileFile,
    baseline: Annotated[
        list[str],
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="A profile of a healthy time; may be repeated. Three show the noise between "
            "surveys.",
        ),
    ],
    repeat: Repeat = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Measure suspected paths again now, if the profile is of this machine.",
        ),
    ] = True,
    threshold: Threshold = "3%",
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Also write metrics for the textfile collector; - for standard output.",
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Say in one line whether a node is as it was, and why not: paths, GPUs, links, errors.

    Exit codes: 0 it is; 1 a regression, confirmed by a repeat or by three baselines, or a missing
    path, GPU or link; 2 it could not be done; 3 inconclusive: a suspected change is not confirmed,
    or a pinned, P2P or set bandwidth could hide a loss of more than 15 %.

    Of --json and --prometheus -, one at most writes to standard output; the text then goes to
    standard error.
    """
    from waywiser.cli.check import run_check

    return run_check(file, baseline, threshold, prometheus, json, repeat or (), measure)


@app.command(cls=FilesVerb, short_help="Find the nodes that differ from their peers.")
def fleet(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Profiles of many nodes, one or more of each; or their folder."
        ),
    ],
    threshold: Threshold = "3%",
    json: Json = False,
    page: Annotated[
        str,
        typer.Option(
            "--page",
            metavar="FILE",
            help="Also as one page that needs no network; - for standard output.",
        ),
    ] = "",
) -> int:
    """Find the nodes that differ from their peers, the bad ones first, by path and device.

    Nodes are compared within their hardware class; no golden node is needed. Exit codes: 0 all are
    fine; 1 a node is bad or suspect; 2 no file could be read; 3 there are too few to compare.
    """
    from waywiser.cli.fleet import run_fleet

    return run_fleet(files, threshold, json, page)
