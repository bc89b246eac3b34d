"""A placement: where to put buffers and threads, which GPUs to use together, and the cost of the
worst choice, as values."""

from __future__ import annotations

from typing import Literal

import msgspec

from waywiser.curves import Regime
from waywiser.stats import Interval, TestOutcome
from waywiser.words import Value

PlacementQuestion = Literal["buffer", "side", "gpu", "thread", "pair", "set"]
"""What is chosen: the node of a buffer and of the thread that copies; the hidden side of both; the
GPU of a node; the node of the thread that submits a copy between GPUs; two GPUs that exchange data;
several GPUs that exchange data with the host at the same time."""

PlacementSource = Literal["system", "latency", "not known"]
"""What says which GPUs and memory are local to each other."""

Basis = Literal["measured", "no difference", "system", "not known"]
"""Why a node is named: it was measured to be better; the node makes no difference; only the system
names it; else it is unknown."""


class PlacementCost(Value, frozen=True):
    """How much slower a choice is than the best one."""

    outcome: TestOutcome = msgspec.field(name="verdict")
    loss: float
    """The share of the best choice's bandwidth that it lacks: 0.5 is half of it. Of latencies the
    share of the best choice's time that it takes longer. Below 0 if it is faster."""
    interval: Interval | None
    """95 %; None if nothing replicates it."""
    detectable: float | None
    """The smallest difference that would have been found; None if the noise is not known."""
    bytes: int
    """The size that shows it."""

    @property
    def limit(self) -> float | None:
        """The difference that is excluded: the farther end of the interval if both choices are
        equivalent, else what would have been found; None if neither is known, and for a choice that
        differs."""
        if self.outcome == "different":
            return None
        if self.outcome == "equivalent" and self.interval is not None:
            return max(abs(self.interval.low), abs(self.interval.high))
        return self.detectable


class PlacementChoice(Value, frozen=True):
    """One of several places to choose from."""

    name: str
    """``numa:0``, ``gpu:1``, ``gpu:0, gpu:1``, ``own side``."""
    rate: float
    """Bytes per second at the size that shows the cost of the worst choice; 0 if not known."""
    series: str
    """The text of the curve that shows it."""
    cost: PlacementCost | None
    """Against the best choice; None for the best one."""


class PlacementRank(Value, frozen=True):
    """The choices of one question, the best first."""

    question: PlacementQuestion
    subject: str
    """What the choice is made for: ``gpu:0``, ``numa:1``, ``gpu:0 -> gpu:1``, ``2 GPUs``; empty if
    for the whole machine."""
    transfer: str
    """The kind of transfer: ``pinned -> GPU by copy-engine``."""
    is_headline: bool
    """Whether paths with a GPU are compared by it: sentences name these kinds."""
    regime: Regime
    choices: tuple[PlacementChoice, ...]

    @property
    def best(self) -> PlacementChoice:
        return self.choices[0]

    @property
    def worst(self) -> PlacementChoice:
        return self.choices[-1]

    @property
    def good(self) -> tuple[PlacementChoice, ...]:
        """The best choice, and all that were not found to be slower."""
        return tuple(
            each
            for each in self.choices
            if each.cost is None or each.cost.outcome != "different" or each.cost.loss <= 0
        )

    @property
    def cost(self) -> PlacementCost:
        """The cost of the worst choice."""
        cost = self.worst.cost
        assert cost is not None, "a rank has two choices and more"
        return cost


class GpuPlacement(Value, frozen=True):
    """Where the buffers of one GPU, and the threads that copy, belong."""

    gpu: int
    node: int | None
    """The NUMA node; None if the node is not known."""
    basis: Basis
    side: int | None = None
    """The number of the group in `Placement.sides`, if latencies show two."""
    rank: PlacementRank | None = None
    """The rank that shows the largest cost; None if no node was compared with another."""


class NodePlacement(Value, frozen=True):
    """The GPUs that are nearest to one NUMA node."""

    node: int
    gpus: tuple[int, ...]
    """Those that were not measured to be slower than the best one."""
    basis: Basis
    rank: PlacementRank | None = None
    """The rank that shows the largest cost; None if no GPU was compared with another."""


class ConcurrentUse(Value, frozen=True):
    """Copies of several GPUs from or to the host that start together."""

    name: str
    series: str
    gpus: tuple[int, ...]
    is_bidirectional: bool
    rate: float
    """Bytes per second of all together."""
    alone_rate: float
    """The sum of what each reaches alone."""
    share: float
    """The share of that sum that is reached together."""
    interval: Interval | None
    """95 % of the share."""
    outcome: TestOutcome = msgspec.field(name="verdict")
    detectable: float | None


class ProcessSpread(Value, frozen=True):
    """How much the processes of a survey differ, if the hypervisor places their memory."""

    transfer: str
    series: str
    processes: int
    spread: float
    """How much less bandwidth the slowest process has than the fastest, at large sizes: the median
    over sizes and GPUs."""


class Placement(Value, frozen=True):
    """Where to put buffers and threads, and which GPUs to use together."""

    machine: str
    source: PlacementSource
    virtual: str
    """The hypervisor, under which virtual CPUs may move between sockets; empty on bare metal."""
    sides: tuple[tuple[int, ...], ...]
    """GPUs that are local to the same memory; one group if no sides are known."""
    gpus: tuple[GpuPlacement, ...]
    nodes: tuple[NodePlacement, ...]
    """Only of a machine that shows two nodes and more."""
    ranks: tuple[PlacementRank, ...]
    concurrent: tuple[ConcurrentUse, ...]
    spreads: tuple[ProcessSpread, ...]
    """Only of a virtual machine that shows one node or none."""
    sentences: tuple[str, ...] = ()
    """The answer in plain sentences, the most important ones first."""
    unanswered: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The sentences, each in a line, and what is not determined."""
        lines = [*self.sentences, *(f"Not determined: {each}." for each in self.unanswered)]
        return "".join(f"{line}\n" for line in lines)

    def of(self, question: PlacementQuestion) -> tuple[PlacementRank, ...]:
        """The ranks of one question."""
        return tuple(rank for rank in self.ranks if rank.question == question)
