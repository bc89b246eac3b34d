"""One command of a benchmark: its program with its options, and what started it, and how.

A line is a command only if all of it parses as one: variables, launchers and wrappers with their
own options, a program that is known, and nothing that the program does not take. A word within a
sentence, a list of files or a title is none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from waywiser.exchange.imports.commands import lsf, mpirun, slurm, wrappers
from waywiser.exchange.imports.commands.launch_state import LaunchState, is_setting
from waywiser.exchange.imports.commands.options import FoundOption, take_options
from waywiser.exchange.imports.commands.programs import MENTIONS, Program, arguments_of, program_of
from waywiser.exchange.imports.commands.shell_words import (
    commands_with_files,
    expanded,
    folder_in,
    split_words,
)
from waywiser.words import Value

MOST_TEXT = 4_000
"""Characters of a line that is read as a command."""
MOST_NESTED = 6
"""Launchers and wrappers in front of a program."""

REDIRECTED = "the command above the table writes to {}: the table is taken as its result"

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_KEYWORDS = frozenset({"do", "then", "else", "{", "(", "!", "while", "if", "until"})
_SCRIPT = re.compile(r"[\w./${}-]+")
"""A program that is not known and that a launcher starts: it starts another one, as a script of a
cluster does."""
_SUBSHELL = re.compile(r"\([^()]*\)")
_OF_LINES = wrappers.SHELLS | {"su", "runuser"}
_NO_WRAPPERS = frozenset(
    ("echo", "printf", "ls", "cat", "which", "ldd", "file", "stat", "rm", "cp", "mv", "test",
     "grep", "head", "tail", "find", "md5sum", "chmod", "nm")
)  # fmt: skip

Reader = Callable[[Sequence[str], int, LaunchState, Callable[[str], bool]], int]
_LAUNCHERS: dict[str, Reader] = {
    **dict.fromkeys(mpirun.NAMES, mpirun.read),
    **dict.fromkeys(mpirun.OF_MVAPICH, mpirun.read_mvapich),
    **dict.fromkeys((*slurm.NAMES, *slurm.OF_FLUX), slurm.read),
    **dict.fromkeys(lsf.NAMES, lsf.read),
}


_FAMILIES = dict.fromkeys(mpirun.NAMES, "mpirun")
"""Names of one launcher."""


class CommandLine(Value, frozen=True):
    """A command of a benchmark."""

    format: str
    """That of the results that its program prints."""
    program: str
    """Its name without its folder."""
    options: tuple[tuple[str, tuple[str, ...]], ...]
    """Those of the program, each with its values, as written."""
    words: tuple[str, ...]
    """What else follows the program."""
    launcher: str
    """The launcher of ranks; empty without one."""
    ranks: int
    """How many the launcher starts; 0 if it does not say."""
    nodes: int
    hosts: tuple[str, ...]
    memory_node: int | None
    """The NUMA node that its memory is bound to."""
    environment: Mapping[str, str]
    """Every variable that the text gives it."""
    settings: tuple[str, ...]
    """What else can change what is measured, in alphabetical order: no counts,
    outputs and names."""
    text: str
    is_bare: bool = False
    """Whether the program stands alone: this may be a name in a list of files."""
    output: str = ""
    """The file that its results go to, and not to the terminal."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes about what the command does not show."""
        return (REDIRECTED.format(self.output[:60]),) if self.output else ()

    def value_of(self, *names: str) -> str:
        """The value of the last of the options with one of these names; empty without one."""
        found = [values for name, values in self.options if name in names and values]
        return found[-1][0] if found else ""


def commands_in(text: str, known: Mapping[str, str]) -> list[CommandLine]:
    """The commands of benchmarks in a line of a shell, with the variables that are ``known``."""
    found: list[CommandLine] = []
    known = dict(known)
    inner = text.strip()[1:-1] if _SUBSHELL.fullmatch(text.strip()) else text
    for words, file in commands_with_files(inner[:MOST_TEXT]):
        if words[0] == "export":
            known |= dict(_assignments(words[1:], known))
        elif words[0] == "cd" and len(words) == 2:
            known["PWD"] = folder_in(known.get("PWD", ""), words[1])
        for each in _each_inner(words):
            if command := _command(each, dict(known), text):
                found.append(replace(command, output=file or command.output))
    return found


def _assignments(words: Sequence[str], known: dict[str, str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if found := _ASSIGNMENT.fullmatch(word):
            yield found[1], expanded(found[2], known)


def _each_inner(words: list[str]) -> Iterator[list[str]]:
    """The command itself, or one for each simple command within the line that it gives to a
    shell, as ``bash -c``, ``su -c`` and ``ssh`` do; with what the line exports before."""
    at = _place_of_line(words)
    if at < 0:
        yield words
        return
    exported: list[str] = []
    for inner, file in commands_with_files(words[at]):
        if inner[0] == "cd" and len(inner) == 2:
            exported.append(f"PWD={inner[1]}")
        elif inner[0] in ("export", "source", ".", "module") and len(inner) > 1:
            own = inner[1:] if inner[0] == "export" else [f"module={'+'.join(inner[1:])}"]
            exported += [each for each in own if _ASSIGNMENT.fullmatch(each)]
        elif any(MENTIONS.search(word) for word in inner):
            line = shlex.join([*exported, *inner])
            if file:
                line += f" > {shlex.quote(file)}"
            yield [*words[:at], line]


def _place_of_line(words: Sequence[str]) -> int:
    """Which word is a line of a shell; -1 for none."""
    names = [word.rpartition("/")[2] for word in words]
    for n, word in enumerate(words):
        if not (re.search(r"\s", word) and MENTIONS.search(word)):
            continue
        if n and re.fullmatch(r"-\w*c", words[n - 1]) and _OF_LINES & {*names[: n - 1]}:
            return n
        if n == len(words) - 1 and wrappers.REMOTE & {*names[:n]}:
            return n
    return -1


def _command(words: list[str], known: dict[str, str], text: str) -> CommandLine | None:
    while words and words[0] in _KEYWORDS:
        words = words[1:]
    parts = _segments(words)
    launch = LaunchState(known)
    first = _program(parts[0], launch, known, text)
    if first is None:
        return None
    if len(parts) > 1:
        ranks = [launch.ranks]
        for part in parts[1:]:
            other = LaunchState(known)
            found = _program([launch.launcher, *part], other, known, text)
            if found is None or not first.is_like(found):
                return None
            ranks.append(other.ranks)
            launch.settings += [each for each in other.settings if each not in launch.settings]
        launch.ranks = sum(ranks) if all(ranks) else 0
    return first.made(launch, text)


def _segments(words: Sequence[str]) -> list[list[str]]:
    """The parts of a command whose launcher starts several programs, separated by colons."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


class _Found:
    """A program with its arguments, before all launches are known."""

    def __init__(
        self, program: Program, word: str, options: list[FoundOption], words: list[str]
    ) -> None:
        self.program, self.word, self.options, self.words = program, word, options, words

    def is_like(self, other: _Found) -> bool:
        """Whether both are the same program with the same arguments."""
        name, *others = (each.word.rpartition("/")[2] for each in (self, other))
        return others == [name] and (self.options, self.words) == (other.options, other.words)

    def made(self, launch: LaunchState, text: str) -> CommandLine:
        folder, _, name = self.word.rpartition("/")
        own = [
            f"{each.name.lstrip('-')}={' '.join(each.values)}" if each.values
            else each.name.lstrip("-")
            for each in self.options
            if each.option.kind == "setting"
        ]  # fmt: skip
        variables = [
            f"{name}={value}" for name, value in launch.environment.items() if is_setting(name)
        ]
        if "/" in self.word:
            folder = folder_in(launch.environment.get("PWD", ""), folder or "/")
        return CommandLine(
            format=self.program.format,
            program=name.removesuffix(".exe"),
            options=tuple((each.name, each.values) for each in self.options),
            words=tuple(self.words),
            launcher=launch.launcher,
            ranks=launch.ranks,
            nodes=launch.nodes,
            hosts=tuple(each.partition(":")[0] for each in launch.hosts),
            memory_node=launch.memory_node,
            environment=launch.environment,
            settings=tuple(
                sorted({*launch.settings, *own, *variables, *([f"in={folder}"] if folder else ())})
            ),
            text=" ".join(text.split()),
            is_bare=launch.environment == launch.known
            and not (self.options or self.words or launch.settings),
        )


def _program(
    words: Sequence[str], launch: LaunchState, known: dict[str, str], text: str
) -> _Found | None:
    words = split_words(words, known)
    at = 0
    for _ in range(MOST_NESTED):
        at = _variables(words, at, launch)
        if at >= len(words):
            return None
        name = words[at].rpartition("/")[2]
        if program := program_of(words[at]):
            arguments = arguments_of(program, words[at + 1 :])
            return _Found(program, words[at], *arguments) if arguments else None
        if name in _LAUNCHERS:
            launch.launcher = name
            launch.set("launcher", _FAMILIES.get(name, name))
            launch.set_folder("launcher-in", words[at])
            at = _LAUNCHERS[name](words, at, launch, _is_command)
        elif name in wrappers.WRAPPERS:
            at = wrappers.read(words, at, launch, _is_command)
            if at == len(words) - 1 and name in wrappers.REMOTE and re.search(r"\s", words[at]):
                return _of_shell(["-c", words[at]], launch, known, text)
        elif name in _OF_LINES:
            if name not in wrappers.SHELLS:
                launch.set("user", " ".join(w for w in words[at + 1 : -2] if w != "-"))
            return _of_shell(words[at + 1 :], launch, known, text)
        elif launch.launcher and _SCRIPT.fullmatch(words[at]) and name not in _NO_WRAPPERS:
            launch.set("by", name)
            options, at = take_options(words, at + 1, {}, _is_command)
            launch.take(options)
        else:
            return None
    return None


def _of_shell(
    words: Sequence[str], launch: LaunchState, known: dict[str, str], text: str
) -> _Found | None:
    """The program of ``bash -c '…'``: the last one of its line."""
    lines = [words[n + 1] for n, word in enumerate(words[:-1]) if re.fullmatch(r"-\w*c", word)]
    if not lines:
        return None
    for inner, _ in commands_with_files(lines[0])[::-1]:
        if found := _program(inner, launch, known, text):
            return found
    return None


def _variables(words: Sequence[str], at: int, launch: LaunchState) -> int:
    while at < len(words) and (found := _ASSIGNMENT.fullmatch(words[at])):
        launch.environment[found[1]] = found[2]
        at += 1
    return at


def _is_command(word: str) -> bool:
    """Whether a word begins what a launcher starts, and is not the value of an option."""
    name = word.rpartition("/")[2]
    return bool(
        program_of(word)
        or name in _LAUNCHERS
        or name in wrappers.WRAPPERS
        or name in wrappers.SHELLS
        or word == ":"
    )
