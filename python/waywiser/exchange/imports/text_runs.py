"""Runs of a tool in one text, each with the command that made it.

A run begins with a title of the tool and ends before the next title, of any tool, and before the
next command. Its command is the last one above it that runs this program and that no other run
has. If commands are listed and not seen to run, as those of a script, and differ, none is taken.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.commands.transcript import ShownCommand, shown_commands
from waywiser.exchange.imports.errors import Malformed, NoTable
from waywiser.exchange.imports.reading import clipped
from waywiser.exchange.imports.result_titles import tool_of


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

    @property
    def settings(self) -> tuple[str, ...] | None:
        """Those of its command; None if no command is known."""
        return self.command.settings if self.command else None


Matches = Callable[[CommandLine, str], bool]
"""Whether a command can have made the table with this title."""


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
    shown = _commands(text)
    found: list[TextRun] = []
    above = 0
    places = [each.start for each in shown]
    for at, (start, following) in enumerate(pairwise([*starts, len(lines)])):
        next_command = bisect_right(places, start)
        last = min([following, *places[next_command : next_command + 1]])
        end = _end(lines, start, last)
        first = bisect_left(places, above)
        command, contested = _command(
            lines, (above, start), shown[max(0, next_command - MOST_LISTED) : next_command],
            max(0, next_command - max(first, next_command - MOST_LISTED)), matches, found,
        )  # fmt: skip
        is_mixed = _is_mixed(lines, starts[max(0, at - 1) : at + 2])
        found.append(TextRun(above, start, end, command, contested, is_mixed))
        above = next((n + 1 for n in range(end - 1, start, -1) if _ROW.match(lines[n])), start + 1)
    return found


_ROW = re.compile(r"\s*[0-9]+\s+\S*[0-9]")
"""What rows of tables begin with."""


@lru_cache(maxsize=1)
def _commands(text: str) -> tuple[ShownCommand, ...]:
    return tuple(shown_commands(text.splitlines()))


def commands_of(text: str) -> tuple[ShownCommand, ...]:
    """Every command of a benchmark in a text."""
    return _commands(text)


MOST_LISTED = 1_000
"""Commands above a title among which that of the run is looked for."""


def _end(lines: Sequence[str], start: int, last: int) -> int:
    """Where a run ends: before the title of another tool and a typed command, and at ``last``."""
    own = tool_of(lines[start])
    for n in range(start + 1, last):
        if _TYPED.match(lines[n]):
            return n
        tool = tool_of(lines[n])
        if tool and (tool != own or is_head(lines[n])):
            return n
    return last


_TYPED = re.compile(r"\s*(?:[$%]|\+{1,4}|\[?[\w.-]+@[\w.-]+[:\s][^$#%>]{0,80}[$#%>])\s+[\w./~]")
"""A command behind a prompt, of any program."""


def is_head(line: str) -> bool:
    """Whether a line is one that nccl-tests print before the title of a run."""
    return bool(_HEAD.match(line))


_HEAD = re.compile(r"#\s*(?:Collective test starting|(?:nccl|rccl)-tests version)")


def _command(
    lines: Sequence[str],
    span: tuple[int, int],
    shown: Sequence[ShownCommand],
    count: int,
    matches: Matches,
    before: Sequence[TextRun],
) -> tuple[CommandLine | None, str]:
    """(the command of the run whose title stands at the end of ``span``, why there is none);
    ``shown`` are those above it, of which the last ``count`` are after the run before."""
    above, start = span
    here = [each for each in shown[len(shown) - count :] if each.end <= start]
    own = [each for each in here if matches(each.command, lines[start])]
    if not own and before and not here and _follows(lines, start, before[-1]):
        return before[-1].command, before[-1].contested
    if not own:
        taken = {id(each.command) for each in before[-MOST_LISTED:]}
        own = [
            each
            for each in shown
            if each.end <= start
            and not each.is_typed
            and id(each.command) not in taken
            and matches(each.command, lines[start])
        ]
    if not own:
        return None, "" if here else _unread(lines[above:start])
    if own[-1].is_typed:
        return own[-1].command, ""
    listed = {_meaning(each.command) for each in own if not each.is_typed}
    if len(listed) > 1:
        return None, f"{len(own)} commands stand above it, and nothing shows which of them made it"
    return own[-1].command, ""


_LAUNCHES = re.compile(
    r"\s*(?:\S{0,80}[$#%>+]\s+)?(?:\w+=\S*\s+)*(?:\S*/)?(?:mpirun|mpiexec|srun|jsrun|lrun|aprun|flux"
    r"|ibrun|mpirun_rsh|docker|numactl)(?:\.\w+)?\s.*(?:osu_[a-z]|_perf\b|nvbandwidth|TransferBench)"
)


def _unread(lines: Sequence[str]) -> str:
    """Says of a line that looks as a command and cannot be read as one; empty without one."""
    found = next((line for line in reversed(lines) if _LAUNCHES.match(line[:1000])), "")
    return f"{clipped(found, 120)!r} above it cannot be read as a command" if found else ""


def _meaning(command: CommandLine) -> tuple[object, ...]:
    return command.program, command.options, command.words, command.ranks, command.settings


def _follows(lines: Sequence[str], start: int, before: TextRun) -> bool:
    """Whether a table stands right below one with the same title: a command that loops makes
    several."""
    if lines[start] != lines[before.start]:
        return False
    n = start - 1
    while n > before.start and not lines[n].strip():
        n -= 1
    last = lines[n].lstrip()
    return n > before.start and (last[:1].isdigit() or last.startswith("#"))


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
