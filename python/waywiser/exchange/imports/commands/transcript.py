"""The commands that a text shows, each with the environment that the lines above it made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import MOST_TEXT, CommandLine, commands_in
from waywiser.exchange.imports.commands.launch_state import is_setting
from waywiser.exchange.imports.commands.programs import MENTIONS
from waywiser.exchange.imports.commands.shell_lines import (
    LEAVES,
    OtherCommand,
    other_command,
    typed_text,
)
from waywiser.exchange.imports.commands.shell_words import (
    commands_with_files,
    expanded,
    simple_commands,
)

_MARK = r"[$#%>❯]"
_PROMPTS = re.compile(
    rf"(?:\([\w.-]{{1,40}}\)\s*)?(?:"
    rf"(?P<trace>\+{{1,4}})\s+|{_MARK}\s+"
    rf"|\[[^\]\n]{{1,80}}\]\s*{_MARK}\s*"
    rf"|[\w.-]{{1,40}}@[\w.-]{{1,60}}[:\s][^\s$#%>]{{0,120}}(?:\s\([\w./-]{{1,60}}\))?\s?{_MARK}\s+"
    r"|➜\s+\S{1,60}\s+(?:git:\(\S{1,60}\)\s+)?(?:✗\s+)?"
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
    """Whether it ran several times, in a loop whose count is not known."""
    is_at_once: bool = False
    """Whether the shell did not wait for it, so that the order of the results is not known."""


Shown = ShownCommand | OtherCommand


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

    def leave(self) -> None:
        """Another shell may not have what this one has."""
        self.variables, self.exported, self.once, self.modules = {}, set(), set(), []

    def ran(self) -> None:
        """A command that ran takes with it what only it was given."""
        for name in self.once:
            self.variables.pop(name, None)
        self.once = set()


def shown_commands(lines: Sequence[str]) -> list[ShownCommand]:
    """Every command of a benchmark in the text, in order."""
    return [each for each in shown_lines(lines) if isinstance(each, ShownCommand)]


def shown_lines(lines: Sequence[str]) -> list[Shown]:
    """Every command of a benchmark in the text, and every other one that was typed, in order."""
    return list(_shown(lines, _ShellState()))


def _shown(lines: Sequence[str], state: _ShellState) -> Iterator[Shown]:
    end = 0
    is_output = typed_before = False
    for n, line in enumerate(lines):
        if n < end or len(line) > MOST_TEXT or _STARTING.search(line) or _NO_COMMAND.match(line):
            continue
        typed = typed_text(line)
        if not (typed or MENTIONS.search(line) or _CHANGES.match(line)
                or line.rstrip()[-1:] == "\\"):  # fmt: skip
            continue
        text, after = _joined(lines, n)
        is_quoted = typed_before and not typed and (is_output or _is_prose(lines, n))
        found = _read(text, state, is_quoted)
        if found is None:
            if typed:
                end = after
                others = list(_other(typed_text(text), n, after, state))
                is_output = typed_before = True
                yield from others
            continue
        end = after
        commands, is_typed, is_loop = found
        if is_typed:
            is_output, typed_before = False, True
        is_at_once = bool(_AT_ONCE.search(text))
        for command in commands:
            if not any(each.startswith("module=") for each in command.settings):
                settings = tuple(sorted({*command.settings, *state.settings()}))
                command = replace(command, settings=settings)
            yield ShownCommand(n, after, command, is_typed, is_loop, is_at_once)


def _is_prose(lines: Sequence[str], n: int) -> bool:
    """Whether the next line above that is not blank is none of a table, a shell or a heading."""
    above = next((line for line in reversed(lines[max(0, n - 20) : n]) if line.strip()), "#")
    return not (above.lstrip()[:1] in "#0123456789=-*" or _CHANGES.match(above)
                or typed_text(above))  # fmt: skip


_NO_COMMAND = re.compile(
    r"\s*(?:#!|#SBATCH|#PBS|#BSUB|(?i:usage|example|e\.g\.|hint|note|see)\b"
    r"|#+\s*(?:[A-Za-z][\w ]{0,40}:|(?i:run|use|try|see|usage|example)\s))"
)
"""Lines that speak of a command."""
_AT_ONCE = re.compile(r"(?<![&>|])&(?![&>0-9])")


def _other(text: str, start: int, end: int, state: _ShellState) -> Iterator[OtherCommand]:
    verb = text.split(maxsplit=1)[0] if text else ""
    if verb in LEAVES:
        state.leave()
    if found := other_command(text, start, end):
        yield found


def _joined(lines: Sequence[str], n: int) -> tuple[str, int]:
    """A line with those that continue it, and the number of the line after them."""
    text = lines[n]
    while _CONTINUED.search(text) and n + 1 < len(lines) and len(text) < MOST_TEXT:
        n += 1
        text = f"{text.rstrip()[:-1].rstrip()} {lines[n].lstrip().removeprefix('> ')}"
    if _LOOP_BEGINS.search(text) and not _LOOP_ENDS.search(text):
        last = next((m for m in range(n + 1, min(n + MOST_OF_LOOP, len(lines)))
                     if _LOOP_ENDS.match(lines[m].lstrip("> \t"))), None)  # fmt: skip
        if last is not None:
            body = [each.strip().removeprefix("> ").strip() for each in lines[n + 1 : last + 1]]
            text = f"{text} {'; '.join(filter(None, body))}"
            text = re.sub(r"\bdo\s*;", "do", text)
            n = last
    return text.replace("\\ ", " ") if "\\\n" in text else text, n + 1


_LOOP_BEGINS = re.compile(r"(?:^|[$+>#%]\s+)(?:for|while|until)\b.*;\s*do\b")
_LOOP_ENDS = re.compile(r"(?:^|[;\s])done\b")
MOST_OF_LOOP = 40
_FOR = re.compile(r"for\s+([A-Za-z_]\w*)\s+in\s+(.+?)\s*;\s*do\s+(.+?)\s*;?\s*done\b")
_FOR_OUTER = re.compile(r"for\s+([A-Za-z_]\w*)\s+in\s+(.+?)\s*;\s*do\s+(.+)\s*;?\s*done\b")
MOST_REPEATED = 200


def _unrolled(text: str, known: dict[str, str]) -> tuple[list[CommandLine], bool]:
    """(commands of a line, each as often as its loops run it, whether a count is not known)."""
    found = _FOR_OUTER.match(text) if text.count("done") > 1 else _FOR.match(text)
    if found is None:
        return commands_in(text, known), bool(_LOOP.match(text))
    values = _values(found[2])
    if values is None:
        return commands_in(text, known), True
    commands: list[CommandLine] = []
    for value in values:
        inner, is_loop = _unrolled(found[3].strip(), {**known, found[1]: value})
        commands += inner
        if is_loop or len(commands) > MOST_REPEATED:
            return commands_in(text, known), True
    commands = [_without(each, found[1], known) for each in commands]
    rest, _ = _unrolled(text[found.end() :].lstrip("; "), known) if text[found.end() :] else ([], 0)
    return [*commands, *rest], False


def _without(command: CommandLine, name: str, known: dict[str, str]) -> CommandLine:
    """The command without the variable of its loop, which is no part of its environment."""
    value = command.environment.get(name)
    if value is None or name in known:
        return command
    return replace(
        command,
        environment={k: v for k, v in command.environment.items() if k != name},
        settings=tuple(each for each in command.settings if each != f"{name}={value}"),
    )


def _values(text: str) -> list[str] | None:
    """The words that a loop goes through; None if they are not known."""
    if counted := re.fullmatch(r"\{([0-9]{1,3})\.\.([0-9]{1,3})\}", text.strip()):
        return [str(n) for n in range(int(counted[1]), int(counted[2]) + 1)]
    if counted := re.fullmatch(r"(?:\$\(|`)seq ([0-9]{1,3} )?([0-9]{1,3})(?:\)|`)", text.strip()):
        return [str(n) for n in range(int(counted[1] or 1), int(counted[2]) + 1)]
    words = [word for each in simple_commands(text) for word in each]
    return None if any(set(word) & set("$*?`{") for word in words) else words


def _read(
    text: str, state: _ShellState, is_quoted: bool = False
) -> tuple[list[CommandLine], bool, bool] | None:
    """(commands, whether they were typed, whether they are of a loop) of one line; None if it is
    of no shell."""
    rest, is_typed, is_trace = text.strip().rstrip("=-*#").rstrip(), False, False
    rest = re.sub(r"\s\.{2,}$", "", rest)
    is_heading = False
    if typed_text(rest) and (prompt := _PROMPTS.match(rest)):
        is_typed, is_trace = True, prompt["trace"] is not None
        rest = rest[prompt.end() :]
    for _ in range(5):
        commands, is_loop = _in_parts(rest, state, is_trace) if is_typed else ([], False)
        if not commands:
            commands, is_loop = _unrolled(rest, {**state.variables})
            commands = [_with_exported(each, state) for each in commands]
        if commands and (is_typed or not all(each.is_bare for each in commands)):
            state.ran()
            return commands, is_typed, is_loop
        if _SHELL_STATE.match(rest):
            if not is_quoted and not is_heading:
                _take(rest, state, is_trace)
            return ([], is_typed, False) if not is_typed or not MENTIONS.search(rest) else None
        if prompt := _PROMPTS.match(rest):
            is_typed, is_trace = True, prompt["trace"] is not None
            rest = rest[prompt.end() :]
        elif label := _LABELS.match(rest):
            is_heading = is_heading or label[0][:1] in "-=*#>"
            rest = rest[label.end() :]
        else:
            return None
    return None


_STATE_VERBS = frozenset({"export", "unset", "setenv", "module", "ml", "source", "."})


def _in_parts(text: str, state: _ShellState, is_trace: bool) -> tuple[list[CommandLine], bool]:
    """The commands of a typed line some of whose parts change the shell; none for other lines."""
    parts = commands_with_files(text)
    changes = [words[0] in _STATE_VERBS for words, _ in parts]
    if not any(changes) or len(parts) < 2 or _LOOP.match(text) or not MENTIONS.search(text):
        return [], False
    commands: list[CommandLine] = []
    for (words, file), is_change in zip(parts, changes, strict=True):
        if is_change:
            state.take(words, is_trace)
            continue
        part = shlex.join(words) + (f" > {shlex.quote(file)}" if file else "")
        for each in commands_in(part, {**state.variables}):
            found = _with_exported(each, state)
            settings = tuple(sorted({*found.settings, *state.settings()}))
            commands.append(replace(found, settings=settings, text=" ".join(text.split())))
    return commands, False


def _take(text: str, state: _ShellState, is_trace: bool) -> None:
    for words in simple_commands(text):
        if not MENTIONS.search(" ".join(words)):
            state.take(words, is_trace)


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
