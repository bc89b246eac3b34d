"""The output of a process that a signal ended: the signal and the top frames, without the addresses
and process numbers in which equal crashes differ."""

from __future__ import annotations

import itertools
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
_RULED_LINE = re.compile(r"[-=]{20,}")
_CLOSING = re.compile(
    r"\S+ has exited due to process rank |= +BAD TERMINATION |Primary job +terminated normally"
)
"""The first line of what a launcher prints after any rank that failed."""


def crash_lines(lines: Iterable[str]) -> list[str]:
    """The lines without addresses, process numbers, deep frames and repetitions, each once. If one
    names a signal, it is the first; lines before it are skipped. Of a message between two ruled
    lines, as MPI prints them, its first paragraph is kept; what a launcher prints after any rank
    that failed is left out if there is something else."""
    kept = list(filter(None, map(_kept, _without_advice(lines))))
    first = next((n for n, line in enumerate(kept) if names_signal(line)), None)
    if first is None:
        return list(dict.fromkeys(reversed(kept)))[::-1]
    return list(dict.fromkeys(kept[first:]))


def _without_advice(lines: Iterable[str]) -> list[str]:
    """The lines without the advice of ruled messages and without closing messages of launchers."""
    given = list(lines)
    kept: list[str] = []
    message: list[str] | None = None
    for line in given:
        if not _RULED_LINE.fullmatch(line.strip()):
            (kept if message is None else message).append(line)
        elif message:
            kept += _first_paragraph(message)
            message = None
        else:
            message = []
    # A message that was not closed, or a single ruled line.
    kept += message or []
    return kept if any(map(_kept, kept)) else given


def _first_paragraph(message: list[str]) -> list[str]:
    text = list(itertools.dropwhile(lambda line: not line.strip(), message))
    if text and _CLOSING.match(text[0].strip()):
        return []
    return list(itertools.takewhile(str.strip, text))


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
