"""Failed tests by the node, or the pair of nodes, whose fault they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from waywiser.words import FinishedTest

MOST_FAILURES = 2
"""A node with so many failures that are its fault is tested no more: each may cost a time-out."""


FLAKY_PARTNERS, FLAKY_FACTOR = 3, 4.0
"""A node that fails with so many partners, and so many times as often as tests without it, is at
fault, although most of its tests pass."""

NO_FAULT = ("skipped", "interrupted")
"""Kinds of failure that say nothing about a node: there was no time, or the run ended."""


@dataclass(frozen=True)
class Losses:
    """The failed tests of each node and of each pair that is to blame."""

    of_node: dict[int, list[FinishedTest]]
    """The tests that failed because of a node."""
    of_pair: dict[tuple[int, int], list[FinishedTest]]
    """The tests that neither of the two nodes can be blamed for: the lower index first."""

    @property
    def failed(self) -> frozenset[int]:
        """Returns the nodes that are tested no more."""
        return frozenset(n for n, tests in self.of_node.items() if len(tests) >= MOST_FAILURES)


def find_losses(
    index: Mapping[str, int], failed: Sequence[FinishedTest], passed: Sequence[int]
) -> Losses:
    """Divides failed tests by the node, or the pair of nodes, whose fault they are. ``index`` has
    the number of each node, ``passed`` how many tests each passed.

    A failure that names its node is that node's fault. Else it is the fault of a node that failed
    with several partners, one of which passed with another, and more often than it passed, or much
    more often than others fail; the one with most failures first, so that its partners are not
    blamed with it."""
    blamed: dict[int, list[FinishedTest]] = defaultdict(list)
    open_: Open = []
    for test in failed:
        if test.failed is None or test.failed.failure.kind in NO_FAULT:
            continue
        if test.failed.node in index and test.failed.node in test.test.nodes:
            blamed[index[test.failed.node]].append(test)
        elif len(test.test.nodes) == 2 and all(name in index for name in test.test.nodes):
            a, b = sorted(index[name] for name in test.test.nodes)
            open_.append((a, b, test))
    # What a blamed node took part in is its fault as well.
    open_ = _assign(open_, set(blamed), blamed)
    while worst := _most_failed(open_, passed):
        open_ = _assign(open_, {worst[0]}, blamed)
    of_pair: dict[tuple[int, int], list[FinishedTest]] = defaultdict(list)
    for a, b, test in open_:
        of_pair[a, b].append(test)
    return Losses(dict(blamed), dict(of_pair))


Open = list[tuple[int, int, FinishedTest]]


def _assign(open_: Open, nodes: set[int], blamed: dict[int, list[FinishedTest]]) -> Open:
    rest: Open = []
    for a, b, each in open_:
        if guilty := {a, b} & nodes:
            blamed[min(guilty)].append(each)
        else:
            rest.append((a, b, each))
    return rest


def _most_failed(open_: Open, passed: Sequence[int]) -> tuple[int] | None:
    partners: dict[int, set[int]] = defaultdict(set)
    failures: Counter[int] = Counter()
    for a, b, _ in open_:
        partners[a].add(b)
        partners[b].add(a)
        failures.update((a, b))
    # Where no partner passed any test, the partners may be at fault as well.
    guilty = [
        n
        for n in partners
        if len(partners[n]) > 1
        and (failures[n] > passed[n] or _is_flaky(n, len(partners[n]), failures, passed))
        and any(passed[other] for other in partners[n])
    ]
    if not guilty:
        return None
    return (max(guilty, key=lambda n: (len(partners[n]), failures[n] - passed[n], -n)),)


def _is_flaky(node: int, partners: int, failures: Mapping[int, int], passed: Sequence[int]) -> bool:
    """Whether a node fails with so many partners, and so much more often than tests without it,
    that neither chance nor single pairs explain it."""
    own = failures[node]
    failed, all_passed = sum(failures.values()) / 2 - own, sum(passed) / 2 - passed[node]
    share = (failed + 0.5) / (failed + all_passed + 1)
    return partners >= FLAKY_PARTNERS and own > FLAKY_FACTOR * share * (own + passed[node])
