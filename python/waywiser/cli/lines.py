"""Lines of text for a terminal, where they fold and hang by their indent, or for a pipe."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from waywiser.report.program_name import as_called


def say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """A line that hangs by its indent where a terminal folds it, and is not folded in a pipe.
    Commands in it are named as this one was called."""
    text = as_called(text)
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))
    else:
        console.print(Text(" " * indent + text, style=style), soft_wrap=True)
