"""The start of a launch: the process that starts the launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from waywiser.measure.ranks.leftovers import shared_folder
from waywiser.measure.ranks.mpi_library import MpiError

_KEEPER = Path(__file__).with_name("keeper.py")
"""The program that starts the launcher and outlives this process."""


def start_launcher(
    words: list[str], environment: Mapping[str, str], temporary: str
) -> subprocess.Popen[bytes]:
    """The launcher, in a session of its own, as the keeper's process that ends as it does."""
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        raise MpiError(
            "the launcher is no program that can be run",
            where=words[0],
            remedy="name another: --launcher 'mpiexec -n {ranks} {command}'",
        )
    folders = (temporary, shared_folder(temporary))
    keeper = [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), *folders]
    return subprocess.Popen(
        [*keeper, program, *words[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=environment,
    )
