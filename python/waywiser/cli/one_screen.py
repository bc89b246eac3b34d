"""Text for a terminal that takes no more than a screen of it."""

from __future__ import annotations

import io
import shutil

from waywiser.words import WaywiserError


class TooLongForScreen(WaywiserError):
    """Text that a terminal is not asked to show."""


class OneScreen(io.StringIO):
    """Keeps what is written. Raises `TooLongForScreen` as soon as it has more lines than the
    terminal, less one for the next prompt."""

    def __init__(self) -> None:
        super().__init__(newline="")
        self._size = shutil.get_terminal_size()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._lines() >= self._size.lines:
            raise TooLongForScreen(
                f"this is more than the {self._size.lines} lines of the terminal",
                remedy="write it to a file with -o FILE, or to the terminal with -o -",
            )
        return written

    @property
    def text(self) -> str:
        """What was written."""
        return self.getvalue()

    def _lines(self) -> int:
        """Lines of the terminal, which folds long ones."""
        width = max(1, self._size.columns)
        return sum(max(1, -(-len(line) // width)) for line in self.text.splitlines())
