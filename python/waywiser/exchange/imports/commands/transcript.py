"""The commands that a text shows, each with the environment that the lines above it made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import MOST_TEXT, CommandLine, commands_in
from waywiser.exchange.imports.commands.launch_state import is_setting
from waywiser.exchange.imports.commands.programs import MENTIONS
from waywiser.exchange.imports.commands.shell_words import expanded, simple_commands

_MARK = r"[$#%>❯]"
_PROMPTS = re.compile(
    rf"(?:\([\w.-]{{1,40}}\)\s*)?(?:"
    rf"(?P<trace>\+{{1,4}})\s+|{_MARK}\s+"
    rf"|\[[^\]\n]{{1,80}}\]\s*{_MARK}\s*"
    rf"|[\w.-]{{1,40}}@[\w.-]{{1,60}}[:\s][^\s$#%>]{{0,120}}\s?{_MARK}\s+"
    rf"|[\w.-]{{1,40}}(?::?[~/][^\s$#%>]{{0,120}})?\s?{_MARK}\s+)"
)
"""What a shell prints before a command, and before each one that ``set -x`` shows."""
_LABELS = re.compile(
    r"(?:\[[^\]\n]{1,60}\]:?\s*|(?:INFO|DEBUG|NOTE)\b:?\s*|[-=*#>]{2,}\s*"
    r"|[0-9T:.,-]{8,32}Z?\s+"
    r"|(?i:running|executing|launching|starting|run|cmd|command(?: line)?|launch command is)"
    r"(?:\s(?:command|cmd|test|benchmark))?\s*[:=]?\s+"
    r"|[A-Za-z][\w ]{0,30}:\s+)"
)
"""What a script writes before a command that it shows."""
_STARTING = re.compile(r"Collective test (?:starting|concluded)")
_SHELL_STATE = re.compile(
    r"(?:export|unset|setenv|module|ml|source|\.)\s+\S|[A-Za-z_]\w*=\S*\s*(?:$|;|[A-Za-z_]\w*=)"
)
"""Lines that change what later commands are given."""
_CHANGES = re.compile(
    r"\s*(?:\[[^\]\n]{1,80}\]:?\s*|[0-9T:.,-]{8,32}Z?\s+|[\w.-]{1,60}:\s+){0,4}"
    rf"(?:\+{{1,4}}\s+|[^\s=]{{0,80}}(?:\s[^\s=]{{1,60}})?\s?{_MARK}\s+)?"
    r"(?:(?:export|unset|setenv|module|ml|source|\.)\s+\S|[A-Za-z_]\w*=\S*\s*(?:$|;|[A-Za-z_]\w*=))"
)
"""A line that may change what later commands are given."""
_CONTINUED = re.compile(r"\\\s*$")
_LOOP = re.compile(r"^\s*(?:for|while|until|watch|seq|xargs)\b")


class ShownCommand(NamedTuple):
    """A command with its lines, counted from 0."""

    start: int
    end: int
    """The line after its last."""
    command: CommandLine
    is_typed: bool
    """Whether a prompt or a trace shows that it ran there, and is not only listed."""
    is_loop: bool


class _ShellState:
    """The environment, as the lines of a text change it."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        """All that are known: some only for the words of later commands."""
        self.exported: set[str] = set()
        self.once: set[str] = set()
        """Those that a trace shows before a command, which alone has them."""
        self.modules: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        return {
            name: self.variables[name] for name in sorted(self.exported & self.variables.keys())
        }

    def take(self, words: Sequence[str], is_trace: bool) -> None:
        """What one simple command changes."""
        verb, *others = words
        if verb == "export":
            for each in others:
                self._assign(each, exported=True)
        elif verb == "setenv" and len(others) >= 1:
            self._assign(f"{others[0]}={' '.join(others[1:])}", exported=True)
        elif verb == "unset":
            for name in others:
                self.variables.pop(name, None)
        elif verb in ("module", "ml"):
            self._load([each for each in others if not each.startswith("-")])
        elif verb in ("source", ".") and others:
            self.modules.append(f"source {others[0]}")
        elif all("=" in word for word in words):
            for each in words:
                self._assign(each, exported=False, once=is_trace)

    def _assign(self, text: str, *, exported: bool, once: bool = False) -> None:
        name, separator, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return
        if separator:
            self.variables[name] = expanded(value, self.variables)
        if exported or (is_setting(name) and name.isupper() and "_" in name):
            self.exported.add(name)
            (self.once.add if once else self.once.discard)(name)

    def _load(self, words: Sequence[str]) -> None:
        if words[:1] and words[0] in ("purge", "reset"):
            self.modules = []
        elif words[:1] and words[0] in ("unload", "rm", "del"):
            self.modules = [each for each in self.modules if each not in words[1:]]
        elif words[:1] and words[0] in ("swap", "switch"):
            kept = [each for each in self.modules if each not in words[1:]]
            self.modules = [*kept, *words[-1:]]
        elif words[:1] and words[0] in ("list", "avail", "use", "show", "spider", "av", "save"):
            return
        else:
            loaded = words[1:] if words[:1] and words[0] in ("load", "add") else words
            self.modules += [each for each in loaded if each not in self.modules]

    def settings(self) -> tuple[str, ...]:
        return tuple(f"module={each}" for each in sorted(set(self.modules)))

    def ran(self) -> None:
        """A command that ran takes with it what only it was given."""
        for name in self.once:
            self.variables.pop(name, None)
        self.once = set()


def shown_commands(lines: Sequence[str]) -> list[ShownCommand]:
    """Every command of a benchmark in the text, in order."""
    state = _ShellState()
    return list(_shown(lines, state))


def _shown(lines: Sequence[str], state: _ShellState) -> Iterator[ShownCommand]:
    end = 0
    for n, line in enumerate(lines):
        if n < end or len(line) > MOST_TEXT or _STARTING.search(line):
            continue
        if not (MENTIONS.search(line) or _CHANGES.match(line) or line.rstrip()[-1:] == "\\"):
            continue
        text, after = _joined(lines, n)
        found = _read(text, state)
        if found is None:
            continue
        end = after
        commands, is_typed, is_loop = found
        for command in commands:
            command = replace(
                command, settings=tuple(sorted({*command.settings, *state.settings()}))
            )
            yield ShownCommand(n, after, command, is_typed, is_loop)


def _joined(lines: Sequence[str], n: int) -> tuple[str, int]:
    """A line with those that continue it, and the number of the line after them."""
    text = lines[n]
    while _CONTINUED.search(text) and n + 1 < len(lines) and len(text) < MOST_TEXT:
        n += 1
        text = f"{text.rstrip()[:-1].rstrip()} {lines[n].lstrip().removeprefix('> ')}"
    return text.replace("\\ ", " ") if "\\\n" in text else text, n + 1


def _read(text: str, state: _ShellState) -> tuple[list[CommandLine], bool, bool] | None:
    """(commands, whether they were typed, whether they are of a loop) of one line; None if it is
    of no shell."""
    rest, is_typed, is_trace = text.strip().rstrip("=-*#").rstrip(), False, False
    for _ in range(5):
        known = {**state.variables}
        commands = commands_in(rest, known)
        commands = [_with_exported(each, state) for each in commands]
        if commands and (is_typed or not all(each.is_bare for each in commands)):
            state.ran()
            return commands, is_typed, bool(_LOOP.match(rest))
        if _SHELL_STATE.match(rest):
            for words in simple_commands(rest):
                state.take(words, is_trace)
            return [], is_typed, False
        if prompt := _PROMPTS.match(rest):
            is_typed, is_trace = True, prompt["trace"] is not None
            rest = rest[prompt.end() :]
        elif label := _LABELS.match(rest):
            rest = rest[label.end() :]
        else:
            return None
    return None


def _with_exported(command: CommandLine, state: _ShellState) -> CommandLine:
    """The command without the variables of the shell that it is not given."""
    hidden = {
        name
        for name, value in state.variables.items()
        if name not in state.exported and command.environment.get(name) == value
    }
    if not hidden:
        return command
    gone = {f"{name}={command.environment[name]}" for name in hidden}
    return replace(
        command,
        environment={k: v for k, v in command.environment.items() if k not in hidden},
        settings=tuple(each for each in command.settings if each not in gone),
    )
