"""What to test next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import is_

from waywiser.analysis.cluster.collectives import next_collectives
from waywiser.analysis.cluster.cover_rounds import cover_pairs
from waywiser.analysis.cluster.retests import alone_pairs, among_pairs, pair_pairs
from waywiser.analysis.cluster.rounds_of_pairs import hang_pairs, next_pairs
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.state import ClusterState
from waywiser.words import ClusterNode, ClusterPlan, FinishedTest, Phase, PlannedTest, Value


class Round(Value, frozen=True):
    """Tests that may run at the same time. ``number`` counts up over the whole run."""

    phase: Phase
    number: int
    tests: tuple[PlannedTest, ...]


STEPS: tuple[tuple[Phase, Callable[[ClusterState, int], list[Pair]]], ...] = (
    ("hangs", hang_pairs),
    ("pairs", next_pairs),
    ("alone", alone_pairs),
    ("among", among_pairs),
    ("cover", cover_pairs),
    ("pair", pair_pairs),
)


def next_round(
    nodes: Sequence[ClusterNode], plan: ClusterPlan, finished: Sequence[FinishedTest]
) -> Round | None:
    """Returns the next tests that may run at the same time; None if the procedure is complete.

    Everything is derived from the finished tests and the seed, so that an interrupted run goes on
    where it was. Of an unfinished round, the rest is returned: it is planned again without its own
    tests, and nodes that have a finished test of it are skipped. To test nodes again that failed,
    call this without their failed tests.
    """
    last, before, latest = _divided(finished)
    if last >= 0:
        done = {name for each in latest for name in each.test.nodes}
        unfinished = _planned(nodes, plan, before, last)
        # What was lost or blamed since is tested no more.
        now = ClusterState(nodes, plan, finished)
        tests = tuple(
            each
            for each in (unfinished.tests if unfinished else ())
            if all(n not in done and now.testable[now.index[n]] for n in each.nodes)
        )
        if unfinished and tests:
            return Round(unfinished.phase, last, tests)
    return _planned(nodes, plan, finished, last + 1)


class _LastCount:
    """The tests of each round, as they were counted last: the next call adds those of a round."""

    known: tuple[list[FinishedTest], Counter[int]] = ([], Counter())


def _divided(
    finished: Sequence[FinishedTest],
) -> tuple[int, Sequence[FinishedTest], Sequence[FinishedTest]]:
    """Returns the last round, -1 for none, the tests before it, and its own."""
    seen, counts = _LastCount.known
    if len(finished) < len(seen) or not all(map(is_, finished, seen)):
        seen, counts = [], Counter()
    counts.update(each.test.round for each in finished[len(seen) :])
    _LastCount.known = list(finished), counts
    last = max(counts, default=-1)
    begin = len(finished) - counts[last]
    latest = finished[begin:]
    if all(each.test.round == last for each in latest):
        return last, finished[:begin], latest
    before = [each for each in finished if each.test.round < last]
    return last, before, [each for each in finished if each.test.round == last]


class _LastPlan:
    """The round that was planned last: the next call checks whether it is finished."""

    known: tuple[list[ClusterNode], ClusterPlan, list[FinishedTest], int, Round | None] | None = (
        None
    )


def _planned(
    nodes: Sequence[ClusterNode],
    plan: ClusterPlan,
    finished: Sequence[FinishedTest],
    number: int,
) -> Round | None:
    """Plans a round, or returns it again for the same values."""
    last = _LastPlan.known
    if (
        last is not None
        and (plan, number) == (last[1], last[3])
        and list(nodes) == last[0]
        and len(finished) == len(last[2])
        and all(map(is_, finished, last[2]))
    ):
        return last[4]
    found = _plan(nodes, plan, finished, number)
    _LastPlan.known = list(nodes), plan, list(finished), number, found
    return found


def _plan(
    nodes: Sequence[ClusterNode],
    plan: ClusterPlan,
    finished: Sequence[FinishedTest],
    number: int,
) -> Round | None:
    state = ClusterState(nodes, plan, finished)
    if int(state.testable.sum()) < 2:
        return None
    for phase, step in STEPS:
        if pairs := step(state, number):
            tests = [(state.names[a], state.names[b]) for a, b in pairs]
            return Round(phase, number, tuple(PlannedTest(phase, number, each) for each in tests))
    if sets := next_collectives(state):
        planned = tuple(PlannedTest("collective", number, tuple(each)) for each in sets)
        return Round("collective", number, planned)
    return None
