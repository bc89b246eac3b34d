"""The commands that a text shows, each with the environment that the lines above it made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import MOST_TEXT, CommandLine, commands_in
from waywiser.exchange.imports.commands.lasting_changes import is_lasting_change
from waywiser.exchange.imports.commands.programs import MENTIONS
from waywiser.exchange.imports.commands.prompts import loose_prompt_of, prompt_of, typed_text
from waywiser.exchange.imports.commands.shell_lines import OtherCommand, other_command
from waywiser.exchange.imports.commands.shell_state import STATE_VERBS, Session
from waywiser.exchange.imports.commands.shell_words import commands_with_files, simple_commands

_LABELS = re.compile(
    r"(?:\[[^\]\n]{1,60}\]:?\s*|(?:INFO|DEBUG|NOTE)\b:?\s*|[-=*#>]{2,}\s*"
    r"|[0-9T:.,-]{8,32}Z?\s+"
    r"|(?i:running|executing|launching|starting|run|cmd|command(?: line)?|launch command is)"
    r"(?:\s(?:command|cmd|test|benchmark))?\s*[:=]?\s+"
    r"|[A-Za-z][\w ]{0,30}:\s+)"
)
"""What a script writes before a command that it shows."""
_STARTING = re.compile(r"Collective test (?:starting|concluded)")
_OF_STATE = (
    r"(?:(?:export|unset|unsetenv|setenv|module|ml|source|\.)\s+\S"
    r"|(?:declare|typeset|set|ulimit)\s+[-+]\w|cd\s+\S+\s*(?:$|[;&])"
    r"|(?:conda|mamba|micromamba|spack)\s+(?:(?:de)?activate|(?:un)?load)\b"
    r"|[A-Za-z_]\w*=\S*\s*(?:$|;|[A-Za-z_]\w*=))"
)
_SHELL_STATE = re.compile(_OF_STATE)
"""Lines that change what later commands are given."""
_CHANGES = re.compile(
    r"\s*(?:\[[^\]\n]{1,80}\]:?\s*|[0-9T:.,-]{8,32}Z?\s+|[\w.-]{1,60}:\s+){0,4}"
    r"(?:\+{1,4}\s+|[^\s=]{0,80}(?:\s[^\s=]{1,60})?\s?[$#%>❯]\s+)?" + _OF_STATE
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


def shown_commands(lines: Sequence[str]) -> list[ShownCommand]:
    """Every command of a benchmark in the text, in order."""
    return [each for each in shown_lines(lines) if isinstance(each, ShownCommand)]


def shown_lines(lines: Sequence[str]) -> list[Shown]:
    """Every command of a benchmark in the text, and every other one that was typed, in order."""
    return list(_shown(lines, Session()))


def _shown(lines: Sequence[str], state: Session) -> Iterator[Shown]:
    end = 0
    is_output = typed_before = False
    for n, line in enumerate(lines):
        if n < end or len(line) > MOST_TEXT or _JSON_FIELD.match(line):
            continue
        if _STARTING.search(line) or _NO_COMMAND.match(line):
            continue
        typed = typed_text(line)
        if not (typed or MENTIONS.search(line) or _CHANGES.match(line)
                or line.rstrip()[-1:] == "\\"):  # fmt: skip
            continue
        text, after = _joined(lines, n)
        if typed and (prompt := prompt_of(line)):
            state.shell.at_prompt(prompt)
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
            yield ShownCommand(n, after, command, is_typed, is_loop, is_at_once)


def _is_prose(lines: Sequence[str], n: int) -> bool:
    """Whether the next line above that is not blank is none of a table, a shell or a heading."""
    above = next((line for line in reversed(lines[max(0, n - 20) : n]) if line.strip()), "#")
    return not (above.lstrip()[:1] in "#0123456789=-*" or _CHANGES.match(above)
                or typed_text(above))  # fmt: skip


_JSON_FIELD = re.compile(r'\s*"[\w./ -]*"\s*:\s*(?:"[\w./:-]*"|[-+.\w]+)\s*,?\s*$')
"""A number or one word, of which JSON of benchmarks has many lines: no command with arguments."""
_NO_COMMAND = re.compile(
    r"\s*(?:#!|#SBATCH|#PBS|#BSUB|(?i:usage|example|e\.g\.|hint|note|see)\b"
    r"|#+\s*(?:[A-Za-z][\w ]{0,40}:|(?i:run|use|try|see|usage|example)\s))"
)
"""Lines that speak of a command."""
_AT_ONCE = re.compile(r"(?<![&>|])&(?![&>0-9])")


def _other(text: str, start: int, end: int, state: Session) -> Iterator[OtherCommand]:
    for words, file in commands_with_files(text):
        state.take(words, False, file)
    if found := other_command(text, start, end, state.all_settings()):
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
    text: str, state: Session, is_quoted: bool = False
) -> tuple[list[CommandLine], bool, bool] | None:
    """(commands, whether they were typed, whether they are of a loop) of one line; None if it is
    of no shell."""
    rest, is_typed, is_trace = text.strip().rstrip("=-*#").rstrip(), False, False
    rest = re.sub(r"\s\.{2,}$", "", rest)
    is_heading = False
    if prompt := prompt_of(rest):
        is_typed, is_trace = True, prompt.is_trace
        rest = rest[prompt.end :]
    for _ in range(5):
        commands, is_loop = _in_parts(rest, state, is_trace) if is_typed else ([], False)
        if not commands:
            commands, is_loop = _unrolled(rest, {**state.shell.variables})
            commands = [_in_shell(each, state) for each in commands]
        if commands and (is_typed or not all(each.is_bare for each in commands)):
            state.shell.ran()
            return commands, is_typed, is_loop
        if _SHELL_STATE.match(rest):
            if not is_quoted and not is_heading:
                _take(rest, state, is_trace)
            return ([], is_typed, False) if not is_typed or not MENTIONS.search(rest) else None
        if prompt := loose_prompt_of(rest):
            is_typed, is_trace = True, prompt.is_trace
            rest = rest[prompt.end :]
        elif label := _LABELS.match(rest):
            is_heading = is_heading or label[0][:1] in "-=*#>"
            rest = rest[label.end() :]
        else:
            return None
    return None


_OF_LOOPS = frozenset({"for", "while", "until", "do", "done", "if", "then", "else", "fi", "case"})


def _in_parts(text: str, state: Session, is_trace: bool) -> tuple[list[CommandLine], bool]:
    """The commands of a typed line some of whose parts change the shell; none for other lines."""
    parts = commands_with_files(text)
    changes = [
        words[0] in STATE_VERBS
        or is_lasting_change(words, file)
        or all(map(_VARIABLE.match, words))
        for words, file in parts
    ]
    if not any(changes) or len(parts) < 2 or not MENTIONS.search(text):
        return [], False
    if any(words[0] in _OF_LOOPS for words, _ in parts):
        return [], False
    commands: list[CommandLine] = []
    for (words, file), is_change in zip(parts, changes, strict=True):
        if is_change:
            state.take(words, is_trace, file)
            continue
        part = shlex.join(words) + (f" > {shlex.quote(file)}" if file else "")
        for each in commands_in(part, {**state.shell.variables}):
            commands.append(replace(_in_shell(each, state), text=" ".join(text.split())))
    return commands, False


_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def _take(text: str, state: Session, is_trace: bool) -> None:
    for words, file in commands_with_files(text):
        if not MENTIONS.search(" ".join(words)):
            state.take(words, is_trace, file)


def _in_shell(command: CommandLine, state: Session) -> CommandLine:
    """The command with what its shell gives it, and without the variables that the shell does
    not export."""
    shell = state.shell
    hidden = {
        name
        for name, value in shell.variables.items()
        if name not in shell.exported and command.environment.get(name) == value
    }
    gone = {f"{name}={command.environment[name]}" for name in hidden}
    return replace(
        command,
        environment={k: v for k, v in command.environment.items() if k not in hidden},
        settings=tuple(sorted({*command.settings, *state.settings()} - gone)),
    )
