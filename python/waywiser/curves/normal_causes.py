"""Known causes of a bandwidth below that of other machines, with the command that checks each."""

from __future__ import annotations

import pathlib
import tomllib
from functools import cache

import msgspec

from waywiser.words import Value

FILE = pathlib.Path(__file__).with_name("normal_causes.toml")


class Cause(Value, frozen=True):
    """One cause, as ``normal_causes.toml`` has it."""

    id: str
    name: str
    """The cause in a few words, as a list of causes has it."""
    links: tuple[str, ...]
    """What the name of the link begins with."""
    cause: str
    check: str
    """A command of the shell that shows whether it is so, and changes nothing."""
    look_for: str
    """What to look for in the output of the command."""
    example: str
    """What such a machine showed; empty if no source is named."""
    source: str
    paths: tuple[str, ...] = ()
    """Headline paths; empty for all."""

    def explains(self, link: str, path: str) -> bool:
        """Whether it may slow down a path over a link."""
        one = link.partition(" × ")[2] or link
        return one.startswith(self.links) and (not self.paths or path in self.paths)


@cache
def shipped_causes() -> tuple[Cause, ...]:
    """The causes that this version knows, the most frequent first."""
    with FILE.open("rb") as file:
        rows = tomllib.load(file)["cause"]
    return msgspec.convert(rows, tuple[Cause, ...])


def causes_of(link: str, path: str) -> list[Cause]:
    """Returns the causes that may slow down a path over a link."""
    return [cause for cause in shipped_causes() if cause.explains(link, path)]
