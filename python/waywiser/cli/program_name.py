"""The command as a shell finds it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

NAME = "waywiser"


def program_name() -> str:
    """``waywiser``, or the path by which it was called if the shell does not find it by name."""
    called = sys.argv[0]
    if os.path.basename(called) != NAME or not os.path.exists(called):
        return NAME
    found = shutil.which(NAME)
    return NAME if found and os.path.samefile(found, called) else shlex.quote(called)
