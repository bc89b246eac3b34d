"""The command itself, before it has any verb, and the options that several verbs have."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from waywiser.cli import build_folders
from waywiser.cli.command_help import HELP_OPTIONS, Waywiser
from waywiser.cli.option_parameters import option_of
from waywiser.measure.option import Option, options_of
from waywiser.measure.survey_options import SurveyOptions
from waywiser.version import __version__
from waywiser.words import WordError
from waywiser.words.numbers import MOST_GPUS, MOST_SIMULATED_GPUS, Bounds, decimal_number

# Options are named in full: some releases of typer lose one whose name equals its metavar.
app = typer.Typer(
    name="waywiser",
    cls=Waywiser,
    # The scripts of `waywiser completion` need no Python for each key.
    add_completion=False,
    # Plain help: rich would cost a third of a second before the first word.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)

USUAL_THRESHOLD = "3%"
"""The default of ``--threshold``: `waywiser.stats.decision.THRESHOLD`, whose module takes longer to
import than the help may."""

Threshold = Annotated[
    str,
    typer.Option(
        "--threshold",
        metavar="FRACTION",
        help="Ignore changes of time up to this fraction, 3% or 0.03; by default "
        f"{USUAL_THRESHOLD}. With 0 every "
        "significant change matters; 100% would be twice the time.",
    ),
]
Only = Annotated[list[str] | None, option_of(options_of(SurveyOptions)["only"])]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Assume another bandwidth of a resource or another latency of paths: "
        "'PCIe to gpu:*=126GB/s', 'latency A -> B by X=1.5us'. May be repeated.",
    ),
]
_GPU_COUNT = Option(
    "Assume N GPUs like those of the profile.",
    metavar="N",
    name="--gpus",
    bounds=Bounds(1, MOST_GPUS),
)
GpuCount = Annotated[int | None, option_of(_GPU_COUNT)]
SimulatedGpuCount = Annotated[
    int | None, option_of(replace(_GPU_COUNT, bounds=Bounds(1, MOST_SIMULATED_GPUS)))
]
ExpectedGpus = Annotated[
    int,
    option_of(
        Option(
            "A host with fewer than N GPUs lacks some. By default a host lacks GPUs if an earlier "
            "profile of it had more, or if others of its kind have more, but less than twice as "
            "many.",
            metavar="N",
            name="--expect-gpus",
            bounds=Bounds(0, MOST_GPUS),
        )
    ),
]
Repeat = Annotated[
    list[str] | None,
    typer.Option(
        "--repeat",
        metavar="FILE",
        help="A profile in which suspected paths were measured again: it confirms or refutes them. "
        "May be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ProfileFile = Annotated[str, typer.Argument(metavar="FILE", help="A profile (.wwp).")]


def parse_fraction(text: str, what: str) -> float:
    """A fraction from 0 to below 1. Raises `WordError` for anything else."""
    number = text.strip()
    percent = number.endswith("%")
    value = decimal_number(number.removesuffix("%"))
    value = value / 100 if percent else value
    if not 0 <= value < 1:
        raise WordError(
            f"{text!r} is no {what}", remedy="write 3% or 0.03: from 0 to less than 100%"
        )
    return value


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"waywiser {__version__}\n{_native_text()}")
        raise typer.Exit


def _native_text() -> str:
    """The build of the native library and the driver, a line each; why it does not load."""
    from waywiser.machine import native

    try:
        library = native.load()
    except native.NativeError as error:
        return f"native library: {error}"
    driver = library.driver_version()
    shown = f"supports CUDA {driver}" if driver else library.gpu_unavailable_reason()
    return f"build: {native.build_text(library)}\ndriver: {shown}"


def _cmake_dir(requested: bool) -> None:
    if requested:
        typer.echo(build_folders.require_folder(build_folders.CMAKE))
        raise typer.Exit


def _pkg_config_dir(requested: bool) -> None:
    if requested:
        typer.echo(build_folders.require_folder(build_folders.PKG_CONFIG))
        raise typer.Exit


@app.callback()
def _waywiser(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the versions and exit."
        ),
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option(
            build_folders.CMAKE,
            callback=_cmake_dir,
            is_eager=True,
            help="Print the folder for CMake's waywiser_DIR and exit.",
        ),
    ] = False,
    pkg_config_dir: Annotated[
        bool,
        typer.Option(
            build_folders.PKG_CONFIG,
            callback=_pkg_config_dir,
            is_eager=True,
            help="Print the folder for PKG_CONFIG_PATH, with waywiser-transfer.pc, and exit.",
        ),
    ] = False,
) -> None:
    """Measure bandwidth and latency of every path between host memory, GPUs and files."""
