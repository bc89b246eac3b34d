"""A launch of ranks that connect back, from its start to its end, after which no process, shared
memory or temporary file of it is left.

A rank is a process that calls `waywiser.measure.ranks.rank.connect_back`.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from threading import Lock

from waywiser.measure.probe.channel import READ_BYTES
from waywiser.measure.probe.worker_process import Log, signal_name
from waywiser.measure.ranks.greeting import Joined, from_line
from waywiser.measure.ranks.launch_hosts import LaunchHosts, write_hostfile
from waywiser.measure.ranks.launch_start import (
    end_keeper,
    launch_folders,
    let_start,
    require_room,
    start_keeper,
)
from waywiser.measure.ranks.launcher import (
    exported_variables,
    launch_command,
    launch_environment,
)
from waywiser.measure.ranks.leftovers import (
    abandoned_files,
    folder_of,
    remove,
)
from waywiser.measure.ranks.met_limit import met_limit
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.ranks.rank_end import DistantRank, RankEnd, readable
from waywiser.measure.ranks.rank_listener import RankListener
from waywiser.words.closeable import Closeable
from waywiser.words.number_format import count

_LOOK_SECONDS = 0.05
"""Seconds between two looks at a launcher that has not ended, while ranks start."""

_POLL_SECONDS = 0.005
"""Seconds between two looks at a launcher that ends."""

_EXIT_SECONDS = 0.5
"""Seconds for a launcher to follow its ranks."""

_LOOK_AT_LAUNCHER_SECONDS = 3.0
"""Seconds in which a launcher that was killed is seen to have ended, on a busy machine too. Most
launchers end within milliseconds after a rank."""

_LAST_RANK_SECONDS = 5.0
"""Seconds in which ranks that a launcher has left behind connect, beside others that keep the port
busy."""

_LEAVE_SECONDS = 2.0
"""Seconds in which a launcher ends and cleans up after its ranks have ended."""

_KILL_SECONDS = 15.0
"""Seconds for a killed process to be gone; one in the middle of a driver call can take seconds."""


class RanksMissing(MpiError):
    """Not all ranks have connected."""

    secret = ""
    """That of the launch."""
    connected: Sequence[RankEnd] = ()
    """Those that have; by now they end."""
    is_late = False
    """Whether the time was over, and the launcher still running."""
    printed = ""
    """What launcher and ranks printed, the last kilobytes of it."""


class Launch(Closeable):
    """Ranks of one command, started on this machine or across ``hosts``. Raises `MpiError` with one
    line if they do not start, and has then ended: after ``seconds``, or as soon as ``is_cancelled``
    returns True. What it cannot end on other hosts is for their agents
    (`waywiser.cluster.node_processes`)."""

    def __init__(
        self,
        library: MpiLibrary,
        command: Sequence[str],
        ranks: int,
        *,
        template: str = "",
        seconds: float = 60.0,
        hosts: LaunchHosts | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.ranks: list[RankEnd] = []
        """Those that have connected; in the order of their numbers after `join`."""
        self.prints = True
        """Until launcher and ranks have closed their output."""
        self._library = library
        self._size = ranks
        self._log = Log()
        self._shared: set[str] = set()
        self.secret = secrets.token_hex(16)
        """In the environment of its ranks; no other launch has the same."""
        self._hosts = hosts
        self._is_cancelled = is_cancelled
        self._lock = Lock()
        if hosts is None:
            require_room(library, ranks)
        with ExitStack() as stack:
            self._start(stack, command, template, seconds)
            self._resources = stack.pop_all()

    def _start(
        self, stack: ExitStack, command: Sequence[str], template: str, seconds: float
    ) -> None:
        hosts = self._hosts
        host = hosts.address if hosts else "127.0.0.1"
        # The name of this machine is often an address that only this machine has.
        listener = stack.enter_context(RankListener("" if hosts else host, self.secret))
        temporary = folder_of(self.secret)
        address = f"{host}:{listener.port}:{self.secret}"
        environment = launch_environment(
            self._size, address, temporary, hosts=hosts, template=template
        )
        exported = exported_variables(environment)
        self._words = launch_command(
            self._library, command, self._size, template, hosts, temporary, exported
        )
        self.launcher = start_keeper(self._words, environment, temporary)
        """The process that starts the launcher, and ends as it does."""
        stack.callback(end_keeper, self.launcher)
        assert self.launcher.stdout is not None
        os.set_blocking(self.launcher.stdout.fileno(), False)
        stack.enter_context(launch_folders(self.secret))
        self._began = os.stat(temporary).st_ctime
        if hosts:
            write_hostfile(hosts, temporary, self._library.name)
        let_start(self.launcher)
        stack.callback(self._end)
        self._connect(listener, seconds)

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
            ready = readable([rank.connection for rank in waiting], _LOOK_SECONDS)
            for rank in waiting:
                if rank.connection in ready and not rank.receive() and not rank.lines:
                    raise self._loss(rank, what)
            if not ready and (status := self._status()) is not None:
                have = (
                    f" when {self._size - len(waiting)} of {self._size} ranks had ended the {what}"
                )
                # A rank that it took along may be seen to end first, or not yet.
                raise self._failure(_ended(status) + (have if status >= 0 else f", in the {what}"))
            if time.monotonic() > deadline:
                stages = "; ".join(rank.doing() for rank in waiting)
                raise self._failure(f"no end of the {what} in {seconds:.3g} s: {stages}")
        return [rank.lines.popleft() for rank in self.ranks]

    @property
    def output(self) -> int:
        """The descriptor from which is read what the launcher prints, and ranks by it."""
        assert self.launcher.stdout is not None
        return self.launcher.stdout.fileno()

    def ending(self, rank: RankEnd) -> str:
        """What ended a rank: the launcher, if that was killed."""
        self.launcher_ends(_EXIT_SECONDS)  # what it prints about this comes first
        if (status := self.launcher.poll() or 0) < 0:
            return _ended(status)
        return f"{rank.name} ended"

    def was_killed(self) -> bool:
        """Whether a signal ended the launcher, which takes its ranks along."""
        self.launcher_ends(_LOOK_AT_LAUNCHER_SECONDS)
        return (self.launcher.poll() or 0) < 0

    def await_end(self, rank: RankEnd, seconds: float) -> None:
        """Waits so long for the end of a rank; of one on another host, for that of the launcher."""
        if self._hosts:
            self.launcher_ends(seconds)
        else:
            rank.await_end(seconds)

    def hang_up(self) -> None:
        """Ends the connections to all ranks, from any thread."""
        for rank in self.ranks:
            with suppress(OSError):
                rank.connection.shutdown(socket.SHUT_RDWR)

    def kill(self, rank: RankEnd) -> None:
        """Kills the process of one rank, whose shared memory is removed in the end."""
        self._shared |= rank.shared_files()
        rank.kill()

    @property
    def log(self) -> str:
        """The last kilobytes that launcher and ranks printed."""
        self.drain()
        return self._log.text

    def printed(self) -> str:
        """The last lines that launcher and ranks printed, as one line without rulers."""
        self.drain()
        lines = self._log.tail().split(" | ")
        return " | ".join(line for line in lines if any(map(str.isalnum, line)))

    def close(self) -> None:
        """Ends all ranks and the launcher."""
        self._resources.close()

    def _connect(self, listener: RankListener, seconds: float) -> None:
        """Waits for the greetings of all ranks, and closes the port."""
        deadline = time.monotonic() + seconds
        last = float("inf")
        """When the ranks of a launcher that has ended have connected, or never do."""
        while len(self.ranks) < self._size:
            if self._is_cancelled():
                self.launcher.terminate()
                raise self._missing("the launch was stopped before all ranks had connected")
            greeted, any_came = listener.greeted(_LOOK_SECONDS)
            for rank in greeted:
                kind = DistantRank if self._hosts else RankEnd
                self.ranks.append(kind(rank.connection, rank.greeting, rank.more))
            have = f"{len(self.ranks)} of {self._size} ranks"
            strangers = _rejected(listener.rejected)
            now = time.monotonic()
            if (status := self._status()) is not None:
                last = min(last, now + _LAST_RANK_SECONDS)
                if not any_came or (now > last and not greeted):
                    raise self._missing(f"{_ended(status)} when {have} had connected{strangers}")
            if len(self.ranks) < self._size and now > deadline:
                what = f"{have} have connected in {seconds:.3g} s{strangers}"
                raise self._missing(what, late=True)
        listener.close()

    def _status(self) -> int | None:
        """That of the launcher; None while it runs."""
        self.drain()
        return self.launcher.poll()

    def _missing(self, reason: str, *, late: bool = False) -> MpiError:
        error = self._failure(reason, RanksMissing)
        assert isinstance(error, RanksMissing)
        error.connected, error.is_late, error.printed = list(self.ranks), late, self._log.text
        error.secret = self.secret
        return error

    def _loss(self, rank: RankEnd, what: str) -> MpiError:
        """The end of a rank, or of the launcher."""
        return self._failure(f"{self.ending(rank)}, in the {what}")

    def _failure(self, reason: str, kind: type[MpiError] = MpiError) -> MpiError:
        printed = self.printed()
        said = f"; launcher and ranks printed: {printed}" if printed else ""
        if found := met_limit(printed):
            remedy = found
        elif len(self.ranks) < self._size:
            remedy = "see whether the launcher starts another command"
        elif not all(rank.joined for rank in self.ranks):
            remedy = f"see whether it is the launcher of {self._library.name}"
        else:
            remedy = ""
        return kind(f"{reason}{said}", where=self._words[0], remedy=remedy)

    def drain(self) -> bool:
        """Takes in what has been printed by now; False when nothing more will come."""
        with self._lock, suppress(BlockingIOError):
            while data := os.read(self.output, READ_BYTES):
                self._log.add(data)
            self.prints = False
        return self.prints

    def launcher_ends(self, seconds: float) -> bool:
        """Whether the launcher ends within that time; takes in what it prints meanwhile."""
        deadline = time.monotonic() + seconds
        while self.launcher.poll() is None:
            if time.monotonic() > deadline:
                return False
            self.drain()
            time.sleep(_POLL_SECONDS)
        return True

    def _end(self) -> None:
        """Ranks end when their sockets are closed, and the launcher cleans up after them. Whoever
        does not is killed."""
        for rank in self.ranks:
            self._shared |= rank.shared_files()
        self.hang_up()
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


def _ended(status: int) -> str:
    """How a launcher ended that has this status."""
    if status < 0:
        return f"the launcher was killed by {signal_name(-status)}"
    return f"the launcher ended with status {status}"


def _rejected(connections: int) -> str:
    """What a failure states of connections that were of no rank."""
    if not connections:
        return ""
    return f"; {count(connections, 'connection')} of other processes had to be closed"
