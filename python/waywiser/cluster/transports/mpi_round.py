"""Which tests of a round to launch together next, after launches that failed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence

from waywiser.words import PlannedTest

_MOST_FAILED_LAUNCHES = 15
"""First launches, of which none got ready, before the launcher is to blame. By halves, so many find
the pairs that can be launched beside three that cannot."""

_MOST_LOSSES = 3
"""Launches of a test that ended by others, or without a known cause."""


class MpiRound:
    """The pairs of a round are launched together, a collective by itself."""

    def __init__(self, tests: Sequence[PlannedTest], *, is_proven: bool = False) -> None:
        """``is_proven``: the launcher has started ranks before."""
        pairs = [test for test in tests if not is_collective(test)]
        batches = [pairs, *([test] for test in tests if is_collective(test))]
        self._batches = deque(batch for batch in batches if batch)
        self._is_proven = is_proven
        self._failed_launches = 0
        self._losses: Counter[PlannedTest] = Counter()
        self._late: set[str] = set()
        """Nodes whose ranks did not connect in time in a launch with others of which that is true.
        """

    def next(self) -> list[PlannedTest]:
        """Tests to launch together; none at the end."""
        return self._batches.popleft() if self._batches else []

    @property
    def is_hopeless(self) -> bool:
        """Whether no launch got ready, of many."""
        return not self._is_proven and self._failed_launches >= _MOST_FAILED_LAUNCHES

    def started(self) -> None:
        """A launch got ready."""
        self._is_proven = True

    def not_started(
        self, batch: Sequence[PlannedTest], nodes: Collection[str], *, is_late: bool = False
    ) -> dict[PlannedTest, str]:
        """Returns the tests that cannot be launched, each with the node to blame: those of
        ``nodes``. Without such nodes, each half is launched by itself. Several nodes that are only
        late may have had too little time beside so many: their tests are launched apart from the
        others, and those that are late again are to blame."""
        self._failed_launches += 1
        if is_late and len(nodes) > 1:
            again = [name for name in nodes if name in self._late]
            self._late.update(nodes)
            nodes = again
            if not again:
                late, others = _divided(batch, self._late)
                if late and others:
                    self.again(late)
                    self.again(others)
                    return {}
        blamed, others = _divided(batch, nodes)
        if blamed:
            self.again(others)
            return {test: min(set(nodes).intersection(test.nodes)) for test in blamed}
        if len(batch) == 1:
            return {batch[0]: ""}
        half = len(batch) // 2
        self.again(batch[:half])
        self.again(batch[half:])
        return {}

    def lost(self, unfinished: Sequence[PlannedTest]) -> list[PlannedTest]:
        """Launches tests again that another one ended. Returns those that were ended too often."""
        self._losses.update(unfinished)
        over = [test for test in unfinished if self._losses[test] >= _MOST_LOSSES]
        self.again([test for test in unfinished if test not in over])
        return over

    def again(self, batch: Sequence[PlannedTest]) -> None:
        """Launches tests again that did not fail by themselves."""
        if batch:
            self._batches.append(list(batch))


def _divided(
    batch: Sequence[PlannedTest], nodes: Collection[str]
) -> tuple[list[PlannedTest], list[PlannedTest]]:
    """The tests that have one of the nodes, and the others."""
    having = [test for test in batch if not set(nodes).isdisjoint(test.nodes)]
    return having, [test for test in batch if test not in having]


def is_collective(test: PlannedTest) -> bool:
    return test.phase == "collective" or len(test.nodes) != 2
