"""Writes ``docs/cli.md`` from the commands themselves: ``python -m waywiser.cli.document``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from waywiser.cli.call import command


def document() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines()).strip() + "\n"


def _lines() -> Iterator[str]:
    group = command()
    yield "# The command line"
    yield ""
    yield "<!-- Made by `python -m waywiser.cli.document > docs/cli.md`; a test checks it. -->"
    yield ""
    yield inspect.cleandoc(group.callback.__doc__)
    yield ""
    yield from _options(group)
    for name, verb in group.commands.items():
        yield f"## `{_usage(name, verb)}`"
        yield ""
        yield inspect.cleandoc(verb.help)
        yield ""
        yield from _options(verb)


def _usage(name: str, verb: Any) -> str:
    arguments = [p.metavar for p in verb.params if p.param_type_name == "argument"]
    return " ".join(["waywiser", name, *arguments, "[OPTIONS]"])


def _options(verb: Any) -> Iterator[str]:
    options = [p for p in verb.params if p.param_type_name == "option"]
    yield "| option | what |"
    yield "|---|---|"
    for option in options:
        metavar = "" if option.is_flag else f" {option.metavar}"
        yield f"| `{', '.join(option.opts)}{metavar}` | {option.help} |"
    yield "| `-h, --help` | Show the help and exit. |"
    yield ""


if __name__ == "__main__":
    print(document(), end="")
