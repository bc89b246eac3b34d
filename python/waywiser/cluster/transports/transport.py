"""How the tests of a round are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from waywiser.words import ClusterNode, FinishedTest, MessageMemory, PlannedTest

OnFinished = Callable[[FinishedTest], None]


class Transport(Protocol):
    """Runs tests between nodes; `waywiser.cluster.transports.mpi_transport` and
    `waywiser.cluster.transports.nccl_transport`."""

    name: str

    def choose_memory(self, nodes: Sequence[ClusterNode], size: int) -> tuple[MessageMemory, str]:
        """The memory of messages between the nodes that have joined, which later tests use, and why
        it is not that of GPUs although the nodes have some. It may try messages of ``size`` bytes;
        0 for sizes that are not known yet."""

    def run(
        self, tests: Sequence[PlannedTest], size: int, seconds: float, on_finished: OnFinished
    ) -> None:
        """Runs the tests side by side, with messages of ``size`` bytes, and reports each as soon as
        it ends. A test that takes longer than ``seconds`` is ended and reported as failed; so is a
        test that a loss of its nodes ends. The other tests go on. Raises `WaywiserError` only if no
        test can run at all, with the reason."""

    def close(self) -> None:
        """Ends everything that it has started, on all nodes."""
