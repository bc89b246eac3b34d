"""Runs of a tool in one text, each with the command that made it.

A run begins with a title of the tool and ends before the next title, of any tool, and before the
next command. `waywiser.exchange.imports.run_commands` says which command made it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.commands.prompts import typed_text
from waywiser.exchange.imports.commands.transcript import Shown, ShownCommand, shown_lines
from waywiser.exchange.imports.foreign_file import Malformed, NoTable
from waywiser.exchange.imports.result_titles import tool_of
from waywiser.exchange.imports.run_commands import Matches, Titled, decided, meaning
from waywiser.exchange.imports.said_settings import (
    UNSURE,
    headings,
    hosts_above,
    said_above,
    sections,
)


class TextRun(NamedTuple):
    """Numbers of lines, counted from 0, and the command."""

    above: int
    """Where the lines above its title begin: after the last row of the run before."""
    start: int
    """Its title."""
    end: int
    """The line after its last."""
    command: CommandLine | None = None
    contested: str = ""
    """Why none of the commands above is taken; empty if there is none, or one is."""

    is_mixed: bool = False
    """Whether a title of the same tool stands right above or below its own."""

    said: tuple[str, ...] = ()
    """Settings that the lines above its title say beside its command."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes about what its command does not show."""
        return self.command.notes if self.command else ()

    @property
    def settings(self) -> tuple[str, ...] | None:
        """Those of its command, and what else is said; None if nothing is."""
        if self.command is None:
            return self.said or None
        return tuple(sorted({*self.command.settings, *self.said}))


def of_format(format: str) -> Matches:
    """Any command whose program prints this format."""
    return lambda command, _: command.format == format


def text_runs(
    text: str, title: re.Pattern[str], where: str, words: str, matches: Matches
) -> list[TextRun]:
    """Every run of a text. Raises `NoTable` without a title, which begins with ``words``."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if title.match(line)]
    if not starts:
        raise NoTable(f"no title that begins with {words}", where=where)
    places = [each.start for each in commands_of(text)]
    spans: list[tuple[int, int, int]] = []
    above = 0
    for start, following in pairwise([*starts, len(lines)]):
        next_command = bisect_right(places, start)
        last = min([following, *places[next_command : next_command + 1]])
        spans.append((above, start, end := _end(lines, start, last)))
        above = next((n + 1 for n in range(end - 1, start, -1) if _ROW.match(lines[n])), start + 1)
    made = runs_at(text, [Titled(above, start) for above, start, _ in spans], matches)
    return [
        each._replace(end=end, is_mixed=_is_mixed(lines, starts[max(0, at - 1) : at + 2]))
        for at, (each, (_, _, end)) in enumerate(zip(made, spans, strict=True))
    ]


def runs_at(text: str, titles: Sequence[Titled], matches: Matches) -> list[TextRun]:
    """The runs that begin at these lines, each to its first line only."""
    lines = text.splitlines()
    found = decided(lines, titles, shown_of(text), matches)
    named = headings(lines, titles)
    runs, hosts = [], ""
    for (above, start), made, heading in zip(titles, found, named, strict=True):
        hosts = hosts_above(lines[above:start]) or hosts
        has_none = made.command is None
        said = said_above(lines[above:start], has_none)
        if heading and has_none and not said:
            said = (f"heading={heading}",)
        if hosts:
            said = (*said, f"hosts={hosts}")
        if made.is_unsure:
            said = (*said, f"{UNSURE}{start + 1}")
        runs.append(TextRun(above, start, start + 1, made.command, made.contested,
                            said=(*said, *made.settings)))  # fmt: skip
    return _with_sections(lines, runs)


def _with_sections(lines: Sequence[str], runs: Sequence[TextRun]) -> list[TextRun]:
    """The runs, those of one command and below different headings with their heading."""
    named = sections(lines, [(each.above, each.start) for each in runs])
    keys = [
        (lines[each.start], meaning(each.command), each.said) if each.command else None
        for each in runs
    ]
    differ: dict[object, set[str]] = defaultdict(set)
    for key, name in zip(keys, named, strict=True):
        differ[key].add(name)
    return [
        each._replace(said=(*each.said, f"heading={name}"))
        if key is not None and name and len(differ[key]) > 1
        else each
        for each, key, name in zip(runs, keys, named, strict=True)
    ]


_ROW = re.compile(r"\s*[0-9]+\s+\S*[0-9]")
"""What rows of tables begin with."""


@lru_cache(maxsize=1)
def shown_of(text: str) -> tuple[Shown, ...]:
    """Every command of a benchmark in a text, and every other one that was typed."""
    return tuple(shown_lines(text.splitlines()))


def commands_of(text: str) -> list[ShownCommand]:
    """Every command of a benchmark in a text."""
    return [each for each in shown_of(text) if isinstance(each, ShownCommand)]


def _end(lines: Sequence[str], start: int, last: int) -> int:
    """Where a run ends: before the title of another tool and a typed command, and at ``last``."""
    own = tool_of(lines[start])
    for n in range(start + 1, last):
        if typed_text(lines[n]):
            return n
        tool = tool_of(lines[n])
        if tool and (tool != own or is_head(lines[n])):
            return n
    return last


def is_head(line: str) -> bool:
    """Whether a line is one that nccl-tests print before the title of a run."""
    return bool(_HEAD.match(line))


_HEAD = re.compile(r"#\s*(?:Collective test starting|(?:nccl|rccl)-tests version)")


def _is_mixed(lines: Sequence[str], starts: Sequence[int]) -> bool:
    """Whether only blank lines are between two titles."""
    return any(not any(map(str.strip, lines[one + 1 : other])) for one, other in pairwise(starts))


def mixed(where: str, run: TextRun, what: str) -> Malformed:
    """The error for a run between whose lines stand those of another one."""
    return Malformed(
        f"{what}: lines of two runs are mixed",
        where=f"{where}:{run.start + 1}",
        remedy="write the source before each line and sort by it: srun --label … | "
        "sort -s -t: -k1,1n",
    )


def truncated(where: str, run: TextRun) -> Malformed:
    """The error for a run whose table has no row."""
    return Malformed(
        "the table has no row: it is truncated",
        where=f"{where}:{run.start + 1}",
        remedy="run the benchmark again",
    )
