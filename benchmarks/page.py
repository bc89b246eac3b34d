"""What benchmarks share that print tables of a page under ``docs/results``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """A parser with the first line of a benchmark's text and ``-o``."""
    parser = argparse.ArgumentParser(description=(text or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="add the tables to this page")
    return parser


def print_lines(document: Iterable[str], page: Path | None) -> int:
    """Prints lines as they are made, and then adds them to ``page``; returns the exit code."""
    lines = []
    for line in document:
        print(line, flush=True)
        lines.append(line)
    if page is not None:
        with page.open("a") as file:
            file.write("\n".join(lines) + "\n")
    return 0
