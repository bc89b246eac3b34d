"""The command itself, before it has any verb, and the options that several verbs have."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from waywiser import __version__
from waywiser.cli import cmake

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
        "--threshold",
        metavar="FRACTION",
        help="Changes of time up to it do not matter: 3% or 0.03. From 0 (every significant change "
        "matters) to less than 100% (twice the time, half the bandwidth).",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PATTERN",
        help="Only series with all these words, or matching this glob; may be repeated. Terms are "
        "words too: h2d, d2h, d2d, p2p, local, h2h, bidir, host-to-all, all-to-host, zero-copy, "
        "uvm, disk, memcpy. Example: 'h2d sm'.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ProfileFile = Annotated[str, typer.Argument(metavar="FILE", help="A profile (.wwp).")]


class FilesVerb(TyperCommand):
    """A verb that takes files. Its usage has their names as they are written here: some releases of
    typer put braces and dots around them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        files = [p.metavar or "" for p in self.params if p.param_type_name == "argument"]
        return ["[OPTIONS]", *files]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"waywiser {__version__}")
        raise typer.Exit


def _cmake_dir(wanted: bool) -> None:
    if wanted:
        typer.echo(cmake.require_folder())
        raise typer.Exit


@app.callback()
def _waywiser(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option(
            cmake.OPTION,
            callback=_cmake_dir,
            is_eager=True,
            help="Print the folder for CMake's waywiser_DIR and exit.",
        ),
    ] = False,
) -> None:
    """Measures every way bytes can move in a machine with CPUs and GPUs.

    Exit codes: 0 done (what is not supported or did not converge is listed, not a failure); 2 could
    not be done; doctor, compare, check, fleet: 1 a finding; 3 no result. 130 interrupted.
    """
