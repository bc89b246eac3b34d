"""One launch of MPI across nodes: ranks that are ready, and which of them was lost first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from waywiser.cluster.connection.rank_orders import most_memory, placed_rails, rails_of
from waywiser.cluster.transports.launcher_output import hosts_named_first, hosts_that_failed
from waywiser.machine import Machine
from waywiser.measure.probe.group import WorkerGroup
from waywiser.measure.probe.member import MemberLost
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import Hello
from waywiser.measure.ranks.first_loss import FirstLoss
from waywiser.measure.ranks.launch import Launch, RanksMissing
from waywiser.measure.ranks.launch_hosts import LaunchHosts
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.ranks.rank_end import RankEnd
from waywiser.measure.ranks.world import PartOfRanks, RankTeams
from waywiser.words import MESSAGES, Closeable, ClusterNode, FailedTest, Failure, Process, count

_LEAVE_SECONDS = 10.0
"""Seconds for ranks that are well to leave MPI, and for the launcher to follow them."""


class WorldNotStarted(Exception):
    """Ranks did not get ready; carries why, the nodes to blame, and the secret of the launch."""

    def __init__(
        self, failed: FailedTest, nodes: Sequence[str], secret: str, *, is_late: bool = False
    ) -> None:
        super().__init__(failed.failure.reason)
        self.secret = secret
        self.failed = failed
        self.nodes = tuple(nodes)
        """Empty if none can be named."""
        self.is_late = is_late
        """Whether the ranks of these nodes did not connect in time: nothing else is known of
        them."""


class MpiWorld(Closeable):
    """The ranks of one launch: one for each rail of each node. They run from `start` on, and end
    when it is closed."""

    def __init__(
        self,
        library: MpiLibrary,
        groups: Sequence[Mapping[str, int]],
        nodes: Mapping[str, ClusterNode],
        machines: Mapping[str, Machine],
        *,
        size: int,
        address: str,
        template: str = "",
        seconds: float = 60.0,
    ) -> None:
        """Nodes of each of the ``groups``, with so many ranks, are tested with each other; no node
        is in two of them. ``size`` is that of the messages, in bytes. ``seconds`` is the time for
        ranks to connect, and again that for MPI to start."""
        self.size = size
        self._seconds = seconds
        self._is_hung_up = False
        self._resources = ExitStack()
        self._nodes, self._machines = nodes, machines
        self._groups = {name: group for group in groups for name in group}
        self._rails = {name: group[name] for name, group in self._groups.items()}
        self._names = _names([nodes[name] for name in self._groups])
        self._hosts = LaunchHosts.of(address, list(self._rails.items()))
        self._team = RankTeams(
            library, self._hosts.ranks, template, self._hosts, seconds, lambda: self._is_hung_up
        )
        self.ranks: dict[str, list[int]] = {name: [] for name in self._groups}
        """The numbers of the ranks of each node, by rail."""
        self._node_of: list[str] = []
        self.is_well = False
        """Whether its ranks can end by themselves."""

    def start(self) -> None:
        """Starts the ranks. Raises `WorldNotStarted`, also after `hang_up`;
        `waywiser.measure.ranks.mpi_library.MpiError` for a launcher that cannot be used at all."""
        with ExitStack() as stack:
            self._group = self._launched()
            stack.callback(self._group.close)
            self._losses = stack.enter_context(FirstLoss([r.connection for r in self._in_order]))
            self._get_ready()
            self.is_well = not self._is_hung_up
            self._resources = stack.pop_all()

    def can_test(self, nodes: Sequence[str]) -> bool:
        """Whether it has the ranks of a test of these nodes with each other."""
        group = self._groups.get(nodes[0], {})
        rails = rails_of([self._nodes[name] for name in nodes])
        return all(group.get(name, 0) >= rails for name in nodes)

    def ranks_of(self, nodes: Sequence[str]) -> list[int]:
        """The numbers of the ranks of a test of these nodes, node by node and rail by rail."""
        rails = rails_of([self._nodes[name] for name in nodes])
        return [rank for name in nodes for rank in self.ranks[name][:rails]]

    @property
    def launch(self) -> Launch:
        assert self._team.launch is not None
        return self._team.launch

    def node_of(self, rank: int) -> str:
        return self._node_of[rank]

    def part(self, ranks: Sequence[int], number: int) -> WorkerGroup:
        """A group of some of the ranks, to be used by one thread."""
        members = self._group.members
        return WorkerGroup(PartOfRanks([members[rank] for rank in sorted(ranks)]), number)

    def first_lost(self) -> int | None:
        """The rank that ended first, when it is asked for the first time; None if none did, or if
        all ended with the launcher. Of a node that Slurm has lost, ranks may end after those of
        other nodes, which ``srun`` ends."""
        first = self._losses.first()
        was_killed = self.launch.was_killed()
        for name in hosts_that_failed(self.launch.log):
            if name in self.ranks:
                return self.ranks[name][0]
        return None if was_killed else first

    def hang_up(self) -> None:
        """Ends all connections to ranks, from any thread; waiting threads lose theirs. While
        ranks start, ends the launch."""
        self._is_hung_up, self.is_well = True, False
        if self._team.launch is not None:
            self._team.launch.hang_up()

    def close(self) -> None:
        """Ends the ranks, politely if they are well."""
        with self._resources:
            if self.is_well:
                self._group.end(_LEAVE_SECONDS)
                self.is_well = self.launch.launcher.ended

    def _launched(self) -> WorkerGroup:
        try:
            group = WorkerGroup(self._team, 1)
        except RanksMissing as missing:
            absent = self._missing(missing)
            said = next(iter(absent.values()), "")
            reason = f"the launcher printed: {said}" if said else missing.what
            failure = Failure("timeout" if missing.is_late else "crash", reason)
            raise WorldNotStarted(
                FailedTest(failure), list(absent), missing.secret, is_late=missing.is_late
            ) from missing
        for rank in self._in_order:
            node = self._named(rank)
            if not node:
                group.close()
                raise MpiError(
                    f"the launcher started a rank on {rank.host or rank.peer}, which is no node of "
                    "this test",
                    remedy="name nodes as the launcher does: join with --node-name",
                )
            self._node_of.append(node)
            self.ranks[node].append(rank.number)
        return group

    @property
    def _in_order(self) -> list[RankEnd]:
        return sorted(self.launch.ranks, key=lambda rank: rank.number)

    def _named(self, rank: RankEnd) -> str:
        """The node of a rank, by what it says or by the address that it comes from; empty for
        none."""
        for known in (rank.host, rank.host.partition(".")[0], rank.peer):
            if known in self._names:
                return self._names[known]
        return ""

    def _missing(self, missing: RanksMissing) -> dict[str, str]:
        """The nodes to blame if not all ranks connected, each with the line that the launcher
        printed about it, if any. A launcher ends all ranks when it misses one node: then only those
        are to blame that it names first."""
        left = dict(self._rails)
        for rank in missing.connected:
            left[self._named(rank)] = left.get(self._named(rank), 0) - 1
        absent = [name for name in self._rails if left[name] > 0]
        named = hosts_named_first(absent, self._rails, missing.printed)
        if not missing.is_late:
            return named
        return {n: named.get(n, "") for n in absent} if len(absent) < len(self._rails) else {}

    def _get_ready(self) -> None:
        """Starts MPI in all ranks."""
        for name, rails in self._rails.items():
            if len(self.ranks[name]) != rails:
                raise MpiError(
                    f"the launcher started {count(len(self.ranks[name]), 'rank')} on {name}, not "
                    f"{rails}",
                    remedy="let --launcher use {hostfile}, or {hosts} with the ranks of each",
                )
        try:
            if self._is_hung_up:
                self.launch.hang_up()
            self._group.start(self._hello, self._seconds)
        except MemberLost as lost:
            if self._is_hung_up:
                stopped = FailedTest(Failure("interrupted", "the launch was stopped"))
                raise WorldNotStarted(stopped, [], self.launch.secret) from lost
            blamed = lost.member.rank if lost.member else None
            if lost.failure.kind in ("crash", MESSAGES):
                first = self.first_lost()
                blamed = blamed if first is None and not self.launch.was_killed() else first
            node = "" if blamed is None else self.node_of(blamed)
            failed = FailedTest(lost.failure, node, -1 if blamed is None else blamed, "starting")
            nodes = [node] if node else []
            raise WorldNotStarted(failed, nodes, self.launch.secret) from lost

    def _hello(self, rank: int) -> Hello:
        options = ProbeOptions()
        return Hello(
            self._machine_of(rank),
            Process(),
            most_memory(self.size),
            options.watchdog_seconds,
            rank,
            self._hosts.ranks,
        )

    def _machine_of(self, rank: int) -> Machine:
        """The machine of a rank's node, with the ranks of its group. Those of other nodes are at
        the places of its own, rail by rail: a rank uses no memory of another."""
        node = self.node_of(rank)
        own = placed_rails(self._machines[node], self._nodes[node].rails[: self._rails[node]])
        placed = [
            replace(own[min(rail, len(own) - 1)], index=number)
            for name in self._groups[node]
            for rail, number in enumerate(self.ranks[name])
        ]
        return replace(self._machines[node], ranks=tuple(placed))


def _names(nodes: Sequence[ClusterNode]) -> dict[str, str]:
    """The nodes by what their ranks may be known by: the name, in full or without the domain, and
    the address if it is that of no other node."""
    addresses = Counter(node.address for node in nodes)
    found = {node.address: node.name for node in nodes if addresses[node.address] == 1}
    found |= {node.name.partition(".")[0]: node.name for node in nodes}
    return found | {node.name: node.name for node in nodes}
