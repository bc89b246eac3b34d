"""A launch of ranks that connect back, from its start to its end, after which no process, shared
memory or temporary file of it is left.

A rank is a process that calls `waywiser.measure.ranks.rank.connect_back`.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from waywiser.measure.probe.protocol import Joined, decode_from_worker
from waywiser.measure.ranks.launch_hosts import LaunchHosts, write_hostfile
from waywiser.measure.ranks.launch_start import Launcher, launch_folders, require_room
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
from waywiser.measure.supervise import NEVER, Deadline, Team
from waywiser.measure.supervise.team import TeamMember
from waywiser.words import Closeable, count

_LOOK_SECONDS = 0.05
"""Seconds between two looks at a launcher that has not ended, while ranks start."""

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
    (`waywiser.cluster.node.node_processes`)."""

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
        self._library = library
        self._size = ranks
        self._shared: set[str] = set()
        self.secret = secrets.token_hex(16)
        """In the environment of its ranks; no other launch has the same."""
        self._hosts = hosts
        self._is_cancelled = is_cancelled
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
        self.launcher = stack.enter_context(Launcher(self._words, environment, temporary))
        """Prints what ranks print, too."""
        stack.enter_context(launch_folders(self.secret))
        self._began = os.stat(temporary).st_ctime
        if hosts:
            write_hostfile(hosts, temporary, self._library.name)
        self.launcher.start()
        stack.callback(self._end)
        self._connect(listener, seconds)

    def join(self, seconds: float = 60.0) -> None:
        """Waits until MPI has started in all ranks, each of which then says so
        (`waywiser.measure.ranks.rank.say_joined`). Raises `MpiError`, also for a launcher that
        belongs to another library: each of its processes is alone."""
        for rank, line in zip(self.ranks, self.answers("start of MPI", seconds), strict=True):
            said = decode_from_worker(line)
            rank.joined = said if isinstance(said, Joined) else None
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
        deadline = Deadline(seconds)
        while waiting := [rank for rank in self.ranks if not rank.channel.heard]:
            ready = readable(waiting, _LOOK_SECONDS)
            for rank in ready:
                if not rank.receive() and not rank.channel.heard:
                    raise self._loss(rank, what)
            if not ready and self._has_ended():
                done = self._size - len(waiting)
                # A rank that it took along may be seen to end first, or not yet.
                when = (
                    f", in the {what}"
                    if self.was_killed(0.0)
                    else f" when {done} of {self._size} ranks had ended the {what}"
                )
                raise self._failure(self.launcher.how_it_ended() + when)
            if deadline.is_over:
                stages = "; ".join(rank.doing() for rank in waiting)
                raise self._failure(f"no end of the {what} in {seconds:.3g} s: {stages}")
        return [rank.channel.heard.popleft() for rank in self.ranks]

    def ending(self, rank: RankEnd) -> str:
        """What ended a rank: the launcher, if that was killed."""
        # What the launcher prints about this comes first.
        was_killed = self.was_killed(_EXIT_SECONDS)
        return self.launcher.how_it_ended() if was_killed else f"{rank.name} ended"

    def was_killed(self, seconds: float = _LOOK_AT_LAUNCHER_SECONDS) -> bool:
        """Whether a signal ended the launcher, which takes its ranks along."""
        self.launcher.await_end(Deadline(seconds))
        return (self.launcher.status or 0) < 0

    def await_end(self, rank: RankEnd, deadline: Deadline) -> None:
        """Waits for the end of a rank; of one on another host, for that of the launcher."""
        if self._hosts:
            self.launcher.await_end(deadline)
        else:
            rank.await_end(deadline)

    def hang_up(self) -> None:
        """Ends the connections to all ranks, from any thread."""
        for rank in self.ranks:
            rank.channel.hang_up()

    def kill(self, rank: RankEnd) -> None:
        """Kills the process of one rank, whose shared memory is removed in the end."""
        self._shared |= rank.shared_files()
        rank.kill()

    @property
    def log(self) -> str:
        """The last kilobytes that launcher and ranks printed."""
        self.launcher.drain_log()
        return self.launcher.log.text

    def printed(self) -> str:
        """The last lines that launcher and ranks printed, as one line without rulers."""
        lines = self.launcher.printed().split(" | ")
        return " | ".join(line for line in lines if any(map(str.isalnum, line)))

    def close(self) -> None:
        """Ends all ranks and the launcher."""
        self._resources.close()

    def _connect(self, listener: RankListener, seconds: float) -> None:
        """Waits for the greetings of all ranks, and closes the port."""
        deadline, last = Deadline(seconds), NEVER
        """When the ranks of a launcher that has ended have connected, or never do."""
        while len(self.ranks) < self._size:
            if self._is_cancelled():
                self.launcher.signal(signal.SIGTERM, group=False)
                raise self._missing("the launch was stopped before all ranks had connected")
            greeted, any_came = listener.greeted(_LOOK_SECONDS)
            kind = DistantRank if self._hosts else RankEnd
            self.ranks += (kind(*each) for each in greeted)
            have = f"{len(self.ranks)} of {self._size} ranks"
            rejected = _rejected(listener.rejected)
            if self._has_ended():
                last = last.within(_LAST_RANK_SECONDS)
                if not any_came or (last.is_over and not greeted):
                    ended = self.launcher.how_it_ended()
                    raise self._missing(f"{ended} when {have} had connected{rejected}")
            if len(self.ranks) < self._size and deadline.is_over:
                what = f"{have} have connected in {seconds:.3g} s{rejected}"
                raise self._missing(what, late=True)
        listener.close()

    def _has_ended(self) -> bool:
        """Whether the launcher has; takes in what it has printed."""
        self.launcher.drain_log()
        return self.launcher.ended

    def _missing(self, reason: str, *, late: bool = False) -> MpiError:
        error = self._failure(reason, RanksMissing)
        assert isinstance(error, RanksMissing)
        error.connected, error.is_late, error.printed = list(self.ranks), late, self.log
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

    def _end(self) -> None:
        """Ranks end when their sockets are closed, and the launcher cleans up after them. One
        that does not end is killed."""
        for rank in self.ranks:
            self._shared |= rank.shared_files()
        members: list[TeamMember] = [self.launcher, *self.ranks]
        Team(members).end(Deadline(_LEAVE_SECONDS))
        remove(self._shared | abandoned_files(self._began))


def _rejected(connections: int) -> str:
    """What a failure states of connections that were of no rank."""
    if not connections:
        return ""
    return f"; {count(connections, 'connection')} of other processes had to be closed"
