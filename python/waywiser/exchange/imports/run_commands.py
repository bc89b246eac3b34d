"""Which command made each table of a text.

The last command above a title that was typed, or that is listed below the last typed one, decides.
Commands of one line, and those of a loop, made the tables below it in their order, if there are as
many. Anything else is uncertain: the run has no command, and is no block of another one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.commands.shell_lines import OtherCommand
from waywiser.exchange.imports.commands.transcript import Shown, ShownCommand
from waywiser.exchange.imports.foreign_file import clipped

Matches = Callable[[CommandLine, str], bool]
"""Whether a command can have made the table with this title."""

MOST_LISTED = 1_000
"""Commands above a title among which that of the run is looked for."""


class Titled(NamedTuple):
    """A title, with where the lines above it begin that are of no run before."""

    above: int
    start: int


class Decided(NamedTuple):
    command: CommandLine | None = None
    contested: str = ""
    """Why none of the commands above is taken; empty if there is none, or one is."""
    is_unsure: bool = False
    """Whether its settings may be others than those of any other run."""
    settings: tuple[str, ...] = ()
    """The settings without a command: that of another program which the table stands below."""


def decided(
    lines: Sequence[str], titles: Sequence[Titled], shown: Sequence[Shown], matches: Matches
) -> list[Decided]:
    """The command of each run, whose titles are in their order."""
    found: list[Decided | None] = []
    groups: dict[int, list[int]] = defaultdict(list)
    starts = [each.start for each in shown]
    for n, title in enumerate(titles):
        before = shown[: bisect_left(starts, title.start)]
        typed = _last_typed(before)
        listed = _listed(before, title, typed, lines, matches)
        if listed or typed is None:
            own = listed or _not_taken(before, found, lines[title.start], matches)
            found.append(_of_listed(own, typed, lines, title, found, titles, n))
        else:
            groups[starts.index(typed.start)].append(n)
            found.append(None)
    for first, numbers in groups.items():
        for n, each in zip(
            numbers, _of_typed(lines, [titles[n] for n in numbers], shown, first, matches),
            strict=True,
        ):  # fmt: skip
            found[n] = each
    return [each or Decided() for each in found]


def _last_typed(before: Sequence[Shown]) -> Shown | None:
    return next((e for e in reversed(before) if isinstance(e, OtherCommand) or e.is_typed), None)


def _listed(
    before: Sequence[Shown],
    title: Titled,
    typed: Shown | None,
    lines: Sequence[str],
    matches: Matches,
) -> list[ShownCommand]:
    """The commands that are only listed below the run before and the last typed line."""
    first = max(title.above, typed.end if typed else 0)
    return [
        each
        for each in before[-MOST_LISTED:]
        if isinstance(each, ShownCommand)
        and first <= each.start
        and each.end <= title.start
        and matches(each.command, lines[title.start])
    ]  # fmt: skip


def _not_taken(
    before: Sequence[Shown], found: Sequence[Decided | None], title: str, matches: Matches
) -> list[ShownCommand]:
    """The listed commands that no run above has."""
    taken = {id(each.command) for each in found[-MOST_LISTED:] if each}
    return [
        each
        for each in before[-MOST_LISTED:]
        if isinstance(each, ShownCommand)
        and id(each.command) not in taken
        and matches(each.command, title)
    ]


def _of_listed(
    own: Sequence[ShownCommand], typed: Shown | None, lines: Sequence[str], title: Titled,
    found: Sequence[Decided | None], titles: Sequence[Titled], n: int,
) -> Decided:  # fmt: skip
    """What commands that are only listed say of a run."""
    before = found[-1] if found else None
    if before and not own and before.command and _follows(lines, title, titles[n - 1]):
        return before
    if own:
        meanings = {meaning(each.command) for each in own}
        if isinstance(typed, ShownCommand) and typed.start >= title.above:
            meanings.add(meaning(typed.command))
        if len(meanings) > 1:
            return Decided(None, _many(max(len(own), len(meanings))), True)
        return _sure(own[-1].command)
    unread = _unread(lines[title.above : title.start])
    return Decided(None, unread, bool(unread))


def _many(count: int) -> str:
    return f"{count} commands stand above it, and nothing shows which of them made it"


def _sure(command: CommandLine) -> Decided:
    """The command; a variable in its settings that is not known makes it uncertain."""
    unsure = any(
        name not in _SAME_EVERYWHERE for each in command.settings for name in _NAMED.findall(each)
    )
    return Decided(command, "", unsure)


_NAMED = re.compile(r"\$[{(]?\s*([A-Za-z_]\w*|.)")
_SAME_EVERYWHERE = frozenset(
    {"HOME", "USER", "PWD", "PATH", "LD_LIBRARY_PATH", "HOSTNAME", "CUDA_HOME"}
)
"""Variables that a text does not say and that have one value in it."""


def _of_typed(
    lines: Sequence[str], titles: Sequence[Titled], shown: Sequence[Shown], first: int,
    matches: Matches,
) -> Iterator[Decided]:  # fmt: skip
    """The runs below one typed line, which is the ``first`` among those of its place."""
    line = shown[first]
    if isinstance(line, OtherCommand):
        made = _printed(line, shown[:first])
        if made is None:
            yield from _by_other(line, lines, titles, shown[:first], matches)
            return
        commands, is_loop, at_once = [replace(e, output="") for e in made], False, False
    else:
        same = [e for e in shown[first:] if isinstance(e, ShownCommand) and e.start == line.start]
        commands = [each.command for each in same]
        is_loop = line.is_loop
        at_once = line.is_at_once or any(each.output for each in commands)
        if others := _also_possible(line, titles[0], shown[:first], at_once):
            yield from (Decided(None, _many(others + 1), True) for _ in titles)
            return
    yield from _in_order(lines, titles, line.end, commands, is_loop, at_once, matches)


def _also_possible(
    line: ShownCommand, title: Titled, before: Sequence[Shown], writes_files: bool
) -> int:
    """How many other commands may have made the first table below a typed one: those that the
    shell did not wait for, and all if the typed one writes to a file."""
    own = meaning(line.command)
    others = {
        meaning(each.command)
        for each in before[-MOST_LISTED:]
        if isinstance(each, ShownCommand)
        and each.start >= title.above
        and (each.is_at_once or (writes_files and each.is_typed))
        and each.command.program == line.command.program
    }
    return len(others - {own})


def _in_order(
    lines: Sequence[str], titles: Sequence[Titled], end: int, commands: Sequence[CommandLine],
    is_loop: bool, at_once: bool, matches: Matches,
) -> Iterator[Decided]:  # fmt: skip
    """The commands of one line, for the tables below it."""
    possible = [
        tuple(n for n, each in enumerate(commands) if matches(each, lines[title.start]))
        for title in titles
    ]
    seen: dict[tuple[int, ...], int] = defaultdict(int)
    for title, key in zip(titles, possible, strict=True):
        own = [commands[n] for n in key]
        at, count = seen[key], possible.count(key)
        seen[key] += 1
        if not own:
            unread = _unread(lines[max(title.above, end) : title.start])
            yield Decided(None, unread, True)
        elif len({meaning(each) for each in own}) == 1 and (at < len(own) or is_loop):
            yield _sure(own[0])
        elif not at_once and (count == len(own) or (is_loop and count % len(own) == 0)):
            yield _sure(own[at % len(own)])
        else:
            yield Decided(
                None, f"{_counted(len(own), 'command')} above it made "
                f"{_counted(count, 'table')}, and nothing shows which made it", len(own) > 1
            )  # fmt: skip


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _printed(line: OtherCommand, before: Sequence[Shown]) -> list[CommandLine] | None:
    """The commands whose results are in the files that a command prints; None if one is not
    known."""
    made: dict[str, list[CommandLine]] = defaultdict(list)
    for each in before:
        if isinstance(each, ShownCommand) and each.command.output:
            made[each.command.output.removeprefix("./")].append(each.command)
    files = [each.removeprefix("./") for each in line.files]
    if not files or not all(each in made for each in files):
        return None
    return [command for each in files for command in made[each]]


def _by_other(
    line: OtherCommand, lines: Sequence[str], titles: Sequence[Titled], before: Sequence[Shown],
    matches: Matches,
) -> Iterator[Decided]:  # fmt: skip
    """The runs below a command of another program: of a script that the text lists, if it has one
    command and made one table."""
    last = next((e for e in reversed(before) if isinstance(e, OtherCommand)), None)
    text = clipped(line.text, 120)
    seen: Counter[str] = Counter()
    for title in titles:
        own = [
            each
            for each in before[-MOST_LISTED:]
            if isinstance(each, ShownCommand)
            and each.start >= titles[0].above
            and matches(each.command, lines[title.start])
        ]
        seen[lines[title.start]] += 1
        if _LAUNCHES.match(line.text) or _LAUNCHER.search(line.text):
            yield Decided(None, f"{text!r} above it cannot be read as a command", True)
        elif not own:
            number = seen[lines[title.start]]
            table = (f"table={number}",) if number > 1 else ()
            yield Decided(settings=(f"by={text}", *table, *line.settings))
        elif len(own) + len(titles) == 2 and not own[0].is_typed and _runs_file(line, last):
            yield _sure(own[0].command)
        else:
            yield Decided(None, f"{text!r} stands between it and the commands above it", True)


def _runs_file(line: OtherCommand, shown: OtherCommand | None) -> bool:
    """Whether a line runs the one file that another one printed."""
    if shown is None:
        return False
    names = [each.rpartition("/")[2] for each in shown.files]
    words = [each.rpartition("/")[2] for each in line.text.split()]
    return len(names) == 1 and names[0] in words and not line.files


_LAUNCHES = re.compile(
    r"\s*(?:\S{0,80}[$#%>+]\s+)?(?:\w+=\S*\s+)*(?:\S*/)?(?:mpirun|mpiexec|srun|jsrun|lrun|aprun|flux"
    r"|ibrun|mpirun_rsh|docker|numactl|ssh|su|env|bash|sh|[a-z]+_perf|nvbandwidth|osu_[a-z]+|\w+=)"
    r"(?:[._]\w+)?\s.*(?:osu_[a-z]|_perf\b|nvbandwidth|TransferBench)"
)


_LAUNCHER = re.compile(
    r"(?:^|[\s;&|(])(?:\S*/)?(?:mpirun|mpiexec|orterun|prun|srun|jsrun|lrun|aprun|flux|ibrun|salloc|bsub"
    r"|qsub|docker|docker-compose|podman|kubectl|oc|singularity|apptainer|enroot|runuser|script|watch"
    r"|xargs|parallel|numactl|taskset)(?:[._]\w+)?\s.*(?:osu_[a-z]|_perf\b|nvbandwidth|TransferBench)"
)  # fmt: skip
"""A typed command that starts a benchmark somehow."""


def _unread(lines: Sequence[str]) -> str:
    """Says of a line that looks as a command and cannot be read as one; empty without one."""
    found = next((line for line in reversed(lines) if _LAUNCHES.match(line[:1000])), "")
    return f"{clipped(found, 120)!r} above it cannot be read as a command" if found else ""


def meaning(command: CommandLine) -> tuple[object, ...]:
    """What makes two commands the same."""
    return command.program, command.options, command.words, command.ranks, command.settings


def _follows(lines: Sequence[str], title: Titled, before: Titled) -> bool:
    """Whether a table stands right below one with the same title: a command that loops makes
    several."""
    if lines[title.start] != lines[before.start]:
        return False
    n = title.start - 1
    while n > before.start and not lines[n].strip():
        n -= 1
    last = lines[n].lstrip()
    return n > before.start and (last[:1].isdigit() or last.startswith("#"))
