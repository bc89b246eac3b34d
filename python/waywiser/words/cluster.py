"""Nodes of a cluster, tests between them, and what a test found.

A *rail* is the part of a node that one test process uses: a GPU and the network interface beside
it, or the whole node where there is no GPU. A *pair test* sends between equal rails of two nodes,
all rails at once, in one direction after the other. A *round* is a list of tests that run at the
same time; no node is in two tests of a round.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from waywiser.words.host_list import compress_hosts
from waywiser.words.records import Failure
from waywiser.words.value import Value

NodeState = Literal["joined", "not reached", "excluded", "lost", "stuck"]
"""``excluded``: it joined and cannot be tested: the version of its protocol, of its MPI library or
of NCCL is not that of the others. ``lost``: its connection ended. ``stuck``: a process of it
survived its kill; it is tested no more."""

MessageMemory = Literal["gpu", "host"]
"""Where the messages of tests come from and go to: memory of GPUs, or of hosts."""

Phase = Literal["hangs", "pairs", "alone", "among", "cover", "pair", "collective"]
"""``hangs``: two rounds that find what hangs. ``pairs``: the rounds of the verdict. ``alone``: a
suspect again, alone on its up-links. ``among``: confirmed suspects among themselves, or others with
them. ``cover``: pairs of good nodes that no test has shown to be fast. ``pair``: a pair that stands
out, again. ``collective``: the good nodes together."""


RailDirection = Literal["sending", "receiving", "both"]


class ClusterPlace(Value, frozen=True):
    """Where in a cluster something was found."""

    nodes: tuple[str, ...] = ()
    """The node; the pair, the sender first; the members of the group."""
    rail: int = -1
    """-1: all rails."""
    interface: str = ""
    direction: RailDirection = "both"

    def __str__(self) -> str:
        """``n3, rail 2 (mlx5_2), sending``: all of it that is known."""
        rail = f"rail {self.rail}" if self.rail >= 0 else ""
        interface = f"({self.interface})" if self.interface else ""
        direction = "" if self.direction == "both" else self.direction
        parts = (compress_hosts(self.nodes), f"{rail} {interface}".strip(), direction)
        return ", ".join(filter(None, parts))


class Interface(Value, frozen=True):
    """A network interface of a node, as sysfs shows it."""

    name: str
    """``mlx5_0``, ``eth0``."""
    kind: Literal["infiniband", "ethernet"]
    bytes_per_second: float = 0.0
    """The rate of its link in one direction; 0 if sysfs does not say."""
    numa: int = -1


class Rail(Value, frozen=True):
    """One test process of a node."""

    index: int
    gpu: int = -1
    """-1: host memory."""
    interface: Interface | None = None
    """The nearest one; None if sysfs shows none."""


class ClusterNode(Value, frozen=True):
    """A node of a run. ``name`` is its identity: unique in a run, the same after a resume."""

    name: str
    state: NodeState = "joined"
    reason: str = ""
    """Why it is not ``joined``; what it answered last."""
    address: str = ""
    rails: tuple[Rail, ...] = ()
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """The versions of ``waywiser``, ``driver``, ``nccl``, ``mpi``, ``kernel``; without what a node
    does not have."""
    counters: dict[str, int] = msgspec.field(default_factory=dict)
    """Errors that interfaces have counted since their drivers were loaded, ``mlx5_0
    symbol_error``; when it joined, later when the run ended."""
    new_errors: dict[str, int] = msgspec.field(default_factory=dict)
    """Those of them that they counted during the run: between its joining and its end."""


class PlannedTest(Value, frozen=True):
    """A test to run. ``nodes`` are the two nodes of a pair, or all of a collective."""

    phase: Phase
    round: int
    """Counts up over the whole run."""
    nodes: tuple[str, ...]


class RailTime(Value, frozen=True):
    """The time of one message of a test, in one direction of one rail, in seconds."""

    rail: int
    sender: str
    """The node that sends; empty for a collective."""
    seconds: float
    """The median of the samples."""
    low: float
    high: float
    """Its 95 % confidence interval."""
    n: int
    crossed: float | None = None
    """The share of the bytes that the sender's interface counted; None if it was not watched."""


class FailedTest(Value, frozen=True):
    """Why a test has no times, and where."""

    failure: Failure
    node: str = ""
    """The node to blame; empty if none can be named."""
    rank: int = -1
    doing: str = ""
    """The last known action."""


class FinishedTest(Value, frozen=True):
    """A finished test: times, or a failure."""

    test: PlannedTest
    transport: str
    """``mpi``, ``nccl``."""
    bytes: int
    """The size of one message of a rail."""
    started: str
    """UTC, ISO 8601."""
    setup_seconds: float = 0.0
    elapsed_seconds: float = 0.0
    times: tuple[RailTime, ...] = ()
    failed: FailedTest | None = None


class ClusterPlan(Value, frozen=True):
    """What a run was asked for. A resume has the plan of the folder."""

    transport: str
    seed: int
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Nodes below one switch, by the name of the group; empty if unknown."""
    groups_from: str = ""
    """``file``, ``slurm``, ``times`` (discovered); empty if unknown."""
    uplink_pairs: int = 0
    """How many pairs at once the up-links of one group carry undisturbed; 0 if unknown."""
    bytes: int = 0
    """The size of one message; 0 until it is chosen from the first tests."""
    memory: MessageMemory | Literal[""] = ""
    """Empty until it is chosen before the first test."""
