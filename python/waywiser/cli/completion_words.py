"""The words that can follow on a command line, of each verb."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Values(NamedTuple):
    """What may follow an option, or stand as an argument."""

    kind: Literal["nothing", "words", "pattern", "profiles", "files", "folders"]
    """A ``pattern`` is several of the words, in quotes."""
    words: tuple[str, ...] = ()


class OptionWords(NamedTuple):
    names: tuple[str, ...]
    does: str
    values: Values | None
    """None for an option that takes no value."""

    @property
    def sentence(self) -> str:
        """What it does in the first words, which fit beside the name."""
        return self.does.partition(": ")[0].partition("; ")[0].partition(". ")[0].rstrip(".")


class VerbWords(NamedTuple):
    name: str
    """Empty for the command without a verb."""
    does: str
    options: tuple[OptionWords, ...]
    arguments: Values


NOTHING, PROFILES, FILES = Values("nothing"), Values("profiles"), Values("files")

SUFFIX = "wwp"
"""The suffix of the names of profiles."""
