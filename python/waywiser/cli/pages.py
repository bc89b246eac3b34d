"""Files of reports: whole or not at all, over a former report and over nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

from waywiser.cli import streams
from waywiser.cli.overwrite import STANDARD_OUTPUT, explained, is_stream, require_former, write_over
from waywiser.profile.output_path import new_output
from waywiser.report.figures.render import MADE


def write_page(output: str, content: bytes) -> None:
    """``-`` is standard output. Raises `ExistingFile` for a file that no report wrote,
    `NotWritable`, `NotWritten`."""
    if output == STANDARD_OUTPUT:
        _to_standard_output(content)
        return
    path = Path(output)
    with explained(output):
        if is_stream(path):
            path.write_bytes(content)
            return
        if path.exists():
            require_former(output, MADE, "report")
            write_over(output, content)
        else:
            with new_output(path) as part:
                part.write_bytes(content)
    streams.say(f"waywiser: wrote {output} ({_megabytes(len(content))})\n")


def _to_standard_output(content: bytes) -> None:
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # someone captures text
        sys.stdout.write(content.decode(errors="replace"))
        return
    sys.stdout.flush()
    binary.write(content)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 50_000 else f"{size / 1e3:.0f} kB"
