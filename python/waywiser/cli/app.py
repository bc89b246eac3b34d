"""The verbs and their options. Each body imports what it needs, so that ``--help`` is quick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from waywiser import __version__
from waywiser.words import WaywiserError

# Options are named in full: some releases of typer lose one whose name equals its metavar.
app = typer.Typer(
    name="waywiser",
    add_completion=False,
    # Plain help: rich would cost a third of a second before the first word.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Threshold = Annotated[
    str,
    typer.Option(
        "--threshold", metavar="FRACTION", help="Effects below it do not matter: 3% or 0.03."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ProfileFile = Annotated[str, typer.Argument(metavar="FILE", help="A profile (.wwp).")]


# Older releases of typer raise click's errors, newer ones those of a click of their own. What
# they share is where `BadParameter` comes from: UsageError, and before it ClickException.
_CommandError: type[Exception] = typer.BadParameter.__mro__[2]


_INTERRUPTED = 130
"""What typer makes of Ctrl-C when it is not the one that exits."""


class UsageError(WaywiserError):
    """A command line that is none."""


class _Verb(TyperCommand):
    """A verb that takes files. Its usage has their names as they are written here: some releases of
    typer put braces and dots around them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        files = [p.metavar or "" for p in self.params if p.param_type_name == "argument"]
        return ["[OPTIONS]", *files]


def call(arguments: Sequence[str]) -> int:
    """Parses, calls, and returns the exit code. Without arguments it helps.

    Raises `UsageError`, and what the verbs raise.
    """
    _require_said(arguments)
    words = list(arguments) or ["--help"]
    try:
        result = command().main(words, prog_name="waywiser", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _CommandError as error:
        raise _usage_error(error) from None
    if result == _INTERRUPTED:
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def command() -> Any:
    """The whole command as click's object, for running and for documenting it."""
    return typer.main.get_command(app)


def _require_said(arguments: Sequence[str]) -> None:
    """Raises for an empty word: ``--gpus "$GPUS"`` without the variable must not mean all."""
    before = "the command line"
    for word in arguments:
        option, separator, value = word.partition("=")
        if not word or (option.startswith("--") and separator and not value):
            raise UsageError(
                f"an empty value in {before if not word else option}",
                remedy="is a variable of the shell not set? Leave it out, or say what is meant",
            )
        before = word


def _usage_error(error: Any) -> UsageError:
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "waywiser"
    return UsageError(message[:1].lower() + message[1:], remedy=f"see '{path} --help'")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"waywiser {__version__}")
        raise typer.Exit


@app.callback()
def _waywiser(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Measures every way bytes can move in a machine with CPUs and GPUs.

    Exit codes: 0 done (what was refused or did not converge is listed, not a failure); 2 could not
    be done; doctor, compare, check, fleet: 1 a finding; 3 nothing could be told.
    """


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
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PATTERN",
            help="Only series with all these words, or matching this glob; may be repeated.",
        ),
    ] = None,
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
    gpus: Annotated[
        str | None, typer.Option("--gpus", metavar="LIST", help="0,1 or none; by default all.")
    ] = None,
    expect_gpus: Annotated[
        int,
        typer.Option(
            "--expect-gpus", metavar="N", min=0, help="Fail where fewer GPUs can be measured."
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
        bool, typer.Option("--resume", help="Go on with the survey in the profile -o FILE.")
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
    xml: Annotated[
        str | None,
        typer.Option(
            "--xml", metavar="FILE", help="Of a capture or hwloc XML instead of this machine."
        ),
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
        typer.Option("--anonymous", help="Leave out of the capture what points at somebody."),
    ] = False,
    json: Json = False,
) -> int:
    """Show what the machine is, and what its links could do at best."""
    from waywiser.cli.topology import run_topology

    return run_topology(xml, capture, json, anonymous)


@app.command(cls=_Verb, short_help="Show a profile as a table.")
def show(
    file: ProfileFile,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PATTERN", help="As of survey; may be repeated."),
    ] = None,
    json: Json = False,
) -> int:
    """Show a profile as a table: median, interval, bound, and why sampling stopped."""
    from waywiser.cli.show import run_show

    return run_show(file, json, only or ())


@app.command("import", cls=_Verb, short_help="Make one profile of other tools' results.")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Results of another tool, or a folder of them."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The profile; by default NAME-TIME.wwp."
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="nvbandwidth, google-benchmark, google-benchmark-csv, osu or nccl; by default "
            "told by the content.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine", metavar="NAME", help="Of the machine; by default what the files say."
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="FILE",
            help="A capture or hwloc XML of the machine that was measured.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Make one profile of other tools' results: nvbandwidth, Comm|Scope, OSU, nccl-tests."""
    from waywiser.cli.import_ import run_import

    return run_import(files, output, format=format, machine=machine, topology=topology, json=json)


@app.command(cls=_Verb)
def export(
    file: ProfileFile,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json, csv (one row per sample), parquet (the same, with pyarrow) or "
            "google-benchmark (its JSON, under Comm|Scope's names).",
        ),
    ] = "json",
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="- for standard output.")
    ] = "-",
) -> int:
    """Write a profile's samples for other programs."""
    from waywiser.cli.export import run_export

    return run_export(file, format, output)


@app.command(cls=_Verb, short_help="Make a page of profiles: verdict, figures, answers.")
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
            help="- for standard output; else report.html. A former report is replaced.",
        ),
    ] = "",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="html (one page that needs no network), md, or svg or pdf of one figure.",
        ),
    ] = "html",
    figure: Annotated[
        str,
        typer.Option("--figure", metavar="NAME", help="Of svg and pdf; list names all of them."),
    ] = "",
) -> int:
    """Make a page of profiles: verdict, figures, answers, everything that was measured."""
    from waywiser.cli.report import run_report

    return run_report(files, output, format, figure)


@app.command(short_help="Say whether this machine is fit to be measured.")
def doctor(
    severity: Annotated[
        str,
        typer.Option(
            "--severity",
            metavar="WORD",
            help="From which severity on it counts: info, warning or error.",
        ),
    ] = "warning",
    json: Json = False,
) -> int:
    """Say whether this machine is fit to be measured, and what to do where it is not."""
    from waywiser.cli.doctor import run_doctor

    return run_doctor(json, severity)


class _Sides(_Verb):
    """A verb with two sides: ``--`` divides its words, and options may follow the second."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        from waywiser.cli.compare import SEPARATOR

        return super().parse_args(ctx, [SEPARATOR if word == "--" else word for word in args])


@app.command(cls=_Sides, short_help="Compare profiles path by path, the worst first.")
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE... -- NEW...", help="Profiles of before, and of now; or BASE NEW."
        ),
    ],
    threshold: Threshold = "3%",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="WORD",
            help="What is a finding: worse; missing (or worse); unclear (or any of these).",
        ),
    ] = "worse",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PATTERN", help="As of survey; may be repeated."),
    ] = None,
    json: Json = False,
    junit: Annotated[
        str,
        typer.Option("--junit", metavar="FILE", help="Also write JUnit XML, a test per path."),
    ] = "",
) -> int:
    """Compare profiles path by path: better, worse, same, unclear, missing; the worst first.

    Several files per side are more blocks, which make verdicts surer. Exit codes: 0 clean; 1 a
    finding of --fail-on; 2 it could not be done; 3 nothing could be told, or unclear paths that
    --fail-on names.
    """
    from waywiser.cli.compare import run_compare

    return run_compare(files, threshold, fail_on, only or (), json, junit)


@app.command(cls=_Verb, short_help="Say in one line whether a node is as it was.")
def check(
    file: ProfileFile,
    baseline: Annotated[
        list[str],
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="A profile of when all was well; may be repeated for surer verdicts.",
        ),
    ],
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

    Exit codes: 0 it is; 1 it is not; 2 it could not be done; 3 nothing could be told.
    """
    from waywiser.cli.check import run_check

    return run_check(file, baseline, threshold, prometheus, json)


@app.command(cls=_Verb, short_help="Find the nodes that are not like their twins.")
def fleet(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Profiles of many nodes, one or more of each."),
    ],
    threshold: Threshold = "3%",
    json: Json = False,
    page: Annotated[
        str,
        typer.Option("--page", metavar="FILE", help="Also as one page that needs no network."),
    ] = "",
) -> int:
    """Find the nodes that are not like their twins, the bad ones first, by path and device.

    Nodes are judged within their class of hardware; no golden node is needed. Exit codes: 0 all are
    fine; 1 a node is bad or suspect; 2 no file could be read; 3 there are too few to judge any.
    """
    from waywiser.cli.fleet import run_fleet

    return run_fleet(files, threshold, json, page)
