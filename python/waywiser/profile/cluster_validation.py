"""Whether values of a cluster are possible: they come from files and from agents of other nodes.

What uses them trusts that the names of nodes are names of files, that times are positive, and that
a pair has two nodes.
"""

from __future__ import annotations

from math import isfinite

from waywiser.profile.validation import (
    LEAST_SECONDS,
    MOST,
    MOST_INDEX,
    MOST_SECONDS,
    InvalidRecord,
    are_moments,
)
from waywiser.words.cluster import ClusterNode, ClusterPlan, FinishedTest, PlannedTest, RailTime
from waywiser.words.host_list import is_host_name


def require_valid_plan(plan: ClusterPlan) -> None:
    """Raises `InvalidRecord`."""
    _count("bytes", plan.bytes)
    _count("pairs", plan.uplink_pairs)
    for nodes in plan.groups.values():
        _names(nodes)


def require_valid_node(node: ClusterNode) -> None:
    """Raises `InvalidRecord`."""
    _names((node.name,))
    indices = [rail.index for rail in node.rails]
    _require(len(set(indices)) == len(indices), "one rail twice")
    for rail in node.rails:
        _require(0 <= rail.index < MOST_INDEX, f"rail {rail.index}")
        _require(-1 <= rail.gpu < MOST_INDEX, f"GPU {rail.gpu}")
        if rail.interface is not None:
            _count("bytes per second", rail.interface.bytes_per_second)
            _require(-1 <= rail.interface.numa < MOST_INDEX, f"NUMA node {rail.interface.numa}")
    for count in (*node.counters.values(), *node.new_errors.values()):
        _count("errors", count)


def require_valid_test(test: FinishedTest) -> None:
    """Raises `InvalidRecord`."""
    _planned(test.test)
    _require(are_moments([test.started]), f"{test.started[:40]!r} is no moment")
    _count("bytes", test.bytes)
    _count("seconds", test.setup_seconds)
    _count("seconds", test.elapsed_seconds)
    _require(bool(test.times) != (test.failed is not None), "neither times nor a failure, or both")
    for time in test.times:
        _time(time, test.test)
    if test.failed is not None:
        _require(test.failed.node in ("", *test.test.nodes), "a failure of another node")
        _require(-1 <= test.failed.rank < MOST_INDEX, f"rank {test.failed.rank}")


def _planned(test: PlannedTest) -> None:
    _names(test.nodes)
    _require(0 <= test.round < MOST_INDEX, f"round {test.round}")
    is_pair = test.phase != "collective"
    _require(len(test.nodes) == 2 if is_pair else len(test.nodes) > 0, "a pair that is none")
    _require(len(set(test.nodes)) == len(test.nodes), "one node twice in a test")


def _time(time: RailTime, test: PlannedTest) -> None:
    _require(0 <= time.rail < MOST_INDEX, f"rail {time.rail}")
    _require(time.sender in ("", *test.nodes), "a time of another node")
    for seconds in (time.low, time.seconds, time.high):
        _require(LEAST_SECONDS <= seconds <= MOST_SECONDS, f"a time of {seconds:g} s")
    _require(time.low <= time.seconds <= time.high, "a time outside of its interval")
    _require(1 <= time.n <= MOST, f"{time.n} samples")
    if time.crossed is not None:
        _count("of the bytes", time.crossed)


def _names(names: tuple[str, ...]) -> None:
    for name in names:
        _require(is_host_name(name), f"{name[:80]!r} is no name of a node")


def _count(what: str, value: float) -> None:
    _require(isfinite(value) and 0 <= value <= MOST, f"{value:g} {what}")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidRecord(what)
