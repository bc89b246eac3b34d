"""Lines of text for a terminal, where they fold and hang by their indent, or for a pipe; ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text


def say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """A line that hangs by its indent where a terminal folds it, and is not folded in a pipe."""
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))
    else:
        console.print(Text(" " * indent + text, style=style), soft_wrap=True)


_UNIT = re.compile(r"[0-9]( ?[^0-9.]+)$")


def range_text(ordered: Sequence[str]) -> str:
    """``48–55.3``, ``2.28–8.6 µs``: the first and the last number, once if they are the same; empty
    without any."""
    if not ordered:
        return ""
    first, last = ordered[0], ordered[-1]
    if first == last:
        return last
    units = [found[1] if (found := _UNIT.search(text)) else "" for text in (first, last)]
    return f"{first.removesuffix(units[0]) if units[0] == units[1] else first}–{last}"
