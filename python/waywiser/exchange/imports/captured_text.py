"""Output of a program as people capture it: in another encoding, in colours, below a launcher.

A shell of Windows writes UTF-16, a terminal adds colours, and launchers put the rank before each
line (``srun --label``, Open MPI ``--tag-output``, Hydra ``-prepend-rank``, a container's log).
`plain_text` takes these away and keeps every line at its number.
"""

from __future__ import annotations

import re

from waywiser.exchange.imports.errors import ImportFailed

_BYTE_ORDER_MARKS = (
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B])")
"""Colours, movements of the cursor and titles of windows."""

_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[[\w.@-]{1,60},[0-9]{1,7}\](?:<std(?:out|err)>)?: ?",  # Open MPI --tag-output
        r"[ 0-9]{0,7}[0-9]: ",  # srun --label
        r"\[[0-9]{1,7}\] ",  # Intel MPI and MPICH -prepend-rank
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,20}(?:Z|[-+][0-9:]{4,6}) (?:std(?:out|err) [FP] )?",
        r"[\w.-]{1,60} {1,12}\| ",  # docker compose logs
    )
)
"""What a launcher puts before every line of a program."""

LEAST_SHARE = 0.5
"""Lines that must have a prefix before it counts as one of a launcher. What the launcher itself
prints has none."""


def decoded(data: bytes, where: str) -> str:
    """The text of ``data``: UTF-8, or UTF-16 as its first bytes show. Raises `ImportFailed`, with
    the line, for anything else."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "")
    if not encoding:
        encoding = _encoding_by_zeros(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ImportFailed(
            "is not text",
            where=f"{where}:{line}",
            remedy="name the file that the benchmark wrote, in UTF-8 or UTF-16",
        ) from error


def _encoding_by_zeros(data: bytes) -> str:
    """UTF-16 without a byte order mark has a zero in nearly every second byte."""
    head = data[:4096]
    if len(head) >= 4 and len(head) % 2 == 0:
        for encoding, first in (("utf-16-le", 1), ("utf-16-be", 0)):
            every_second, others = head[first::2], head[1 - first :: 2]
            if every_second.count(0) > 0.9 * len(every_second) and not others.count(0):
                return encoding
    return "utf-8"


def plain_text(text: str) -> str:
    """The same lines without colours and without the prefix of a launcher."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    lines = text.split("\n")
    filled = [line for line in lines if line.strip()]
    for prefix in _PREFIXES:
        if sum(map(bool, map(prefix.match, filled))) > LEAST_SHARE * len(filled):
            return "\n".join(prefix.sub("", line, count=1) if prefix.match(line) else line
                             for line in lines)  # fmt: skip
    return text
