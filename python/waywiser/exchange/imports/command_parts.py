"""Texts of formats without a title of a run, cut where a command stands between two results."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.run_commands import Titled
from waywiser.exchange.imports.said_settings import is_marked, marked_words
from waywiser.exchange.imports.text_runs import of_format, runs_at, shown_of
from waywiser.exchange.imports.visible_gpus import with_settings

Read = Callable[[str, str], Sequence[ForeignFile]]


def read_by_commands(
    read: Read, title: re.Pattern[str], format: str, text: str, where: str
) -> list[ForeignFile]:
    """What ``read`` finds in each part of a text, with the settings of its command. A part begins
    with a command that a result stands below; its lines keep their numbers. Raises `Malformed` if
    no part is good."""
    lines = text.splitlines()
    titles = list(_titles(lines, text, title))
    if not titles:
        return list(read(text, where))
    found: list[ForeignFile] = []
    errors: list[Malformed] = []
    ends = [each.above for each in titles[1:]] + [len(lines)]
    for run, end in zip(runs_at(text, titles, of_format(format)), ends, strict=True):
        part = "\n" * run.above + "\n".join(lines[run.above : end])
        ended = part + ("\n" if end < len(lines) or text.endswith("\n") else "")
        try:
            files = read(ended if len(titles) > 1 else text, where)
        except Malformed as error:
            errors.append(error)
            continue
        heading = marked_words(lines[run.above]) if run.command is None and not run.said else ""
        said = (f"heading={heading}",) if heading else run.said
        found += (with_settings(each, run.command, said) for each in files)
    if not found:
        raise errors[0]
    return found


def _titles(lines: Sequence[str], text: str, title: re.Pattern[str]) -> Iterator[Titled]:
    """The first title below each command, and below each heading, that has one."""
    marked = (n for n, line in enumerate(lines) if is_marked(line))
    starts = sorted({*(each.start for each in shown_of(text)), *marked})
    last = -1
    for n, line in enumerate(lines):
        if title.search(line):
            at = bisect_right(starts, n)
            if at != last:
                yield Titled(starts[at - 1] if at and last >= 0 else 0, n)
            last = at
