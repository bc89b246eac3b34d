"""The launching process's end of one rank: its channel and its process."""

from __future__ import annotations

import select
from collections.abc import Iterable

from waywiser.measure.probe.protocol import (
    Greeting,
    Joined,
    Ping,
    Pong,
    decode_from_worker,
    encode,
)
from waywiser.measure.ranks.leftovers import mapped_files
from waywiser.measure.supervise import (
    Connection,
    Deadline,
    LineChannel,
    ProtocolError,
    RunningProcess,
)

_STAGE_SECONDS = 1.0
"""Seconds for a rank to say what it does; a stopped one does not."""

_KILL_SECONDS = 15.0
"""Seconds for a killed process to be gone; one in the middle of a driver call can take seconds."""


class RankEnd:
    """A rank that has connected: a `waywiser.measure.supervise.team.TeamMember`. It ends when its
    channel is closed."""

    def __init__(self, channel: Connection, greeting: Greeting) -> None:
        self.channel: LineChannel = channel
        self.connection = channel.connection
        self.peer = str(channel.connection.getpeername()[0])
        """The address that it connected from."""
        self.pid = greeting.pid
        self.stated = greeting.rank
        """Its number as the launcher states it before MPI starts; -1 if it does not."""
        self.joined: Joined | None = None
        self.host = greeting.host
        """The node that it runs on, as it knows it."""
        self._process = RunningProcess.of(self.pid)

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
            self.channel.receive()
        except (OSError, ProtocolError):
            return False
        return True

    def doing(self) -> str:
        """What it says that it does (`waywiser.measure.ranks.rank.end_with`)."""
        self.channel.offer(encode(Ping(0)))
        try:
            said = decode_from_worker(self.channel.next(Deadline(_STAGE_SECONDS)))
        except (OSError, ProtocolError):
            said = None
        if not isinstance(said, Pong):
            return f"{self.name} does not answer"
        return f"{self.name} is in '{said.stage}'" if said.stage else f"{self.name} is not in MPI"

    def shared_files(self) -> set[str]:
        """The shared memory of this machine that it has mapped, or had when it joined."""
        return mapped_files(self.pid) | set(self.joined.shared if self.joined else ())

    def leave(self, deadline: Deadline) -> None:
        """Ends the connection, from any thread."""
        self.channel.hang_up()

    def await_end(self, deadline: Deadline) -> bool:
        """Whether its process ends by then."""
        return deadline.wait_until(lambda: not self.is_running)

    def kill(self) -> None:
        """Kills its process, if its number is not that of another one by now."""
        self._process.kill()

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def close(self) -> None:
        self.kill()
        self.await_end(Deadline(_KILL_SECONDS))
        self.channel.close()


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
        """Nothing: see `waywiser.cluster.node.node_processes.kill_launch`."""

    @property
    def is_running(self) -> bool:
        """False: what is known of it is its socket."""
        return False


def readable(ranks: Iterable[RankEnd], seconds: float) -> list[RankEnd]:
    """Those from which something can be read, after at most so long."""
    by_number = {rank.channel.reads: rank for rank in ranks}
    poll = select.poll()  # select() knows no descriptors above 1,023
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(1000 * seconds)]
