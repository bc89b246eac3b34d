"""What finished tests show so far; the next round and the verdict come from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from waywiser.analysis.cluster.finished_tests import FinishedTests, read_records
from waywiser.analysis.cluster.losses import Losses, find_losses
from waywiser.analysis.cluster.pair_tests import Bools, PairTests
from waywiser.analysis.cluster.round_results import RoundResults
from waywiser.words import ClusterNode, ClusterPlan, FinishedTest, natural_key

_key = lru_cache(maxsize=1 << 15)(natural_key)


class _LastRounds:
    """What the rounds of pairs have shown last: tests of later phases do not change it."""

    known: RoundResults | None = None


class ClusterState:
    """Derives everything from the finished tests; nothing is kept from round to round. Nodes are
    indices into ``names``, which are in their natural order."""

    def __init__(
        self, nodes: Sequence[ClusterNode], plan: ClusterPlan, finished: Sequence[FinishedTest]
    ) -> None:
        self.nodes = sorted(nodes, key=lambda node: _key(node.name))
        self.names = [node.name for node in self.nodes]
        self.index = {name: n for n, name in enumerate(self.names)}
        self.plan = plan
        self.finished = finished

    @cached_property
    def records(self) -> FinishedTests:
        return read_records(self.names, self.index, self.finished)

    @property
    def rails(self) -> int:
        """How many rails have times: with the numbers below this one."""
        return int(self.attempts.y.shape[1])

    @property
    def attempts(self) -> PairTests:
        """The finished tests of two nodes, failed ones included."""
        return self.records.pairs

    @property
    def collectives(self) -> list[FinishedTest]:
        return self.records.collectives

    @cached_property
    def all_tests(self) -> PairTests:
        """The finished tests of two nodes that have times."""
        return self.attempts.where(self.attempts.has_times)

    @cached_property
    def losses(self) -> Losses:
        passed = self.all_tests.count_of_nodes(len(self.names)).tolist()
        return find_losses(self.index, self.records.failed, passed)

    @cached_property
    def testable(self) -> Bools:
        """The nodes that may be tested."""
        joined = np.array([node.state == "joined" for node in self.nodes], dtype=bool)
        joined[list(self.losses.failed)] = False
        return joined

    @cached_property
    def members(self) -> list[int]:
        """The nodes that may be tested, and those that could be when the run started, so that the
        loss of a node does not change the partners of the others."""
        started = self.testable | (self.attempts.count_of_nodes(len(self.names)) > 0)
        return [int(n) for n in np.flatnonzero(started)]

    @cached_property
    def rounds(self) -> RoundResults:
        """What the rounds of pairs show."""
        found = RoundResults(
            self.names, self.plan, self.attempts.of("pairs"), self.testable, self.members
        )
        last = _LastRounds.known
        if last is not None and found.shows_the_same(last):
            return last
        _LastRounds.known = found
        return found
