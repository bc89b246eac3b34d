"""Whether messages of MPI are between memories of GPUs or of hosts: tried between nodes, since a
library that states that it takes memory of GPUs may crash or send wrong bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.words import ClusterNode, MessageMemory, PlannedTest

_MOST_PAIRS = 3
"""Pairs of nodes that are tried: one may be bad whatever the memory is."""

WhyNot = Callable[[PlannedTest, MessageMemory], str]
"""Runs a test with messages between such memories. Returns why it failed; empty if it did not."""


def choose_memory(why_not: WhyNot, nodes: Sequence[ClusterNode]) -> tuple[MessageMemory, str]:
    """The memory of messages between these nodes, and why it is not that of GPUs although they have
    some. A pair that fails with both memories decides nothing."""
    names = [n.name for n in nodes if n.rails and all(rail.gpu >= 0 for rail in n.rails)]
    pairs = list(zip(names[::2], names[1::2], strict=False))[:_MOST_PAIRS]
    for pair in pairs:
        test = PlannedTest("hangs", 0, pair)
        reason = why_not(test, "gpu")
        if not reason:
            return "gpu", ""
        if not why_not(test, "host"):
            return "host", reason
    return "host", "no pair of nodes could try it" if pairs else ""
