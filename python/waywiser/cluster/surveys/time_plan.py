"""How many tests a run needs and how long it takes, before it starts and while it goes on.

The rounds are those of the procedure itself, with results as of a cluster without a fault; what
they cost is measured as soon as there are rounds of the phase, set-up included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from waywiser.analysis.cluster.procedure import Round, next_round
from waywiser.stats import median
from waywiser.words import (
    ClusterNode,
    ClusterPlan,
    FailedTest,
    Failure,
    FinishedTest,
    Phase,
    PlannedTest,
    RailTime,
    Value,
    grouped,
)

_ROUND_SECONDS: dict[str, tuple[float, float]] = {"mpi": (2.0, 0.006), "nccl": (2.5, 0.002)}
"""What a round of each transport costs before any is measured: so many seconds, and so many more
for each node."""

_OTHER_ROUND_SECONDS = (2.0, 0.006)

_COLLECTIVE_FACTOR = 2.0
"""A collective costs so many times as much as a round of pairs, before any is measured."""

_SUSPECT_ROUNDS = 3
"""Rounds that are kept free for suspects, again and alone, when time is short."""

_LEAST_PAIR_ROUNDS = 4
"""With fewer tests of each node, what is found is often wrong."""

_MOST_ROUNDS = 2000

_CHECK_SECONDS, _CHECK_NODE_SECONDS = 30.0, 0.02
"""The surveys of all nodes at once, and the time to fetch the profile of one."""


def check_seconds(nodes: int) -> float:
    """What the surveys of all nodes, each by itself, cost."""
    return _CHECK_SECONDS + _CHECK_NODE_SECONDS * nodes


class PhaseTime(Value, frozen=True):
    """What one phase of a run needs."""

    phase: Phase
    rounds: int
    tests: int
    seconds: float


class TimePlan(Value, frozen=True):
    """What a run still needs if nothing is suspect, in the order of its phases."""

    phases: tuple[PhaseTime, ...] = ()
    check_seconds: float = 0.0
    """The time of the surveys of all nodes, side by side."""

    @property
    def tests(self) -> int:
        return sum(each.tests for each in self.phases)

    @property
    def rounds(self) -> int:
        return sum(each.rounds for each in self.phases)

    @property
    def seconds(self) -> float:
        return self.check_seconds + sum(each.seconds for each in self.phases)


class RoundCosts:
    """What a round of each phase costs, in seconds; measured ones are added."""

    def __init__(
        self, transport: str, nodes: int, measured: Mapping[Phase, Sequence[float]] | None = None
    ) -> None:
        first, each = _ROUND_SECONDS.get(transport, _OTHER_ROUND_SECONDS)
        self._assumed = first + each * nodes
        self._measured = {phase: list(seconds) for phase, seconds in (measured or {}).items()}

    def add(self, phase: Phase, seconds: float) -> None:
        """Takes in the time of a round."""
        self._measured.setdefault(phase, []).append(seconds)

    def of(self, phase: Phase) -> float:
        """What a round of the phase costs: the median of its rounds, else of all rounds of pairs,
        else an assumption."""
        if measured := self._measured.get(phase):
            return median(measured)
        factor = _COLLECTIVE_FACTOR if phase == "collective" else 1.0
        pairs = [
            each
            for other, seconds in self._measured.items()
            if other != "collective"
            for each in seconds
        ]
        return factor * (median(pairs) if pairs else self._assumed)

    def needed(self) -> float:
        """Seconds for tests that find what hangs, and some that find what is slow."""
        return 2 * self.of("hangs") + _LEAST_PAIR_ROUNDS * self.of("pairs") + self.kept_free()

    def kept_free(self) -> float:
        """Seconds for what follows the rounds of pairs."""
        return _SUSPECT_ROUNDS * self.of("alone") + self.of("collective")


def measured_costs(transport: str, nodes: int, finished: Sequence[FinishedTest]) -> RoundCosts:
    """The costs that the tests of a folder show: a round took as long as its longest test."""
    rounds = grouped(((each.test.phase, each.test.round), each) for each in finished)
    costs = RoundCosts(transport, nodes)
    for (phase, _), tests in rounds.items():
        costs.add(phase, max(each.setup_seconds + each.elapsed_seconds for each in tests))
    return costs


def expected_rounds(
    nodes: Sequence[ClusterNode], plan: ClusterPlan, finished: Sequence[FinishedTest]
) -> list[Round]:
    """The rounds that follow if no further test shows anything."""
    rails = {node.name: range(len(node.rails)) for node in nodes}
    usual = _usual_seconds(finished, plan.bytes)
    known, found = list(finished), list[Round]()
    while len(found) < _MOST_ROUNDS and (following := next_round(nodes, plan, known)):
        found.append(following)
        if following.phase == "collective":  # more follow only if it fails, or is slow
            break
        known += (_usual(test, plan, rails, usual) for test in following.tests)
    return found


def time_plan(rounds: Sequence[Round], costs: RoundCosts, check_seconds: float = 0.0) -> TimePlan:
    """What these rounds need."""
    phases = grouped((each.phase, len(each.tests)) for each in rounds)
    return TimePlan(
        tuple(
            PhaseTime(phase, len(tests), sum(tests), len(tests) * costs.of(phase))
            for phase, tests in phases.items()
        ),
        check_seconds,
    )


def has_time(phase: Phase, costs: RoundCosts, left: float) -> bool:
    """Whether a round of the phase fits into the time that is left. Rounds of pairs, and those that
    cover all pairs, end first: suspects again, and the good nodes together, say more than another
    round."""
    kept = costs.kept_free() if phase in ("pairs", "cover") else 0.0
    return costs.of(phase) + kept <= left


def _usual_seconds(finished: Sequence[FinishedTest], size: int) -> dict[int, float]:
    """The usual time of a message of that size, by rail."""
    times = grouped(
        (time.rail, time.seconds)
        for test in finished
        if test.bytes == size and test.test.phase != "collective"
        for time in test.times
    )
    return {rail: median(seconds) for rail, seconds in times.items()}


def _usual(
    test: PlannedTest,
    plan: ClusterPlan,
    rails: Mapping[str, Sequence[int]],
    usual: Mapping[int, float],
) -> FinishedTest:
    """A result as of all others."""
    times = []
    for rail in rails[test.nodes[0]]:
        seconds = usual.get(rail, 1.0)
        low, high = 0.99 * seconds, 1.01 * seconds
        times += [RailTime(rail, sender, seconds, low, high, 10) for sender in test.nodes]
    return FinishedTest(test, plan.transport, plan.bytes, "", times=tuple(times))


def skipped(test: PlannedTest, plan: ClusterPlan) -> FinishedTest:
    """A test for which no time was left; it is not stored, so that a resume can run it."""
    reason = FailedTest(Failure("skipped", "no time was left before the deadline"))
    return FinishedTest(test, plan.transport, plan.bytes, "", failed=reason)


def encoded(plan: TimePlan) -> dict[str, object]:
    """The plan for programs, with its sums."""
    return {
        **msgspec.to_builtins(plan),
        "tests": plan.tests,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
    }
