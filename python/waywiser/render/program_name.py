"""The command as the user called it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

NAME = "waywiser"

_COMMAND = re.compile(
    rf"(?<![\w./-])(?<!-m ){NAME} (?=(?:--completion|advise|check|cluster|compare|doctor|export|"
    r"help|import|predict|report|show|simulate|survey|topology|trace|tune)\b)"
)
"""A command in a text."""


def program_name() -> str:
    """What can be typed here to call the command again: ``waywiser`` if that is this one, else the
    path by which it was called; ``python -m waywiser`` if it was called so."""
    folder, file = os.path.split(sys.argv[0])
    if file == "__main__.py" and os.path.basename(folder) == NAME:
        return f"{_typed(sys.executable)} -m {NAME}"
    return _typed(sys.argv[0]) if file == NAME else NAME


def _typed(path: str) -> str:
    """The name of a program if a shell finds the program by it; else the path, from the current
    folder on if the program is below it."""
    from shutil import which

    name = os.path.basename(path)
    try:
        found = which(name)
        if path == name or (found and os.path.abspath(found) == os.path.abspath(path)):
            return name
        here = Path.cwd()
    except FileNotFoundError:  # the current folder is gone
        return shlex.quote(path)
    return shlex.quote(str(Path(path).relative_to(here) if here in Path(path).parents else path))


def as_called(text: str) -> str:
    """The text with the commands in it named by `program_name`."""
    return _COMMAND.sub(lambda _: f"{program_name()} ", text) if _COMMAND.search(text) else text
