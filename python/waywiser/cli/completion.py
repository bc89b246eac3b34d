"""``waywiser --completion SHELL``: which words a shell offers for a command line, and the script
for it.

The words are in the script: a shell that completes starts no Python. They come from the commands
themselves, from the tables of the modules that parse the values, and from the traits that executors
and memories declare, so that no GPU and no native library is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from waywiser.cli.completion_scripts import (
    FILES,
    NOTHING,
    PROFILES,
    SHELLS,
    OptionWords,
    Values,
    VerbWords,
    completion_script,
)
from waywiser.words import WaywiserError, grouped


class CompletionError(WaywiserError):
    """A shell for which there is no script."""


_PROFILE_OPTIONS = ("--repeat", "--baseline")


def print_completion(shell: str, group: Any) -> None:
    """Prints the script for bash, zsh or fish. Raises `CompletionError` for another shell."""
    if shell not in SHELLS:
        raise CompletionError(
            f"there is no completion for {shell!r}", remedy=f"write one of {', '.join(SHELLS)}"
        )
    print(completion_script(shell, verbs(group)), end="")


def verbs(group: Any) -> tuple[VerbWords, ...]:
    """All that can be completed: the command without a verb, each verb, and ``help``. ``group`` is
    the whole command."""
    found = [
        VerbWords(name, _sentence(verb), tuple(_options(name, verb)), _arguments(name, verb))
        for name, verb in group.commands.items()
    ]
    groups = grouped(name.split() for name in group.commands if " " in name)
    found += [
        VerbWords(first, f"Has {', '.join(seconds)}.", (), Values("words", tuple(seconds)), True)
        for first, seconds in groups.items()
    ]
    names = Values("words", tuple(dict.fromkeys(name.split()[0] for name in group.commands)))
    helping = VerbWords("help", "Show the help of a command.", (), names)
    all_names = Values("words", (*names.words, helping.name))
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
            return Values("words", _words(_WORDS[key]))
    if name in ("--only", "--workload"):
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
    return FILES if verb in ("import", "topology") else PROFILES


def _path_words(*, with_terms: bool) -> tuple[str, ...]:
    """Executors and kinds of memory, and what else ``--only`` takes."""
    from waywiser.curves import SETS
    from waywiser.curves.terms import TERMS
    from waywiser.machine import declared_names

    return (*TERMS, *SETS, *declared_names()) if with_terms else declared_names()


_WORDS: dict[str, str | tuple[str, ...]] = {
    "--preset": "waywiser.measure.plan.preset.PRESETS",
    "--severity": "waywiser.words.status.SEVERITY_ORDER",
    "--fail-on": "waywiser.notebook.comparison_view.FAILING",
    "import --format": "waywiser.exchange.imports.detect.FORMATS",
    "export --format": "waywiser.notebook.export_call.FORMATS",
    "report --format": "waywiser.notebook.report_call.FORMATS",
    "--figure": ("list",),
    "--gpus": ("none",),
    "--completion": SHELLS,
}
"""The values of options, of all verbs or of one, or where these are."""


def _words(named: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(named, tuple):
        return named
    module, _, name = named.rpartition(".")
    return tuple(getattr(import_module(module), name))
