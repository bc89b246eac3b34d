"""The start of a launch: the process that starts the launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from waywiser.machine.rank_limits import TASKS_REMEDY, is_no_task, rank_limits
from waywiser.measure.ranks.leftovers import folder_of, folders, shared_folder
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary

_KEEPER = Path(__file__).with_name("keeper.py")
"""The program that starts the launcher and outlives this process."""


def start_keeper(
    words: list[str], environment: Mapping[str, str], temporary: str
) -> subprocess.Popen[bytes]:
    """The process that starts the launcher when `let_start` says so, and ends as it does, in a
    session of its own. From now on it removes the folders of the launch if this process is killed.
    Raises `MpiError`."""
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        raise MpiError(
            "the launcher is no program that can be run",
            where=words[0],
            remedy="name another: --launcher 'mpiexec -n {ranks} {command}'",
        )
    folders = (temporary, shared_folder(temporary))
    keeper = [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), *folders]
    try:
        return subprocess.Popen(
            [*keeper, program, *words[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        raise MpiError(
            f"the launcher cannot be started: {error.strerror}",
            where=words[0],
            remedy=TASKS_REMEDY if is_no_task(error) else "",
        ) from error


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


def let_start(keeper: subprocess.Popen[bytes]) -> None:
    """Lets the keeper start the launcher. Does nothing if the keeper has ended."""
    assert keeper.stdin is not None
    with suppress(BrokenPipeError), keeper.stdin:
        keeper.stdin.write(b"\n")
        keeper.stdin.flush()


def end_keeper(keeper: subprocess.Popen[bytes]) -> None:
    """Ends a keeper that may not have started anything."""
    for pipe in (keeper.stdin, keeper.stdout):
        if pipe is not None:
            pipe.close()
    keeper.kill()
    keeper.wait()
