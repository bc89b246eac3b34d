"""Output of a program as people capture it: in another encoding, and in colours.

A shell of Windows writes UTF-16, and a terminal adds colours. What launchers put before each line,
`waywiser.exchange.imports.line_prefixes` takes away.
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


def without_escapes(text: str) -> str:
    """The same lines without colours, movements of the cursor and titles of windows."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text
