"""What a shell prints before a command: prompts, and the traces of ``set -x``."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMED = r"(?:\((?P<name>[\w.-]{1,40})\)\s*)?"
_MARK = r"[$#%>❯]"
_FORMS = (
    r"(?P<trace>\+{1,4})\s+"
    rf"|\[[^\]\n]{{1,80}}\]\s*{_MARK}\s*"
    rf"|[\w.-]{{1,40}}@[\w.-]{{1,60}}[:\s][^$#%>\n]{{0,120}}{_MARK}\s+"
    r"|➜\s+\S{1,60}\s+(?:git:\(\S{1,60}\)\s+)?(?:✗\s+)?"
    rf"|[\w.-]{{1,40}}(?::?[~/][^\s$#%>]{{0,120}}|-[0-9.]+)\s?{_MARK}\s+"
)
_ANY = re.compile(rf"\s*{_NAMED}(?:{_FORMS}|[$%❯]\s+)(?=[\w./~({{$\"'])")
"""A prompt before a command of any program."""
_OF_BENCHMARKS = re.compile(rf"\s*{_NAMED}(?:{_FORMS}|{_MARK}\s+|[\w.-]{{1,40}}\s?{_MARK}\s+)")
"""A prompt before what has to parse as the command of a benchmark."""
_PLACE = re.compile(
    r"[\w.-]+@(?P<host>[\w.-]+)(?::\s?|\s+)(?P<folder>[^\s\]$#%>]{0,120})"
    r"|(?<![\w@.-])(?P<only>[\w.-]+):(?P<of>[~/][^\s$#%>]*)"
)
MOST_TEXT = 400


class Prompt(NamedTuple):
    end: int
    """The place in the line where the command begins."""
    is_trace: bool
    name: str = ""
    """The environment in brackets before it."""
    host: str = ""
    """The host that it shows; empty if it shows none."""
    folder: str = ""
    """The working folder, or the last part of its path; empty if it shows none."""


def prompt_of(line: str) -> Prompt | None:
    """The prompt before a command of any program; None without one."""
    return _read(_ANY, line)


def loose_prompt_of(line: str) -> Prompt | None:
    """The same before what has to parse as the command of a benchmark: ``#`` and ``>`` too."""
    return _read(_OF_BENCHMARKS, line)


def typed_text(line: str) -> str:
    """Returns the text behind the prompt of a line; empty without a prompt."""
    found = prompt_of(line)
    return line[found.end :].strip() if found else ""


def _read(pattern: re.Pattern[str], line: str) -> Prompt | None:
    found = pattern.match(line[:MOST_TEXT])
    if found is None:
        return None
    place = _PLACE.search(found[0])
    host, folder = ("", "") if place is None else (
        place["host"] or place["only"], place["folder"] or place["of"] or ""
    )  # fmt: skip
    return Prompt(found.end(), found["trace"] is not None, found["name"] or "", host, folder)
