"""Options of launchers and wrappers: which take a value, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class OptionMeaning(NamedTuple):
    """What an option means."""

    kind: str
    """What its value is: ``ranks``, ``nodes``, ``each`` (ranks of a node), ``hosts``, ``sets``
    (resource sets), ``variable`` (of the environment), ``pair`` (name and value of one),
    ``list`` (of variables), ``setting``, or ``plain`` for what changes nothing that is measured."""
    values: int = 1
    """Words that follow it."""
    name: str = ""
    """What it is called in a setting; empty: as written."""


FLAG = OptionMeaning("setting", 0)
SETTING = OptionMeaning("setting", 1)
PLAIN = OptionMeaning("plain", 1)
PLAIN_FLAG = OptionMeaning("plain", 0)


def options(groups: Mapping[str, OptionMeaning]) -> dict[str, OptionMeaning]:
    """A table by option: the keys of ``groups`` are options, separated by blanks."""
    return {name: option for names, option in groups.items() for name in names.split()}


class FoundOption(NamedTuple):
    name: str
    option: OptionMeaning
    values: tuple[str, ...]


_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")


def take_options(
    words: Sequence[str],
    at: int,
    table: Mapping[str, OptionMeaning],
    is_command: Callable[[str], bool],
) -> tuple[list[FoundOption], int]:
    """The options from ``words[at]`` on, and where the first other word is.

    An option that the table lacks has a value if the next word is neither an option nor what
    ``is_command`` names, and is a setting.
    """
    found: list[FoundOption] = []
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        if word == "--":
            return found, at + 1
        name, separator, value = word.partition("=")
        option = table.get(name)
        if separator and option is not None:
            count = max(option.values - 1, 0)
            values = (value, *words[at + 1 : at + 1 + count])
            at += 1 + count
        elif option is not None:
            values = tuple(words[at + 1 : at + 1 + option.values])
            at += 1 + option.values
        elif short := _attached(word, table):
            name, option = short, table[short]
            values = (word[len(short) :].removeprefix("="),)
            at += 1
        else:
            name, option, values, at = _unknown(words, at, is_command)
        found.append(FoundOption(name, option, values))
    return found, at


def _attached(word: str, table: Mapping[str, OptionMeaning]) -> str:
    """The option of one letter that a word begins with, if its value follows at once: ``-n4``."""
    short = word[:2]
    option = table.get(short)
    has_value = option is not None and option.values == 1
    return short if len(word) > 2 and word[1] != "-" and has_value else ""


def _unknown(
    words: Sequence[str], at: int, is_command: Callable[[str], bool]
) -> tuple[str, OptionMeaning, tuple[str, ...], int]:
    name, separator, value = words[at].partition("=")
    if separator:
        return name, SETTING, (value,), at + 1
    following = words[at + 1] if at + 1 < len(words) else "-"
    if following.startswith("-") or is_command(following) or _ASSIGNMENT.match(following):
        return name, FLAG, (), at + 1
    return name, SETTING, (following,), at + 2
