"""Verbs whose exit code is a verdict, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from waywiser.cli.app import Json, Only, ProfileFile, Threshold, app
from waywiser.cli.command_help import Verb


@app.command(cls=Verb, short_help="Say whether this machine is fit to be measured.")
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
            help="The least severity that ends with 1: info, warning or error; by default warning.",
        ),
    ] = "warning",
    json: Json = False,
) -> int:
    """Say whether this machine, or the one of a profile, is fit to be measured, and what to do."""
    from waywiser.cli.doctor import run_doctor

    return run_doctor(json, severity, file)


class _Sides(Verb):
    """A verb with two sides: ``--`` divides its words, and options may follow the second."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        from waywiser.cli.compare import SEPARATOR

        return super().parse_args(ctx, [SEPARATOR if word == "--" else word for word in args])


Repeat = Annotated[
    list[str] | None,
    typer.Option(
        "--repeat",
        metavar="FILE",
        help="A profile in which suspected paths were measured again: it confirms or refutes them. "
        "May be repeated.",
    ),
]


@app.command(cls=_Sides, short_help="Compare profiles path by path, the headline first.")
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE... -- NEW...",
            help="Profiles from before and from now; two files need no --. Three on a side show "
            "the noise between surveys; with fewer, a loss is suspected until a second file from "
            "now, or --repeat, shows it again.",
        ),
    ],
    repeat: Repeat = None,
    threshold: Threshold = "3%",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="WORD",
            help="What ends with 1: regression (and a missing path; the default), suspected (and "
            "these), or never (then it ends with 0 or 2).",
        ),
    ] = "regression",
    only: Only = None,
    json: Json = False,
    junit: Annotated[
        str,
        typer.Option(
            "--junit",
            metavar="FILE",
            help="Also write JUnit XML with a test for each path; - for standard output: the text "
            "then goes to standard error.",
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="List all paths, not only those that changed.")
    ] = False,
) -> int:
    """Compare profiles path by path: regressions, missing paths, improvements, or no change, with
    the smallest change that would have been found."""
    from waywiser.cli.compare import run_compare

    return run_compare(files, threshold, fail_on, only or (), json, junit, everything, repeat or ())


@app.command(cls=Verb, short_help="Say in one line whether a node changed since its baseline.")
def check(
    file: ProfileFile,
    baseline: Annotated[
        list[str],
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="A profile of the node when it was healthy; may be repeated. Three show the noise "
            "between surveys.",
        ),
    ],
    repeat: Repeat = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Measure suspected paths again now, if the profile is of this machine (the "
            "default), or only read files.",
        ),
    ] = True,
    threshold: Threshold = "3%",
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Also write metrics for the textfile collector of Prometheus; - for standard "
            "output: the text then goes to standard error.",
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Say in one line whether a node changed since its baseline, and which paths, GPUs, links and
    error counters did."""
    from waywiser.cli.check import run_check

    return run_check(file, baseline, threshold, prometheus, json, repeat or (), measure)


@app.command(cls=Verb, short_help="Find the nodes that differ from others of their kind.")
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
            help="Also write one HTML page that needs no network; - for standard output.",
        ),
    ] = "",
) -> int:
    """Find the nodes that differ from the others of their hardware class, the bad ones first, by
    path and device."""
    from waywiser.cli.fleet import run_fleet

    return run_fleet(files, threshold, json, page)
