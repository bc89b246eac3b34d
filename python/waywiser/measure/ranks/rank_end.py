"""The launching process's end of one rank: its socket and its process."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from waywiser.measure.probe.protocol import Lines, ProtocolError
from waywiser.measure.ranks.greeting import MOST_LINE_BYTES, Greeting, Joined
from waywiser.measure.ranks.leftovers import mapped_files
from waywiser.words.closeable import Closeable

_STAGE_SECONDS = 1.0
"""Seconds for a rank to say what it does; a stopped one does not."""

_POLL_SECONDS = 0.005
"""Seconds between two looks at a process that ends."""

_STARTTIME = 19
"""The place of starttime in /proc/PID/stat, after the name of the program."""


class RankEnd(Closeable):
    """A rank that has connected. Closing it closes its socket, by which the rank ends."""

    def __init__(
        self, connection: socket.socket, greeting: Greeting, received: bytes = b""
    ) -> None:
        """``received`` is what came with the greeting."""
        self.connection = connection
        self.peer = str(connection.getpeername()[0])
        """The address that it connected from."""
        self.pid = greeting.pid
        self.stated = greeting.rank
        """Its number as the launcher states it before MPI starts; -1 if it does not."""
        self.joined: Joined | None = None
        self.lines: deque[bytes] = deque()
        """Whole lines that it has said and nobody has read."""
        self._unfinished = Lines(MOST_LINE_BYTES)
        self.lines.extend(self._unfinished.feed(received))
        self.host = greeting.host
        """The node that it runs on, as it knows it."""
        self._birth = _birth(self.pid)

    @property
    def number(self) -> int:
        """Its number, before MPI has started as the launcher states it."""
        return self.joined.rank if self.joined else self.stated

    @property
    def name(self) -> str:
        """As failures name it."""
        return f"rank {self.number}"

    def receive(self) -> bool:
        """Takes in what has arrived; False when nothing more can come."""
        try:
            data = self.connection.recv(MOST_LINE_BYTES)
            self.lines.extend(self._unfinished.feed(data))
        except (ConnectionError, ProtocolError):
            return False
        return bool(data)

    def doing(self) -> str:
        """What it says that it does (`waywiser.measure.ranks.rank.end_with`)."""
        with suppress(OSError):
            self.connection.sendall(b"?")
        if not readable([self.connection], _STAGE_SECONDS) or not self.receive() or not self.lines:
            return f"{self.name} does not answer"
        stage = self.lines.popleft().decode("utf-8", "replace")
        return f"{self.name} is in '{stage}'" if stage else f"{self.name} is not in MPI"

    def shared_files(self) -> set[str]:
        """The shared memory of this machine that it has mapped, or had when it joined."""
        return mapped_files(self.pid) | set(self.joined.shared if self.joined else ())

    def kill(self) -> None:
        """Kills its process, if its number is not that of another one by now."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def await_end(self, seconds: float) -> None:
        """Waits so long for the end of its process."""
        deadline = time.monotonic() + seconds
        while self.is_running and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._birth != "" and _birth(self.pid) == self._birth

    def close(self) -> None:
        self.connection.close()


class DistantRank(RankEnd):
    """A rank of a launch across nodes: its process belongs to the agent of its node, and has no
    number here. When its socket is closed it ends by itself, or the agent ends it."""

    @property
    def name(self) -> str:
        return f"rank {self.number} on {self.host}"

    def shared_files(self) -> set[str]:
        """Returns none: it removes its own."""
        return set()

    def kill(self) -> None:
        """Nothing: see `waywiser.cluster.node_processes.kill_launch`."""

    def await_end(self, seconds: float) -> None:
        """Nothing: it cannot be seen."""

    @property
    def is_running(self) -> bool:
        """False: what is known of it is its socket."""
        return False


def _birth(pid: int) -> str:
    """When a process started, in ticks; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[_STARTTIME]


def readable(connections: Iterable[socket.socket], seconds: float) -> set[socket.socket]:
    """Those from which something can be read, after at most so long."""
    by_number = {connection.fileno(): connection for connection in connections}
    poll = select.poll()  # select() knows no descriptors above 1,023
    for number in by_number:
        poll.register(number, select.POLLIN)
    return {by_number[number] for number, _ in poll.poll(1000 * seconds)}
