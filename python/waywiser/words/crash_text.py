"""The output of a process that a signal ended: the signal and the top frames, without the addresses
and process numbers in which equal crashes differ."""

from __future__ import annotations

import re
from collections.abc import Iterable

PRINTED = "; it printed: "
"""The text between the reason of a failure and the lines that a process printed."""

BETWEEN_LINES = " | "

_TOP_FRAMES = 3

_PROCESS = re.compile(r"^\[[^\]\s]+:\d+\]\s*")
_FRAME = re.compile(r"^\[ *(\d+)\] .*\[0x[0-9a-f]+\]$")
_ADDRESS = re.compile(r"(\[| at address:? )0x[0-9a-f]+\]?")
_RULER = re.compile(r"^\*\*\* .* \*\*\*$|^(Signal code|Failing at address): ")
_SIGNAL = re.compile(r"^Signal: |^Fatal Python error: |\bCaught signal \d+")


def crash_lines(lines: Iterable[str]) -> list[str]:
    """The lines without addresses, process numbers, deep frames and repetitions, each once. If one
    names a signal, it is the first; lines before it are skipped."""
    kept = list(filter(None, map(_kept, lines)))
    first = next((n for n, line in enumerate(kept) if names_signal(line)), None)
    if first is None:
        return list(dict.fromkeys(reversed(kept)))[::-1]
    return list(dict.fromkeys(kept[first:]))


def names_signal(line: str) -> bool:
    """Whether a line of `crash_lines` says which signal ended a process."""
    return _SIGNAL.search(line) is not None


def without_addresses(reason: str) -> str:
    """The reason of a failure, whose printed lines are those of `crash_lines`."""
    head, printed, lines = reason.partition(PRINTED)
    kept = crash_lines(lines.split(BETWEEN_LINES)) if printed else []
    return f"{head}{PRINTED}{BETWEEN_LINES.join(kept)}" if kept else head


def _kept(line: str) -> str:
    bare = _PROCESS.sub("", line.strip())
    frame = _FRAME.match(bare)
    if _RULER.match(bare) or (frame and int(frame[1]) >= _TOP_FRAMES):
        return ""
    return _ADDRESS.sub("", bare)
