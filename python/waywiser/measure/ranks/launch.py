"""A launch of ranks that connect back, from its start to its end, after which no process, shared
memory or temporary file of it is left.

A rank is a process that calls `waywiser.measure.ranks.rank.connect_back`.
"""

from __future__ import annotations

import hmac
import os
import secrets
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from waywiser.measure.probe.channel import READ_BYTES
from waywiser.measure.probe.worker_process import Log
from waywiser.measure.ranks.greeting import MOST_LINE_BYTES, Greeting, Joined, from_line
from waywiser.measure.ranks.launcher import launch_command, launch_environment
from waywiser.measure.ranks.leftovers import (
    abandoned_files,
    folders,
    mapped_files,
    remove,
    shared_folder,
)
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.ranks.rank_end import RankEnd
from waywiser.words.closeable import Closeable
from waywiser.words.number_format import count

_KEEPER = Path(__file__).with_name("keeper.py")
"""The program that starts the launcher and outlives this process."""

_LOOK_SECONDS = 0.05
"""Seconds between two looks at a launcher that has not ended, while ranks start."""

_POLL_SECONDS = 0.005
"""Seconds between two looks at a launcher that ends."""

_GREETING_SECONDS = 2.0
"""Seconds in which a process that has connected says who it is."""

_EXIT_SECONDS = 0.5
"""Seconds for a launcher to follow its ranks."""

_LEAVE_SECONDS = 2.0
"""Seconds in which a launcher ends and cleans up after its ranks have ended."""

_KILL_SECONDS = 15.0
"""Seconds for a killed process to be gone; one in the middle of a driver call can take seconds."""


class Launch(Closeable):
    """Ranks of one command, started on this machine. Raises `MpiError` with one line if they do not
    start, and has then ended."""

    def __init__(
        self,
        library: MpiLibrary,
        command: Sequence[str],
        ranks: int,
        *,
        template: str = "",
        seconds: float = 60.0,
    ) -> None:
        self.ranks: list[RankEnd] = []
        """Those that have connected; in the order of their numbers after `join`."""
        self._library = library
        self._size = ranks
        self._log = Log()
        self._shared: set[str] = set()
        self._secret = secrets.token_hex(16)
        self._words = launch_command(library, command, ranks, template)
        with ExitStack() as stack:
            self._listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            temporary = stack.enter_context(folders())
            self._began = os.stat(temporary).st_ctime
            address = f"{self._listener.getsockname()[1]}:{self._secret}"
            environment = launch_environment(ranks, address, temporary)
            self.launcher = _start(self._words, environment, temporary)
            """The process that started the launcher, and ends as it does."""
            assert self.launcher.stdout is not None
            stack.enter_context(self.launcher.stdout)
            os.set_blocking(self.launcher.stdout.fileno(), False)
            stack.callback(self._end)
            self._connect(seconds)
            self._resources = stack.pop_all()

    def join(self, seconds: float = 60.0) -> None:
        """Waits until MPI has started in all ranks, each of which then says so
        (`waywiser.measure.ranks.rank.say_joined`). Raises `MpiError`, also for a launcher that
        belongs to another library: each of its processes is alone."""
        for rank, line in zip(self.ranks, self.answers("start of MPI", seconds), strict=True):
            rank.joined = from_line(line, Joined)
        joined = [rank.joined for rank in self.ranks if rank.joined]
        if [each.size for each in joined] != [self._size] * self._size:
            raise MpiError(
                f"the launcher started {count(self._size, 'process')} that are alone: it is not "
                f"the launcher of {self._library.name}",
                where=self._words[0],
                remedy="use the mpiexec of this library, or name the mpicc of the launcher's",
            )
        self.ranks.sort(key=lambda rank: rank.joined.rank if rank.joined else 0)

    def answers(self, what: str, seconds: float) -> list[bytes]:
        """The next line of each rank, in their order. Raises `MpiError` as soon as one ends
        instead, and when the time is over; ``what`` is what they do meanwhile."""
        deadline = time.monotonic() + seconds
        while waiting := [rank for rank in self.ranks if not rank.lines]:
            ready, _, _ = select.select([r.connection for r in waiting], [], [], _LOOK_SECONDS)
            for rank in waiting:
                if rank.connection in ready and not rank.receive() and not rank.lines:
                    raise self._loss(rank, what)
            if not ready:
                self._require_running(f"ended the {what}", self._size - len(waiting))
            if time.monotonic() > deadline:
                stages = "; ".join(rank.doing() for rank in waiting)
                raise self._failure(f"no end of the {what} in {seconds:.3g} s: {stages}")
        return [rank.lines.popleft() for rank in self.ranks]

    def printed(self) -> str:
        """The last lines that launcher and ranks printed, as one line without rulers."""
        self._drain()
        lines = self._log.tail().split(" | ")
        return " | ".join(line for line in lines if any(map(str.isalnum, line)))

    def close(self) -> None:
        """Ends all ranks and the launcher."""
        self._resources.close()

    def _connect(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while len(self.ranks) < self._size:
                if selector.select(_LOOK_SECONDS):
                    self._accept()
                    continue
                self._require_running("connected", len(self.ranks))
                if time.monotonic() > deadline:
                    have = f"{len(self.ranks)} of {self._size} ranks"
                    raise self._failure(f"{have} have connected in {seconds:.3g} s")

    def _accept(self) -> None:
        """Takes in a rank; drops whoever does not know the secret."""
        with ExitStack() as stack:
            connection = stack.enter_context(self._listener.accept()[0])
            connection.settimeout(_GREETING_SECONDS)
            with suppress(OSError):
                line = connection.recv(MOST_LINE_BYTES)
                greeting = from_line(line, Greeting)
                if greeting and hmac.compare_digest(greeting.secret, self._secret):
                    connection.settimeout(None)
                    self.ranks.append(RankEnd(connection, greeting))
                    stack.pop_all()

    def _require_running(self, what: str, have: int) -> None:
        self._drain()
        status = self.launcher.poll()
        if status is not None:
            raise self._failure(
                f"the launcher ended with status {status} when {have} of {self._size} ranks had "
                f"{what}"
            )

    def _loss(self, rank: RankEnd, what: str) -> MpiError:
        """The end of a rank, or of the launcher, which takes its ranks along."""
        self.launcher_ends(_EXIT_SECONDS)  # what it prints about this comes first
        if (self.launcher.poll() or 0) < 0:
            name = signal.Signals(-self.launcher.returncode).name
            return self._failure(f"the launcher was killed by {name}, in the {what}")
        return self._failure(f"rank {rank.number} ended, in the {what}")

    def _failure(self, reason: str) -> MpiError:
        printed = self.printed()
        said = f"; launcher and ranks printed: {printed}" if printed else ""
        if len(self.ranks) < self._size:
            remedy = "see whether the launcher starts another command"
        elif not all(rank.joined for rank in self.ranks):
            remedy = f"see whether it is the launcher of {self._library.name}"
        else:
            remedy = ""
        return MpiError(f"{reason}{said}", where=self._words[0], remedy=remedy)

    def _drain(self) -> None:
        assert self.launcher.stdout is not None
        with suppress(BlockingIOError):
            while data := os.read(self.launcher.stdout.fileno(), READ_BYTES):
                self._log.add(data)

    def launcher_ends(self, seconds: float) -> bool:
        """Whether the launcher ends within that time; takes in what it prints meanwhile."""
        deadline = time.monotonic() + seconds
        while self.launcher.poll() is None:
            if time.monotonic() > deadline:
                return False
            self._drain()
            time.sleep(_POLL_SECONDS)
        return True

    def _end(self) -> None:
        """Ranks end when their sockets are closed, and the launcher cleans up after them. Whoever
        does not is killed."""
        for rank in self.ranks:
            self._shared.update(mapped_files(rank.pid))
            self._shared.update(rank.joined.shared if rank.joined else ())
            with suppress(OSError):
                rank.connection.shutdown(socket.SHUT_RDWR)
        if not self.launcher_ends(_LEAVE_SECONDS):
            self.launcher.terminate()
            self.launcher_ends(_LEAVE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.launcher.pid, signal.SIGKILL)
        for rank in self.ranks:
            rank.kill()
        self.launcher_ends(_KILL_SECONDS)
        for rank in self.ranks:
            rank.await_end(_KILL_SECONDS)
            rank.close()
        remove(self._shared | abandoned_files(self._began))


def _start(
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
