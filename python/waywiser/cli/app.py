"""The command itself, before it has any verb, the options that several verbs have, how a
result is printed, and the decorator that makes a function a verb, with the help that is in its
docstring:

    @verb("Show or write which method is fastest for each copy.")
    def policy(files: list[str], output: str = "", json: Json = False) -> int:
        '''Show which method is fastest for each copy by its size.

        FILE...: Profiles of one machine.
        -o, --output FILE: Write the policy to FILE.

        waywiser export node.wwp --for waywiser -o machine.json
            write the policy of this machine
        '''

The first paragraph is the help of the verb, the last has its examples. Those between describe the
parameters in their order, but for those whose annotation does (`Json`) and for ``options``, whose
table does (`waywiser.measure.option`). What an option of several verbs means is declared once, in
`waywiser.cli.shared_options`; here is what it does in this verb. A number has bounds:
``count: Annotated[int, COUNTS]``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from waywiser.cli import build_folders
from waywiser.cli.command_help import EXAMPLES, HELP_OPTIONS, Example, Verb, Waywiser
from waywiser.cli.option_parameters import option_of, with_options
from waywiser.cli.shared_options import SHARED, shared
from waywiser.cli.streams import print_json, say
from waywiser.measure.option import Option
from waywiser.version import __version__
from waywiser.words import Bounds

if TYPE_CHECKING:
    from waywiser import VerbResult
    from waywiser.render.parts import Block, Section

# Options are named in full: some releases of typer lose one whose name equals its metavar.
app = typer.Typer(
    name="waywiser",
    cls=Waywiser,
    # The scripts of `waywiser --completion` need no Python for each key.
    add_completion=False,
    # Plain help: rich would cost a third of a second before the first word.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)

USUAL_THRESHOLD = "3%"
"""The default of ``--threshold``: `waywiser.stats.decision.THRESHOLD`, whose module takes longer to
import than the help may."""

Threshold = Annotated[str, option_of(shared("--threshold", f"By default {USUAL_THRESHOLD}."))]
Only = Annotated[list[str] | None, option_of(shared("--only"))]
Changes = Annotated[list[str] | None, option_of(shared("--set"))]
ExpectedGpus = Annotated[
    int,
    option_of(
        shared(
            "--expect-gpus",
            "By default a host lacks GPUs if an earlier profile of it had more, or if others of "
            "its kind have more, but less than twice as many.",
        )
    ),
]
Repeat = Annotated[list[str] | None, option_of(shared("--repeat"))]
Json = Annotated[bool, option_of(shared("--json"))]
ProfileFile = Annotated[str, typer.Argument(metavar="FILE", help="A profile (.wwp).")]


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


def _completion(context: typer.Context, shell: str) -> None:
    if shell:
        from waywiser.cli.completion import print_completion

        print_completion(shell, context.command)
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
    completion: Annotated[
        str,
        typer.Option(
            "--completion",
            metavar="SHELL",
            callback=_completion,
            is_eager=True,
            help="Print a script for bash, zsh or fish that completes commands, options, "
            "executors, memories, terms of --only, presets and profiles, and exit.",
        ),
    ] = "",
) -> None:
    """Measure bandwidth and latency of every path between host memory, GPUs and files."""


Function = TypeVar("Function", bound=Callable[..., Any])


def verb(
    short_help: str | None = None, *, name: str | None = None, cls: type[Verb] = Verb
) -> Callable[[Function], Function]:
    """``name`` is that of the verb if the function has another one. Raises `ValueError` for a
    docstring that describes more or fewer parameters than the function has."""

    def register(function: Function) -> Function:
        about, *others = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        if others:  # python -OO leaves docstrings out
            *described, examples = map(_entries, others)
            EXAMPLES[name or function.__name__] = tuple(map(_example, examples))
            _describe(function, (entry for entries in described for entry in entries))
        called = with_options(function)
        app.command(
            name or function.__name__,
            cls=cls,
            help=about,
            short_help=short_help,
            context_settings=HELP_OPTIONS,
        )(called)
        return function

    return register


def _entries(paragraph: str) -> list[str]:
    """Its lines that are not indented, each with the indented lines below it."""
    return re.split(r"\n(?! )", paragraph)


def _example(entry: str) -> Example:
    command, does = entry.split("\n", 1)
    return Example(command, _joined(does))


def _describe(function: Callable[..., Any], entries: Iterable[str]) -> None:
    """Annotates the parameters as typer reads them."""
    hints = get_type_hints(function, include_extras=True)
    del hints["return"]
    own = [(name, hint) for name, hint in hints.items() if not _is_described(hint)]
    for (name, hint), entry in zip(own, map(_joined, entries), strict=True):
        bounds = hint.__metadata__[0] if get_origin(hint) is Annotated else None
        head, _, does = entry.partition(": ")
        option = _option(head, does, bounds)
        plain = get_args(hint)[0] if bounds else hint
        function.__annotations__[name] = Annotated[plain, option_of(option)]


def _is_described(hint: Any) -> bool:
    """Whether a table or an annotation describes the parameter."""
    if get_origin(hint) is Annotated:
        return not isinstance(hint.__metadata__[0], Bounds)
    return is_dataclass(hint)


def _option(head: str, does: str, bounds: Bounds | None) -> Option:
    """``-o, --output FILE`` as an option, ``FILE...`` as an argument. What several verbs have means
    the same in each: ``does`` says the rest."""
    if not head.startswith("-"):
        return Option(does, metavar=head, is_argument=True)
    words = head.replace(",", "").split()
    *short, name = [word for word in words if word.startswith("-")]
    if name in SHARED:
        return shared(name, does, short="".join(short), bounds=bounds)
    metavar = " ".join(words[len(short) + 1 :])
    return Option(does, metavar, name, "".join(short), bounds)


def _joined(lines: str) -> str:
    return " ".join(lines.split())


def print_verb(found: VerbResult, *, json: bool = False, to_errors: bool = False) -> int:
    """Prints what a verb found as `print_result` does, then what else it says; returns its exit
    code."""
    print_result(found.document if json else None, found.parts, json=json, to_errors=to_errors)
    say_lines(found.said)
    return found.exit_code


def given_of(values: dict[str, Any]) -> dict[str, Any]:
    """What was given on the command line, as arguments of a function of the package: all else has
    the default of the function."""
    return {name: value for name, value in values.items() if value not in (None, "")}


def say_lines(lines: Iterable[str]) -> None:
    """Writes lines to standard error."""
    for line in lines:
        say(f"{line}\n")


def print_result(
    document: object,
    parts: Iterable[Block | Section],
    *,
    json: bool = False,
    to_errors: bool = False,
) -> None:
    """Prints the ``document`` as JSON, or the ``parts`` as text, to standard output or, the text,
    ``to_errors``."""
    if json:
        print_json(document)
        return
    from waywiser.cli.printing import plain_console
    from waywiser.render.terminal import print_parts

    print_parts(plain_console(to_errors=to_errors), parts)
