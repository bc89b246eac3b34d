"""The command as a shell finds it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys

NAME = "waywiser"

_COMMAND = re.compile(
    rf"(?<![\w./-]){NAME} (?=(?:check|compare|doctor|export|fleet|help|import|list|report|show|"
    r"survey|topology)\b)"
)
"""A command in a text."""


def program_name() -> str:
    """``waywiser``, or the path by which it was called if the shell does not find it by name."""
    called = sys.argv[0]
    if os.path.basename(called) != NAME or not os.path.exists(called):
        return NAME
    found = shutil.which(NAME)
    return NAME if found and os.path.samefile(found, called) else shlex.quote(called)


def as_called(text: str) -> str:
    """The text with the commands in it named by `program_name`."""
    return _COMMAND.sub(lambda _: f"{program_name()} ", text) if _COMMAND.search(text) else text
