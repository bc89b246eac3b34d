"""Runs of a program one after the other in one text: each begins with a title."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from waywiser.exchange.imports.errors import Malformed


class TextRun(NamedTuple):
    """Numbers of lines, counted from 0."""

    above: int
    """Where the lines above its title begin: at the title of the run before."""
    start: int
    """Its title."""
    end: int
    """The line after its last."""


def text_runs(
    lines: Sequence[str], title: re.Pattern[str], where: str, words: str
) -> list[TextRun]:
    """Every run of a text. Raises `Malformed` without a title, which begins with ``words``."""
    starts = [n for n, line in enumerate(lines) if title.match(line)]
    if not starts:
        raise Malformed(f"no title that begins with {words}", where=where)
    bounds = pairwise([*starts, len(lines)])
    return [
        TextRun(above, start, end)
        for above, (start, end) in zip([0, *starts], bounds, strict=False)
    ]


def truncated(where: str, run: TextRun) -> Malformed:
    """The error for a run whose table has no row."""
    return Malformed(
        "the table has no row: it is truncated",
        where=f"{where}:{run.start + 1}",
        remedy="run the benchmark again",
    )
