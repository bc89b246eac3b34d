"""The time of a run: what its rounds cost, how long a test may take, and the deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from waywiser.analysis.cluster.procedure import Round
from waywiser.cluster.connection.rank_orders import rails_of
from waywiser.cluster.surveys.time_plan import (
    TimePlan,
    expected_rounds,
    has_time,
    measured_costs,
    time_plan,
)
from waywiser.cluster.transports.time_limits import collective_limit, pair_limit
from waywiser.measure.supervise import Deadline
from waywiser.profile import ClusterFolder
from waywiser.words import ClusterNode, FinishedTest

MOST_FORESEEN_NODES = 2048
"""Nodes beyond which the rounds that follow are not counted: it would take long."""


class RunTime:
    """Tests that have not ended by the ``deadline`` are ended. ``limit_seconds`` is the time of
    each test; 0 to derive it from what others took."""

    def __init__(
        self, folder: ClusterFolder, deadline: Deadline, limit_seconds: float = 0.0
    ) -> None:
        self._folder = folder
        self._deadline = deadline
        self._limit_seconds = limit_seconds
        self._phase = ""
        self._ahead: list[Round] = []
        self.is_over = False
        """Whether the deadline has come while tests ran."""
        self.costs = measured_costs(folder.plan.transport, len(folder.nodes), folder.tests)

    def has_time(self, following: Round) -> bool:
        """Whether the round fits into the time that is left."""
        return not self.is_over and has_time(following.phase, self.costs, self._deadline.left)

    @contextmanager
    def measured(self, following: Round, end: Callable[[], None]) -> Iterator[None]:
        """Takes in what the round costs. At the deadline `is_over` becomes true, and then another
        thread calls ``end``, to end the tests that run."""

        def come() -> None:
            self.is_over = True
            end()

        began = self._deadline.elapsed
        timer: threading.Timer | None = None
        if self._deadline.seconds < inf:
            timer = threading.Timer(self._deadline.left, come)
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            self.costs.add(following.phase, self._deadline.elapsed - began)

    def limit(self, following: Round, nodes: Sequence[ClusterNode]) -> float:
        """The seconds that each test of the round may take."""
        if self._limit_seconds:
            return self._limit_seconds
        if following.phase != "collective":
            return pair_limit(self._folder.tests)
        names = max((test.nodes for test in following.tests), key=len)
        rails = rails_of([node for node in nodes if node.name in names])
        return collective_limit(rails * len(names), len(names), self._folder.tests)

    def plan(self, following: Round, finished: Sequence[FinishedTest]) -> TimePlan | None:
        """What the run needs, from this round on; None if that is not known. Rounds are counted
        when a phase begins."""
        if following.phase != self._phase:
            self._phase = following.phase
            nodes = list(self._folder.nodes.values())
            self._ahead = (
                expected_rounds(nodes, self._folder.plan, finished)
                if len(nodes) <= MOST_FORESEEN_NODES
                else []
            )
        ahead = [round for round in self._ahead if round.number >= following.number]
        return time_plan(ahead, self.costs) if ahead else None
