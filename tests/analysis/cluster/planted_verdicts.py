"""Verdicts about clusters as they are found, for tests of what is said about them."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.analysis.cluster.verdict_values import (
    ClusterVerdict,
    CollectiveResult,
    DetectableRail,
    NodeGroup,
    NodeVerdict,
    PairCoverage,
    PairTime,
    RailRate,
)
from waywiser.curves.answer import Finding
from waywiser.words.status import Reason

SLOW = cluster_finding(
    kind="slow node",
    nodes=("n03",),
    rail=2,
    interface="mlx5_2",
    direction="sending",
    text="n03 is 12 % slow to every node, sending, on rail 2 (mlx5_2)",
    ratio=(1.12, 1.10, 1.14),
    tests=8,
    evidence=("8 tests: 12 % slower, 95 % interval 10 % to 14 %",),
)
GROUP = cluster_finding(
    kind="slow group",
    nodes=tuple(f"n{n:02}" for n in range(16, 32)),
    text="n[16-31] share something slow: they are fast among themselves",
    ratio=(1.3, 1.25, 1.36),
    tests=240,
)
CRASH = cluster_finding(
    kind="failed node",
    nodes=("n05",),
    text="n05 fails: rank 5 ended with signal 11 at 'send, sample 12'",
    tests=3,
)
COUNTED = cluster_finding(
    kind="errors counted",
    nodes=("n07",),
    text="n07 counted 5 symbol errors on mlx5_0",
)


def nodes(
    count: int, verdicts: dict[str, Reason] | None = None, **reasons: str
) -> list[NodeVerdict]:
    """Nodes n00 and so on, 31 tests each, but for those with another verdict."""
    others = verdicts or {}
    untested = ("not reached", "excluded", "not decided")
    return [
        NodeVerdict(
            name,
            others.get(name, "ok"),
            reasons.get(name, ""),
            tests=0 if others.get(name) in untested else 31,
        )
        for name in (f"n{n:02}" for n in range(count))
    ]


def planted(
    found: Sequence[NodeVerdict],
    *findings: Finding,
    complete: bool = True,
    smallest: float = 1.04,
    share: float = 1.0,
) -> ClusterVerdict:
    """A verdict with findings at their nodes, and two groups, two rails, some pairs, of which a
    share was tested."""
    at = {name: [each for each in findings if name in each.nodes] for name in _names(found)}
    names = _names(found)
    half = len(names) // 2
    good = sum(each.verdict == "ok" for each in found)
    pairs = good * (good - 1) // 2
    return ClusterVerdict(
        nodes=tuple(
            NodeVerdict(n.node, n.verdict, n.reason, tuple(at[n.node]), n.tests) for n in found
        ),
        findings=findings,
        groups=(
            NodeGroup("left", tuple(names[:half]), 1.03),
            NodeGroup("right", tuple(names[half:]), 1.03),
        ),
        groups_from="file",
        pairs=tuple(PairTime(names[0], n, 0, 0.001, 1 + k / 100, 1) for k, n in enumerate(names)),
        rails=tuple(RailRate(n, 0, "mlx5_0", 45e9, 50e9, 0.9) for n in names),
        collectives=(CollectiveResult(tuple(names), 0.02, 0.018),),
        detectable=(
            DetectableRail(0, "sending", smallest),
            DetectableRail(0, "receiving", smallest),
        ),
        coverage=PairCoverage(good, pairs, round(share * pairs), 1.09),
        usual_seconds={0: 0.001},
        bytes=45_000_000,
        complete=complete,
    )


def _names(found: Sequence[NodeVerdict]) -> list[str]:
    return [each.node for each in found]
