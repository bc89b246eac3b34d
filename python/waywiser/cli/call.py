"""Runs a command line with its verbs; one that cannot be parsed is an error with a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import typer

from waywiser.cli.app import app
from waywiser.cli.command_help import group_help
from waywiser.cli.former_verbs import command_of_today, option_of_today
from waywiser.cli.verb_table import VERBS
from waywiser.words import WaywiserError

# Older releases of typer raise click's errors, newer ones those of a click of their own. What
# they share is where `BadParameter` comes from: UsageError, and before it ClickException.
_CommandError: type[Exception] = typer.BadParameter.__mro__[2]

_INTERRUPTED = 130
"""What typer makes of Ctrl-C when it is not the one that exits."""


class UsageError(WaywiserError):
    """A command line that is none."""


def call(arguments: Sequence[str]) -> int:
    """Parses, calls, and returns the exit code. Without arguments it helps.

    Raises `UsageError`, `BrokenPipeError` if the reader of the output has left, and what the
    verbs raise.
    """
    _require_said(arguments)
    group = command()
    words = _with_verb(arguments, group) or ["--help"]
    if words[0] == "help":
        words = _helped(_with_verb(words[1:], group))
    if today := command_of_today([word for word in words if word != "--help"]):
        raise UsageError(f"'waywiser {words[0]}' is no longer a verb", remedy=f"write {today}")
    option, today = option_of_today(words)
    if option:
        raise UsageError(f"{option} is no longer an option of {words[0]}", remedy=f"write {today}")
    if verbs := _verbs_of(words[0], group):
        return _show_group(words, verbs)
    try:
        result = group.main(words, prog_name="waywiser", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _CommandError as error:
        raise _usage_error(error, words[0]) from None
    except SystemExit:
        # So typer leaves when the reader of its output has, and with 1, which says of some verbs
        # that something was found.
        raise BrokenPipeError from None
    if result == _INTERRUPTED:
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _with_verb(words: Sequence[str], group: Any) -> list[str]:
    """The command line with a verb of two words as its first one."""
    together = " ".join(words[:2])
    return [together, *words[2:]] if " " in together and together in group.commands else [*words]


def _verbs_of(first: str, group: Any) -> dict[str, Any]:
    """The verbs of two words that begin with this one."""
    return {name: verb for name, verb in group.commands.items() if name.startswith(f"{first} ")}


def _show_group(words: Sequence[str], verbs: Mapping[str, Any]) -> int:
    """Shows the verbs that begin with a word. Raises `UsageError` for other words."""
    first, *others = words
    if not {"-h", "--help"} & set(others):
        which = f"there is no 'waywiser {first} {others[0]}'" if others else "a word is missing"
        seconds = ", ".join(name.removeprefix(f"{first} ") for name in verbs)
        raise UsageError(which, remedy=f"write waywiser {first} and one of {seconds}")
    typer.echo(group_help(first, verbs))
    return 0


def _helped(words: Sequence[str]) -> list[str]:
    """The command line that ``help`` with these words stands for: one command has help at most."""
    if len(words) > 1 and not any(word.startswith("-") for word in words):
        raise UsageError(
            f"too many arguments: {' '.join(words[1:])}", remedy="write waywiser help COMMAND"
        )
    return ["--help"] if list(words) == ["help"] else [*words, "--help"]


@cache
def command() -> Any:
    """The whole command as click's object, for running and for documenting it. It is made once in a
    process: typer reads the annotations of all verbs for it."""
    for module in dict.fromkeys(each.module for each in VERBS):
        import_module(f"waywiser.cli.{module}")
    names = [each.name for each in VERBS]
    app.registered_commands.sort(key=lambda each: names.index(each.name or ""))
    return typer.main.get_command(app)


def _require_said(arguments: Sequence[str]) -> None:
    """Raises for an empty word: ``--gpus "$GPUS"`` without the variable must not mean all."""
    before = ""
    for word in arguments:
        option, separator, value = word.partition("=")
        if not word or (option.startswith("--") and separator and not value):
            named = option if word else before
            after = f" after {named!r}" if named else ""
            raise UsageError(
                f"an empty value in {named}"
                if named.startswith("-")
                else f"an empty argument{after}",
                remedy="is a variable of the shell not set? Leave it out, or say what is meant",
            )
        before = word


_PLAINER = {
    r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)": r"too many arguments: \1",
    r"\.? \(Possible options: (.*)\)": r". Did you mean one of \1?",
    r"Input should be a valid integer.*": "it is not a whole number",
    r"Input should be a valid number.*": "it is not a number",
    r"Input should be greater than or equal to (.*)": r"it is less than \1",
}
"""What releases of typer write, and the same in fewer and plainer words."""


def _usage_error(error: Any, first: str) -> UsageError:
    """The error in one line; ``first`` is the first word of the command line."""
    message = " ".join(error.format_message().split()).rstrip(".")
    for pattern, plainer in _PLAINER.items():
        message = re.sub(pattern, plainer, message)
    context = getattr(error, "ctx", None)
    verb = f" {first}" if first in command().commands else ""
    path = context.command_path if context else f"waywiser{verb}"
    return UsageError(message[:1].lower() + message[1:], remedy=f"see '{path} --help'")
