"""Settings that the lines above a table say, and that are of no command: headings, names of files
and what NCCL read from its environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from waywiser.exchange.imports.commands.launch_state import is_setting
from waywiser.exchange.imports.commands.programs import MENTIONS

UNSURE = "unknown-"
"""How the setting of a run begins whose settings may be others than those of any other run."""

_BY_NCCL = re.compile(r"NCCL INFO (NCCL_\w+) set by environment(?: variable)? to (\S{1,80}?)\.?$")
_OF_FILE = re.compile(r"==> (.{1,200}) <==$")
_ASSIGNMENT = re.compile(r"(?<![\w$./-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=([^\s,;]{1,200})")
_HEADING = re.compile(r"[-=*#\s]*(.*?)[-=*#:\s]*$")
MOST_OF_HEADING = 200


def said_above(lines: Sequence[str], has_no_command: bool) -> tuple[str, ...]:
    """The settings that lines between two tables say. Assignments count in headings, and of a run
    without a command in any short line."""
    said = tuple(dict.fromkeys(_said(lines, has_no_command)))
    heading = _heading(lines) if has_no_command and not said else ""
    return (f"heading={heading}",) if heading else said


def _heading(lines: Sequence[str]) -> str:
    """The words of a heading right above a table, without numbers, times and words for
    repetitions; empty without one."""
    above = next((line.strip() for line in reversed(lines[-3:]) if line.strip()), "")
    if above[:2] not in ("==", "--", "**", "##") or len(above) > MOST_OF_HEADING:
        return ""
    inner = _HEADING.match(above)
    words = re.findall(r"[A-Za-z_]{2,}[\w.-]*", inner[1]) if inner else []
    return " ".join(each for each in words if not _REPEATED.fullmatch(each))


_REPEATED = re.compile(
    r"(?i:run|runs|iteration|iter|trial|repetition|repeat|rep|round|attempt|no|of|the|test|start\w*"
    r"|begin\w*|job|date|time|utc|cest|cet|am|pm|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun"
    r"|jul|aug|sep|oct|nov|dec)[0-9_.-]*"
)


def _said(lines: Sequence[str], has_no_command: bool) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        if found := _BY_NCCL.search(text):
            if is_setting(found[1]):
                yield f"{found[1]}={found[2]}"
        elif found := _OF_FILE.match(text):
            yield f"file={found[1]}"
        elif "=" in text and len(text) <= MOST_OF_HEADING and not MENTIONS.search(text):
            is_heading = text[:2] in ("==", "--", "**", "##")
            if is_heading or has_no_command:
                inner = _HEADING.match(text)
                named = _ASSIGNMENT.findall(inner[1] if inner else text)
                yield from (f"{name}={value}" for name, value in named if is_setting(name))
