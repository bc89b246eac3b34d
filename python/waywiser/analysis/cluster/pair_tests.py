"""The times of finished tests between two nodes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waywiser.analysis.cluster.ragged_rows import RaggedRows

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SENDING, RECEIVING = 0, 1
"""The last index of what belongs to a node; the first direction of a test goes from ``a``."""

PHASES = ("hangs", "pairs", "alone", "among", "cover", "pair", "collective")


@dataclass(frozen=True)
class PairTests:
    """Tests of two nodes; nodes are indices."""

    a: Ints
    b: Ints
    y: Floats
    """The logarithms of seconds: test, rail, direction (0 from ``a`` to ``b``); NaN if missing,
    and of tests that failed."""
    phase: Ints
    """An index of `PHASES`."""
    round: Ints

    def __len__(self) -> int:
        return len(self.a)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Returns the nodes of each test, the lower index first."""
        low, high = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def keys(self, nodes: int) -> Ints:
        """Returns the pair of each test: the lower index, times the number of nodes, plus the
        higher index."""
        return np.minimum(self.a, self.b) * nodes + np.maximum(self.a, self.b)

    @property
    def from_lower(self) -> Floats:
        """Returns the times with the direction from the lower index first."""
        return np.where((self.a > self.b)[:, None, None], self.y[:, :, ::-1], self.y)

    @property
    def has_times(self) -> Bools:
        return np.asarray(~np.isnan(self.y).all(axis=(1, 2)))

    def count_of_nodes(self, nodes: int) -> Ints:
        """Returns how many tests each node has."""
        return np.bincount(self.a, minlength=nodes) + np.bincount(self.b, minlength=nodes)

    def where(self, mask: Bools) -> PairTests:
        """Returns the tests of a mask."""
        chosen = np.flatnonzero(mask)
        return PairTests(
            self.a[chosen], self.b[chosen], self.y[chosen], self.phase[chosen], self.round[chosen]
        )

    def of(self, *phases: str) -> PairTests:
        """Returns the tests of some phases."""
        mask = np.zeros(len(PHASES), dtype=bool)
        mask[[PHASES.index(each) for each in phases]] = True
        return self.where(mask[self.phase])

    def replaced(self, y: Floats) -> PairTests:
        """Returns these tests with other times."""
        return PairTests(self.a, self.b, y, self.phase, self.round)


@dataclass(frozen=True)
class NodeRows(RaggedRows):
    """The tests of each node: the last index of ``y`` is `SENDING` or `RECEIVING`."""

    partner: Ints
    """The other node of each test."""


def node_rows(tests: PairTests, nodes: int) -> NodeRows:
    """Returns each test twice: as a test of its first and of its second node."""
    owner = np.concatenate([tests.a, tests.b])
    other = np.concatenate([tests.b, tests.a])
    both = np.concatenate([tests.y, tests.y[:, :, ::-1]])
    order = np.argsort(owner, kind="stable")
    return NodeRows(owner[order], both[order], nodes, other[order])
