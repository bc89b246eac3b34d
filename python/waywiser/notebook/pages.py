"""Files of reports, which only a report replaces."""

from __future__ import annotations

import os

from waywiser.profile import STANDARD_OUTPUT, OutputKind, require_output, write_output
from waywiser.render.figures.render import MADE

REPORT_FILE = OutputKind("report", MADE)


def require_page(output: str) -> None:
    """Asks, before long work, whether `write_page` could begin, and raises as it does."""
    require_output(output, REPORT_FILE)


def write_page(output: str, content: bytes) -> tuple[str, ...]:
    """``-`` is standard output. Returns what a command says then. Raises `ExistingFile` for a file
    that no report wrote, `NotWritable`."""
    write_output(output, content, REPORT_FILE)
    if output == STANDARD_OUTPUT or not os.path.isfile(output):
        return ()
    return (f"waywiser: wrote {output} ({_megabytes(len(content))})",)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 50_000 else f"{size / 1e3:.0f} kB"
