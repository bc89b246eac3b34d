"""Writes ``docs/cli.md`` from the commands themselves:

python docs/cli.py > docs/cli.md
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from waywiser.cli.call import command
from waywiser.cli.command_help import (
    COMMAND_EXAMPLES,
    EXAMPLES,
    EXIT_CODES,
    OF_TRACE,
    Example,
    argument_rows,
    option_rows,
)
from waywiser.cli.completion_scripts import OptionWords
from waywiser.cli.shared_options import SHARED
from waywiser.cli.verb_table import VERBS
from waywiser.words import grouped


def document() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines()).strip() + "\n"


def _lines() -> Iterator[str]:
    group = command()
    yield "# The command line"
    yield ""
    yield "<!-- Made by `python docs/cli.py > docs/cli.md`; a test checks it. -->"
    yield ""
    yield inspect.cleandoc(group.callback.__doc__)
    yield "`waywiser help COMMAND` is `waywiser COMMAND --help`."
    yield "Your shell [completes the words](how-to/complete-words.md),"
    yield "and the [glossary](glossary.md) explains them."
    yield "[Verbs and options of earlier versions](former-verbs.md) and where they are now."
    yield ""
    yield from _questions()
    yield from _examples(COMMAND_EXAMPLES)
    yield from _table("option", option_rows(group.params))
    yield "## Exit codes"
    yield ""
    yield "| code | what it means |"
    yield "|---|---|"
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    yield ""
    yield f"`{OF_TRACE.partition(' ')[0]}` {OF_TRACE.partition(' ')[2]}"
    yield ""
    yield from _index(group)
    for question, names in QUESTIONS.items():
        yield f"## {question}"
        yield ""
        for name in names:
            yield from _verb(name, group.commands[name])


QUESTIONS = grouped((each.question, each.name) for each in VERBS)
"""The verbs that answer each question."""


def _questions() -> Iterator[str]:
    yield "| question | verbs |"
    yield "|---|---|"
    for question, names in QUESTIONS.items():
        yield f"| {question} | {', '.join(map(_link, names))} |"
    yield ""


def _link(name: str) -> str:
    usage = _usage(name, command().commands[name])
    return f"[`{name}`](#{re.sub('[^a-z0-9 -]', '', usage.lower()).replace(' ', '-')})"


def _verb(name: str, verb: Any) -> Iterator[str]:
    yield f"### `{_usage(name, verb)}`"
    yield ""
    yield inspect.cleandoc(verb.help)
    yield ""
    yield from _examples(EXAMPLES[name])
    if rows := list(argument_rows(verb.params)):
        yield from _table("argument", rows)
    yield from _table("option", option_rows(verb.params))


def _index(group: Any) -> Iterator[str]:
    """Each option with the verbs that have it, and what it does in the first of them."""
    found = grouped(
        (each.opts[-1], (name, each))
        for name, verb in group.commands.items()
        for each in verb.params
        if each.param_type_name == "option"
    )
    yield "## Options"
    yield ""
    yield "An option of several verbs means the same in each."
    yield ""
    yield "| option | verbs | what |"
    yield "|---|---|---|"
    for option, of_verbs in sorted(found.items()):
        names = ", ".join(_link(name) for name, _ in of_verbs)
        first = of_verbs[0][1]
        form = "" if first.is_flag else f" {first.metavar}"
        does = first.help
        if len(of_verbs) > 1:
            does = SHARED[option].help
        does = OptionWords((), " ".join(does.split()), None).sentence
        yield f"| `{option}{form}` | {names} | {does} |"
    yield ""


def _usage(name: str, verb: Any) -> str:
    arguments = [p.metavar for p in verb.params if p.param_type_name == "argument"]
    return " ".join(["waywiser", name, *arguments, "[OPTIONS]"])


def _examples(examples: Sequence[Example]) -> Iterator[str]:
    width = max(len(example.command) for example in examples)
    yield "```sh"
    yield from (f"{each.command:<{width}}  # {each.does}" for each in examples)
    yield "```"
    yield ""


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {title} | what |"
    yield "|---|---|"
    yield from (f"| `{names}` | {text} |" for names, text in rows)
    yield ""


if __name__ == "__main__":
    print(document(), end="")
