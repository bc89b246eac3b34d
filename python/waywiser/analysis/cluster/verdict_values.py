"""The verdict about a cluster: each node, and each finding with its evidence."""

from __future__ import annotations

import msgspec

from waywiser.curves import Finding
from waywiser.words import STATUSES, RailDirection, Reason, Status, Value

NODE_REASONS: tuple[Reason, ...] = (
    *("failed", "stuck", "slow", "not reached", "excluded", "pair", "not decided", "ok"),
)
"""The status of a node. ``slow``: to every other node, alone or with a group. ``failed``: tests
failed because of it. ``pair``: it was compared with one other node only, and neither of the two can
be blamed. ``not decided``: no test compares it with others, or it is a suspect and too few good
nodes are left."""

BAD_REASONS = tuple(each for each in NODE_REASONS if STATUSES[each] is Status.FAILED)
"""What keeps a node off a list of good hosts."""


class NodeVerdict(Value, frozen=True):
    """What is known about a node."""

    node: str
    verdict: Reason
    reason: str = ""
    """One line; empty if it is ``ok``."""
    findings: tuple[Finding, ...] = ()
    tests: int = 0
    """Tests of it that have times."""
    failed_tests: int = 0

    @property
    def is_bad(self) -> bool:
        return self.verdict in BAD_REASONS


class NodeGroup(Value, frozen=True):
    """Nodes below one switch: given with the run, or discovered from times."""

    name: str
    nodes: tuple[str, ...]
    ratio: float = 0.0
    """The usual time to other groups as a multiple of that inside; 0 if it is unknown."""


class PairTime(Value, frozen=True):
    """The usual time of one message between two nodes on one rail, in one direction."""

    sender: str
    receiver: str
    rail: int
    seconds: float
    """The median of its tests of the rounds."""
    ratio: float
    """The time as a multiple of the usual time of the rail in the cluster."""
    tests: int


class RailRate(Value, frozen=True):
    """What a rail of a node reached, beside the rate of its interface."""

    node: str
    rail: int
    interface: str
    bytes_per_second: float
    interface_bytes_per_second: float
    """0: unknown."""
    share: float = 0.0


class CollectiveResult(Value, frozen=True):
    """A collective of nodes, beside the time that their pairs predict."""

    nodes: tuple[str, ...]
    seconds: float = 0.0
    """0: it failed."""
    predicted_seconds: float = 0.0
    failed: str = ""


class DetectableRail(Value, frozen=True):
    """The smallest slowness of one node that the run finds with 95 % probability, on a rail."""

    rail: int
    direction: RailDirection
    ratio: float
    """1.04: 4 %. 0: too few tests."""


class PairCoverage(Value, frozen=True):
    """How many pairs were tested, of the nodes that are neither slow nor failed."""

    nodes: int = 0
    pairs: int = 0
    """All pairs of these nodes."""
    tested: int = 0
    """Pairs that a test has shown to be fast, or that were found slow or failing."""
    ratio: float = 0.0
    """The smallest slowness of a tested pair that is found with 95 %: 1.09; 0: unknown."""
    may_cross_unseen: bool = False
    """Whether tests may cross switches of which the run does not know: a slow one may be missed."""

    @property
    def share(self) -> float:
        """Returns the share of the pairs that were tested; 1 if there is no pair."""
        return self.tested / self.pairs if self.pairs else 1.0


class ClusterVerdict(Value, frozen=True):
    """What is known about a cluster."""

    nodes: tuple[NodeVerdict, ...]
    """The worst first."""
    findings: tuple[Finding, ...] = ()
    """All, those of nodes included; the gravest first."""
    groups: tuple[NodeGroup, ...] = ()
    groups_from: str = ""
    """``file``, ``slurm``, ``times``; empty if unknown."""
    pairs: tuple[PairTime, ...] = ()
    rails: tuple[RailRate, ...] = ()
    collectives: tuple[CollectiveResult, ...] = ()
    errors_counted: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """By node: what its interfaces counted, if it is not 0."""
    detectable: tuple[DetectableRail, ...] = ()
    coverage: PairCoverage = PairCoverage()
    usual_seconds: dict[int, float] = msgspec.field(default_factory=dict)
    """By rail: the time of one message between usual nodes of one group, which `PairTime.ratio` is
    a multiple of."""
    bytes: int = 0
    """The size of one message of a rail."""
    suspects: tuple[str, ...] = ()
    """Nodes that stood out in the rounds, whether or not this was confirmed."""
    complete: bool = False
    """Whether all tests that the procedure needs are finished."""

    def of(self, standing: Reason) -> tuple[str, ...]:
        """Returns the nodes with a verdict."""
        return tuple(each.node for each in self.nodes if each.verdict == standing)

    @property
    def good(self) -> tuple[str, ...]:
        """Returns the nodes that nothing keeps off a list of good hosts."""
        return tuple(each.node for each in self.nodes if not each.is_bad)

    @property
    def smallest_found(self) -> float:
        """Returns the smallest slowness that is found with 95 %, on the worst rail; 0: unknown."""
        ratios = [each.ratio for each in self.detectable]
        return max(ratios) if ratios and min(ratios) > 0 else 0.0
