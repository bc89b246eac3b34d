"""``waywiser completion``: which words a shell offers for a command line, and the script for it.

The words are in the script: a shell that completes starts no Python. They come from the commands
themselves, from the tables of the modules that parse the values, and from the traits that executors
and memories declare, so that no GPU and no native library is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from waywiser.cli.completion_scripts import SCRIPTS
from waywiser.cli.completion_words import FILES, NOTHING, PROFILES, OptionWords, Values, VerbWords
from waywiser.words import WaywiserError


class CompletionError(WaywiserError):
    """A shell for which there is no script."""


_PROFILE_OPTIONS = ("--repeat", "--baseline")


def run_completion(shell: str) -> int:
    """Prints the script for a shell; returns 0. Raises `CompletionError`."""
    if shell not in SCRIPTS:
        raise CompletionError(
            f"there is no completion for {shell!r}", remedy=f"write one of {', '.join(SCRIPTS)}"
        )
    print(SCRIPTS[shell](verbs()), end="")
    return 0


def verbs() -> tuple[VerbWords, ...]:
    """All that can be completed: the command without a verb, each verb, and ``help``."""
    from waywiser.cli.call import command

    group = command()
    found = [
        VerbWords(name, _sentence(verb), tuple(_options(name, verb)), _arguments(name, verb))
        for name, verb in group.commands.items()
    ]
    names = Values("words", tuple(group.commands))
    helping = VerbWords("help", "Show the help of a command.", (), names)
    all_names = Values("words", (*group.commands, helping.name))
    return (VerbWords("", "", tuple(_options("", group)), all_names), *found, helping)


def _sentence(verb: Any) -> str:
    return str(verb.short_help or verb.help).partition("\n\n")[0].replace("\n", " ")


def _options(verb: str, command: Any) -> Iterator[OptionWords]:
    from waywiser.cli.command_help import option_rows

    options = [param for param in command.params if param.param_type_name == "option"]
    for option in options:
        values = None if option.is_flag else _values(verb, option)
        names = (*option.opts, *option.secondary_opts)
        yield OptionWords(names, " ".join(option.help.split()), values)
    for helping, does in option_rows(()):
        yield OptionWords(tuple(helping.split(", ")), does, None)


def _values(verb: str, option: Any) -> Values:
    name = option.opts[-1]
    for key in (f"{verb} {name}", name):
        if key in _WORDS:
            return Values("words", _WORDS[key]())
    if name in ("--only", "--paths", "--workload"):
        return Values("pattern", _path_words(with_terms=name != "--workload"))
    if name in _PROFILE_OPTIONS:
        return PROFILES
    if option.metavar == "FOLDER":
        return Values("folders")
    return FILES if option.metavar in ("FILE", "PATH") else NOTHING


def _arguments(verb: str, command: Any) -> Values:
    metavars = [p.metavar for p in command.params if p.param_type_name == "argument"]
    if not metavars:
        return NOTHING
    if metavars == ["SHELL"]:
        return Values("words", tuple(SCRIPTS))
    return FILES if verb in ("import", "topology") else PROFILES


def _path_words(*, with_terms: bool) -> tuple[str, ...]:
    """Executors and kinds of memory, and what else ``--only`` takes."""
    from waywiser.curves.name import SETS
    from waywiser.curves.terms import TERMS
    from waywiser.machine.traits import declared_names

    return (*TERMS, *SETS, *declared_names()) if with_terms else declared_names()


def _presets() -> Sequence[str]:
    from waywiser.measure.plan.preset import PRESETS

    return tuple(PRESETS)


def _severities() -> Sequence[str]:
    from waywiser.words.severity import ORDER

    return ORDER


def _failing() -> Sequence[str]:
    from waywiser.cli.compare import FAILING

    return tuple(FAILING)


def _import_formats() -> Sequence[str]:
    from waywiser.exchange.imports.detect import FORMATS

    return tuple(FORMATS)


def _export_formats() -> Sequence[str]:
    from waywiser.cli.export import FORMATS

    return FORMATS


def _report_formats() -> Sequence[str]:
    from waywiser.cli.report import FORMATS

    return FORMATS


_WORDS: dict[str, Callable[[], Any]] = {
    "--preset": _presets,
    "--severity": _severities,
    "--fail-on": _failing,
    "import --format": _import_formats,
    "export --format": _export_formats,
    "report --format": _report_formats,
    "--figure": lambda: ("list",),
    "--gpus": lambda: ("none",),
}
"""The values of options, of all verbs or of one."""
