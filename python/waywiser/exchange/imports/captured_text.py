"""Output of a program as people capture it: in another encoding, in colours, below a launcher.

A shell of Windows writes UTF-16, a terminal adds colours, and launchers put the rank before each
line (``srun --label``, Open MPI ``--tag-output``, Hydra ``-prepend-rank``, a container's log).
`plain_text` takes these away and keeps every line at its number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from waywiser.exchange.imports.errors import ImportFailed

_BYTE_ORDER_MARKS = (
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B])")
"""Colours, movements of the cursor and titles of windows."""

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_ZONE = r"(?:Z|[-+][0-9:]{4,6})"

_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[[\w.@-]{1,60},[0-9]{1,7}\](?:<std(?:out|err)>)?: ?",  # Open MPI --tag-output
        r"[ 0-9]{0,7}[0-9]: ",  # srun --label
        r"\[[0-9]{1,7}\] ",  # Intel MPI and MPICH -prepend-rank
        rf"{_DAY}T{_CLOCK}{_ZONE} (?:std(?:out|err) [FP] )?",  # a container's log
        rf"\[(?:{_DAY}[T ])?{_CLOCK}{_ZONE}?\] ?",
        rf"(?:{_DAY} )?{_CLOCK} ",
        rf"[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} [0-9]{{4}} ?(?=\[)",  # Open MPI
        rf"[A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} (?:[\w.-]{{1,60}} [\w.@/-]{{1,60}}\[[0-9]+\]: )?",
        r"[\w.-]{1,60} {1,12}\| ",  # docker compose logs
    )
)
"""What a launcher puts before every line of a program."""

_HOST = re.compile(r"[A-Za-z0-9][\w.-]{0,60}: ?")
"""What pdsh and others put before every line: the same host, unlike the keys of a text."""

MOST_PREFIXES = 3
"""How many prefixes a line may have: the time of a log, and a rank."""

LEAST_SHARE = 0.5
"""Lines that must have a prefix before it counts as one of a launcher. What the launcher itself
prints has none."""

LEAST_LINES = 3
"""Lines that must have a prefix that is the name of a host: a short text may have the same key in
most lines."""


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
    for _ in range(MOST_PREFIXES):
        lines = text.split("\n")
        if (prefix := _common_prefix(lines)) is None:
            break
        text = "\n".join(prefix.sub("", line, count=1) if prefix.match(line) else line
                         for line in lines)  # fmt: skip
    return text


def _common_prefix(lines: Sequence[str]) -> re.Pattern[str] | None:
    """The prefix that most lines have; None if they have none."""
    filled = [line for line in lines if line.strip()]
    least = LEAST_SHARE * len(filled)
    for prefix in _PREFIXES:
        if sum(map(bool, map(prefix.match, filled))) > least:
            return prefix
    hosts = Counter(match[0].rstrip() for line in filled if (match := _HOST.match(line)))
    host, count = max(hosts.items(), key=lambda each: each[1], default=("", 0))
    return re.compile(rf"{re.escape(host)} ?") if count > max(least, LEAST_LINES) else None
