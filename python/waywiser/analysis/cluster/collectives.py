"""Collectives of the good nodes, and which half of them is bad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from waywiser.analysis.cluster.confirmed import confirmed
from waywiser.analysis.cluster.levels import quantile
from waywiser.analysis.cluster.losses import NO_FAULT
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.verdict_values import CollectiveResult
from waywiser.words import FinishedTest

LEAST_NODES = 3
SLOW = 2.0
"""A collective that takes this multiple of what pairs predict is slow."""

SLOWER_HALF = 1.3
"""A half is bad if it takes this multiple of the time of the other, for equal work."""


def collective_results(state: ClusterState) -> list[CollectiveResult]:
    """Returns the collectives that ran, in the order of their rounds."""
    return [_result(state, each) for each in state.collectives if not _is_unrun(each)]


def _is_unrun(test: FinishedTest) -> bool:
    return test.failed is not None and test.failed.failure.kind in NO_FAULT


def _result(state: ClusterState, test: FinishedTest) -> CollectiveResult:
    nodes = test.test.nodes
    predicted = predicted_seconds(state, nodes)
    if test.failed is not None or not test.times:
        why = test.failed.failure.reason if test.failed is not None else "no time was measured"
        return CollectiveResult(nodes, 0.0, predicted, why)
    return CollectiveResult(nodes, max(each.seconds for each in test.times), predicted)


def predicted_seconds(state: ClusterState, nodes: Sequence[str]) -> float:
    """Returns the time of an allreduce in a ring, in which each node sends the message nearly
    twice to its neighbour: by the usual time of a pair on the slowest rail. 0: no pair test."""
    y = state.rounds.undisturbed.y
    if not len(y) or len(nodes) < 2:
        return 0.0
    usual = float(np.exp(np.nanmax(quantile(y, 0.5, axis=(0, 2)))))
    return 2 * (len(nodes) - 1) / len(nodes) * usual


def next_collectives(state: ClusterState) -> list[tuple[str, ...]]:
    """Returns the sets of nodes that run the next collectives, side by side: first all good nodes,
    again when one of them is lost or blamed; then halves of what is bad, until a half is good or
    has two nodes; then those that remain, once. Empty if all are done."""
    good = good_nodes(state)
    if len(good) < LEAST_NODES:
        return []
    results = {frozenset(each.nodes): each for each in collective_results(state)}
    tried = {frozenset(each.test.nodes) for each in state.collectives}
    if frozenset(good) not in tried:
        return [good]
    todo, bad = _bisect(good, results)
    if todo:
        return [each for each in todo if frozenset(each) not in tried]
    rest = tuple(name for name in good if name not in bad)
    if bad and len(rest) >= LEAST_NODES and frozenset(rest) not in tried:
        return [rest]
    return []


def good_nodes(state: ClusterState) -> tuple[str, ...]:
    """Returns the nodes that may be tested, that are no fault of a failure and not slow."""
    slow = set(np.flatnonzero(confirmed(state).any(axis=(1, 2))).tolist())
    blamed = {
        n
        for n, tests in state.losses.of_node.items()
        if any(each.test.phase != "collective" for each in tests)
    }
    return tuple(
        name
        for n, name in enumerate(state.names)
        if bool(state.testable[n]) and n not in slow and n not in blamed
    )


def is_bad(result: CollectiveResult) -> bool:
    if result.failed:
        return True
    return result.predicted_seconds > 0 and result.seconds > SLOW * result.predicted_seconds


def _bisect(
    nodes: tuple[str, ...], results: dict[frozenset[str], CollectiveResult]
) -> tuple[list[tuple[str, ...]], set[str]]:
    """Returns the sets to run, and the nodes of the smallest sets that are bad."""
    todo: list[tuple[str, ...]] = []
    smallest: set[str] = set()
    stack = [nodes]
    while stack:
        now = stack.pop()
        result = results.get(frozenset(now))
        if result is None:
            todo.append(now)
            continue
        if not is_bad(result):
            continue
        if len(now) < 4:
            smallest.update(now)
            continue
        middle = len(now) // 2
        halves = now[:middle], now[middle:]
        done = [results.get(frozenset(each)) for each in halves]
        if any(each is None for each in done):
            todo += [half for half, each in zip(halves, done, strict=True) if each is None]
        else:
            stack += _worse(halves, [each for each in done if each is not None])
    return todo, smallest


def _worse(
    halves: tuple[tuple[str, ...], ...], done: Sequence[CollectiveResult]
) -> list[tuple[str, ...]]:
    """Returns the halves that failed; or the one that is much slower than the other."""
    failed = [half for half, each in zip(halves, done, strict=True) if each.failed]
    if failed:
        return failed
    relative = [each.seconds / max(each.predicted_seconds, 1e-12) for each in done]
    if max(relative) > SLOWER_HALF * min(relative):
        return [halves[int(np.argmax(relative))]]
    return []
