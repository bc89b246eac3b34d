"""The start of a launch: the process that starts the launcher, and its end."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from waywiser.machine import TASKS_REMEDY
from waywiser.machine.rank_limits import is_no_task, rank_limits
from waywiser.measure.ranks.leftovers import folder_of, folders, shared_folder
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.supervise import ChildProcess, process

_GUARD = Path(process.__file__).with_name("launch_guard.py")
"""The program that starts the launcher and outlives this process."""


_LEAVE_SECONDS = 2.0
"""Seconds in which a launcher that has to end does, before it is killed."""


class Launcher(ChildProcess):
    """The process that starts the launcher when `start` says so, and ends as it does. It
    follows its ranks. From now on it removes the folders of the launch if this process is killed.
    Raises `MpiError`."""

    name = "launcher"

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], temporary: str
    ) -> None:
        program = shutil.which(words[0], path=environment.get("PATH"))
        if program is None:
            raise MpiError(
                "the launcher is no program that can be run",
                where=words[0],
                remedy="name another: --launcher 'mpiexec -n {ranks} {command}'",
            )
        folders = (temporary, shared_folder(temporary))
        guard = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *folders]
        self._has_started = False
        try:
            super().__init__([*guard, program, *words[1:]], environment, takes_input=True)
        except OSError as error:
            raise MpiError(
                f"the launcher cannot be started: {error.strerror}",
                where=words[0],
                remedy=TASKS_REMEDY if is_no_task(error) else "",
            ) from error

    def start(self) -> None:
        """Starts the launcher. Does nothing if this process has ended."""
        self._has_started = True
        self.give(b"1")

    def close(self) -> None:
        """Ends the launcher, which may clean up, and the processes of its session."""
        if self._has_started:
            self.stop(_LEAVE_SECONDS, group=False)
        super().close()


def require_room(library: MpiLibrary, ranks: int) -> None:
    """Raises `MpiError` for a limit of this machine that so many ranks would meet."""
    for limit in rank_limits(ranks, needs_shared_memory=library.needs_shared_memory):
        raise MpiError(limit.what, remedy=limit.remedy)


@contextmanager
def launch_folders(secret: str) -> Iterator[str]:
    """The folders of a launch, as `waywiser.measure.ranks.leftovers.folders` makes them. Raises
    `MpiError`."""
    with ExitStack() as stack:
        try:
            temporary = stack.enter_context(folders(secret))
        except OSError as error:
            raise MpiError(
                f"the folder for temporary files of the launch cannot be made: {error.strerror}",
                where=folder_of(secret),
                remedy="name a folder that can be written to with TMPDIR",
            ) from error
        yield temporary
