"""Verbs whose exit code is a verdict, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from waywiser.cli.app import Json, Only, ProfileFile, Threshold
from waywiser.cli.command_help import Verb
from waywiser.cli.verb import verb


@verb("Say whether this machine is fit to be measured.")
def doctor(file: str | None = None, severity: str = "warning", json: Json = False) -> int:
    """Say whether this machine, or the one of a profile, is fit to be measured, and what to do.

    [FILE]: A profile: check its machine, as it was stored.
    --severity WORD: The least severity that ends with 1: info, warning or error; by default
        warning.

    waywiser doctor
        check this machine before a survey
    waywiser doctor node.wwp --severity error
        check the machine of a profile; exit with 1 for errors alone
    """
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


@verb("Compare profiles path by path, the headline first.", cls=_Sides)
def compare(
    files: list[str],
    repeat: Repeat = None,
    threshold: Threshold = "3%",
    fail_on: str = "regression",
    only: Only = None,
    json: Json = False,
    junit: str = "",
    everything: bool = False,
) -> int:
    """Compare profiles path by path: regressions, missing paths, improvements, or no change, with
    the smallest change that would have been found.

    BASE... -- NEW...: Profiles from before and from now; two files need no --. Three on a side show
        the noise between surveys; with fewer, a loss is suspected until a second file from now, or
        --repeat, shows it again.
    --fail-on WORD: What ends with 1: regression (and a missing path; the default), suspected (and
        these), or never (then it ends with 0 or 2).
    --junit FILE: Also write JUnit XML with a test for each path; - for standard output: the text
        then goes to standard error.
    --all: List all paths, not only those that changed.

    waywiser compare before.wwp now.wwp
        find what changed between two profiles
    waywiser compare before.wwp now.wwp --only p2p --threshold 5% --all
        list all P2P paths; changes of up to 5 % do not matter
    """
    from waywiser.cli.compare import run_compare

    return run_compare(files, threshold, fail_on, only or (), json, junit, everything, repeat or ())


@verb("Say in one line whether a node changed since its baseline.")
def check(
    file: ProfileFile,
    baseline: list[str],
    repeat: Repeat = None,
    measure: bool = True,
    threshold: Threshold = "3%",
    prometheus: str = "",
    json: Json = False,
) -> int:
    """Say in one line whether a node changed since its baseline, and which paths, GPUs, links and
    error counters did.

    --baseline FILE: A profile of the node when it was healthy; may be repeated. Three show the
        noise between surveys.
    --measure/--no-measure: Measure suspected paths again now, if the profile is of this machine
        (the default), or only read files.
    --prometheus FILE: Also write metrics for the textfile collector of Prometheus; - for standard
        output: the text then goes to standard error.

    waywiser check now.wwp --baseline before.wwp
        say whether the node changed
    waywiser check now.wwp --baseline before.wwp --no-measure --json
        the same for programs, from files alone
    """
    from waywiser.cli.check import run_check

    return run_check(file, baseline, threshold, prometheus, json, repeat or (), measure)


@verb("Find the nodes that differ from others of their kind.")
def fleet(files: list[str], threshold: Threshold = "3%", json: Json = False, page: str = "") -> int:
    """Find the nodes that differ from the others of their hardware class, the bad ones first, by
    path and device.

    FILE...: Profiles of many nodes, one or more of each; or their folder.
    --page FILE: Also write one HTML page that needs no network; - for standard output.

    waywiser fleet nodes
        find the nodes that differ from the others
    waywiser fleet nodes --page fleet.html
        also write a page of figures
    """
    from waywiser.cli.fleet import run_fleet

    return run_fleet(files, threshold, json, page)
