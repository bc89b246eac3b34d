"""The consoles that texts are printed to: a terminal, or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from waywiser.cli import streams
from waywiser.words import visible

PIPE_COLUMNS = 160
"""Lines in a pipe are not folded at the width of some terminal."""


def plain_console(*, to_errors: bool = False) -> Console:
    """Colours and folding in a terminal (unless ``NO_COLOR``), plain lines in a pipe. Of standard
    output, or ``to_errors`` of standard error."""
    console = _Patient(highlight=False, stderr=to_errors)
    if console.is_terminal:
        return console
    return _Patient(highlight=False, stderr=to_errors, width=PIPE_COLUMNS)


class _Patient(Console):
    """When its reader leaves, it goes on in silence: what the command found stays its exit code,
    where rich would end with 1, which says that something was found. What it is given may come
    from a file that anyone made, and steers no terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def on_broken_pipe(self) -> None:
        self.quiet = True
        streams.give_up(sys.stderr if self.stderr else sys.stdout)
