"""What a worker and the drivers in it print: the end of it goes into the reason of a failure."""

from __future__ import annotations

_KEPT_BYTES = 8192
_SHOWN_LINES = 4
_SHOWN_CHARACTERS = 400


class Log:
    """The last few kilobytes of a stream of output."""

    def __init__(self) -> None:
        self._end = b""

    def add(self, data: bytes) -> None:
        self._end = (self._end + data)[-_KEPT_BYTES:]

    def tail(self) -> str:
        """The last lines as one line of printable text; empty when nothing was printed."""
        lines = self._end.decode("utf-8", "replace").splitlines()
        printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
        shown = [line.strip() for line in printable if line.strip()][-_SHOWN_LINES:]
        text = " | ".join(shown)
        return text if len(text) <= _SHOWN_CHARACTERS else "…" + text[-_SHOWN_CHARACTERS:]
