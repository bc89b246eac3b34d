"""Writes ``docs/cli.md`` from the commands themselves:

python docs/cli.py > docs/cli.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from waywiser.cli.call import command
from waywiser.cli.command_help import (
    COMMAND_EXAMPLES,
    EXAMPLES,
    EXIT_CODES,
    Example,
    argument_rows,
    option_rows,
)


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
    yield ""
    yield from _examples(COMMAND_EXAMPLES)
    yield from _table("option", option_rows(group.params))
    yield "## Exit codes"
    yield ""
    yield "| code | what it means |"
    yield "|---|---|"
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    yield ""
    for name, verb in group.commands.items():
        yield f"## `{_usage(name, verb)}`"
        yield ""
        yield inspect.cleandoc(verb.help)
        yield ""
        yield from _examples(EXAMPLES[name])
        if rows := list(argument_rows(verb.params)):
            yield from _table("argument", rows)
        yield from _table("option", option_rows(verb.params))


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
