"""The command as the user called it."""

from __future__ import annotations

import os
import re
import sys

NAME = "waywiser"

AS_MODULE = f"python -m {NAME}"

_COMMAND = re.compile(
    rf"(?<![\w./-])(?<!-m ){NAME} (?=(?:check|compare|doctor|export|fleet|help|import|list|report|"
    r"show|survey|topology)\b)"
)
"""A command in a text."""


def program_name() -> str:
    """``waywiser``, wherever it lies: a printed command may be for another computer;
    ``python -m waywiser`` if it was called so."""
    folder, file = os.path.split(sys.argv[0])
    is_module = file == "__main__.py" and os.path.basename(folder) == NAME
    return AS_MODULE if is_module else NAME


def as_called(text: str) -> str:
    """The text with the commands in it named by `program_name`."""
    return _COMMAND.sub(lambda _: f"{program_name()} ", text) if _COMMAND.search(text) else text
