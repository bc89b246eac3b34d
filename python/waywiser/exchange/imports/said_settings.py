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
    return tuple(dict.fromkeys(_said(lines, has_no_command)))


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
