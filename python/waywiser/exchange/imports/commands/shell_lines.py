"""Lines that a shell ran and whose program is no benchmark: what stands below may be theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from waywiser.exchange.imports.commands.shell_words import simple_commands

_SILENT = frozenset(
    {
        "cd", "ls", "pwd", "pushd", "popd", "date", "hostname", "echo", "printf", "export",
        "unset", "module", "ml", "source", ".", "setenv", "set", "which", "type", "whoami", "id",
        "uname", "nvidia-smi", "rocm-smi", "lscpu", "lstopo", "free", "df", "du", "kill",
        "squeue", "sinfo", "sacct", "scontrol", "qstat", "bjobs", "mkdir", "rm", "cp", "mv",
        "ln", "chmod", "touch", "sleep", "wait", "tee", "test", "[", "[[", "true", ":", "shift",
        "local", "declare", "read", "return", "ulimit", "clear", "vi", "vim", "nano", "ldd",
        "file", "stat", "ompi_info", "ucx_info", "ibstat", "lspci", "getconf", "seq", "basename",
        "dirname", "tr", "cut", "wc", "for", "do", "done", "while", "if", "then", "fi", "git",
        "exit", "alias", "taskset", "renice", "nvcc",
    }
)  # fmt: skip
"""Commands that print no result of a benchmark."""
_OF_FILES = frozenset(["cat", "head", "tail", "more", "less"])

_BEFORE_OTHERS = frozenset({"do", "then", "else", "if", "while", "until", "time", "!", "{"})
"""Words of a shell that a command follows."""


class OtherCommand(NamedTuple):
    """A line that was typed, or traced, and whose program is no benchmark that is known."""

    start: int
    end: int
    """The line after its last."""
    text: str
    files: tuple[str, ...]
    """The files that it prints, if it is a command that prints files."""
    settings: tuple[str, ...] = ()
    """The settings that its shell gives to its programs."""


def other_command(
    text: str, start: int, end: int, settings: tuple[str, ...]
) -> OtherCommand | None:
    """A typed line as one of another program; None if its programs print no result."""
    commands = simple_commands(text)
    speaking = [words for words in commands if _prints(words)]
    if commands and not speaking:
        return None
    files = speaking[0][1:] if len(speaking) == 1 and speaking[0][0] in _OF_FILES else []
    printed = tuple(each for each in files if each[:1] not in "-+")
    return OtherCommand(start, end, " ".join(text.split()), printed, settings)


def _prints(words: Sequence[str]) -> bool:
    verb = words[0].rpartition("/")[2]
    if re.match(r"[A-Za-z_]\w*=", words[0]) or verb in _BEFORE_OTHERS:
        return len(words) > 1 and _prints(words[1:])
    return not (verb in _SILENT or verb.startswith("(("))
