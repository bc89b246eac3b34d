"""Equivalent paths, each against the others of its group.

A group is what the machine's symmetry makes equivalent (`waywiser.plan.classes`). At each size and
in each process a path is held against the median of the others. A path that is slower than the
others is left out when the rest are compared again, so that it makes no other look fast.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from waywiser.analysis.curve_pairs import (
    REGIMES,
    CurvePair,
    PairResult,
    logs,
    result_of,
    within,
)
from waywiser.analysis.kinds import Kind, usual
from waywiser.analysis.regimes import Regime, regime_of
from waywiser.analysis.subject import Curve, Point, Subject
from waywiser.plan.classes import Classes
from waywiser.stats.decision import Decision, Verdict
from waywiser.stats.order import median
from waywiser.stats.pairwise import PairGroup, SizeRatios, decide_groups
from waywiser.words import Path, Value

LINK_REGIMES: tuple[Regime, ...] = ("bandwidth", "medium")
"""In which a difference is one of the link: below, it is one of what starts a copy."""


class PeerResult(Value, frozen=True):
    """One path against its equivalent paths."""

    kind: Kind
    curve: Curve
    others: int
    regimes: dict[Regime, PairResult]
    """The second of each pair is the path in the middle of the others."""

    @property
    def path(self) -> Path:
        """Of its only transfer."""
        return self.curve.workload.transfers[0].path

    @property
    def different(self) -> PairResult | None:
        """The regime that shows a difference of the link, bandwidth first; None without any."""
        found = [self.regimes[regime] for regime in LINK_REGIMES if regime in self.regimes]
        return next((each for each in found if each.verdict == "different"), None)

    @property
    def verdict(self) -> Verdict:
        """Of the link."""
        if self.different is not None:
            return "different"
        return self.bandwidth.decision.verdict if self.bandwidth else "no change found"

    @property
    def bandwidth(self) -> PairResult | None:
        return self.regimes.get("bandwidth")

    @property
    def decision(self) -> Decision:
        """What shows a difference; else that of bandwidth, or of the largest regime it has."""
        if self.different is not None:
            return self.different.evidence[0]
        return next(self.regimes[r].decision for r in REGIMES if r in self.regimes)

    @property
    def is_slow(self) -> bool:
        return self.different is not None and self.decision.slower

    @property
    def is_fast(self) -> bool:
        return self.different is not None and not self.decision.slower


def peer_groups(subject: Subject) -> list[list[PeerResult]]:
    """Each group of two and more usual paths, all decided together; no files."""
    classes = Classes(subject.machine)
    groups: dict[Hashable, list[tuple[Curve, Kind]]] = {}
    for curve, kind in usual(subject):
        if kind.group != "file":
            groups.setdefault(classes.key(curve.workload), []).append((curve, kind))
    several = [found for found in groups.values() if len(found) > 1]
    first = _decided(several, [set() for _ in several])
    slow = [{each.curve.text for each in found if each.is_slow} for found in first]
    return [found for found in _decided(several, slow) if len(found) > 1]


class _Member(NamedTuple):
    kind: Kind
    pair: CurvePair
    points: dict[Regime, list[tuple[Point, Point]]]
    ratios: dict[Regime, list[SizeRatios]]


def _decided(
    groups: Sequence[Sequence[tuple[Curve, Kind]]], slow: Sequence[set[str]]
) -> list[list[PeerResult]]:
    made = [_members(found, out) for found, out in zip(groups, slow, strict=True)]
    decisions = decide_groups(
        [
            PairGroup([each.ratios for each in members], _family(members), deviations=True)
            for members in made
        ]
    )
    return [
        [
            PeerResult(each.kind, each.pair.a, len(members) - 1, {
                regime: result_of(each.pair, each.points[regime], own[regime])
                for regime in REGIMES if regime in own
            })
            for each, own in zip(members, found.pairs, strict=True)
        ]
        for members, found in zip(made, decisions, strict=True)
    ]  # fmt: skip


def _family(members: Sequence[_Member]) -> Hashable:
    """Kinds whose processes scatter alike: both directions, from the same memory of any sort."""
    if not members:
        return None
    kind = members[0].kind
    return kind.group, kind.executor, kind.scatters_as, kind.link


def _members(group: Sequence[tuple[Curve, Kind]], slow: set[str]) -> list[_Member]:
    found = []
    for curve, kind in group:
        others = [other for other, _ in group if other is not curve]
        sound = [other for other in others if other.text not in slow] or others
        points: dict[Regime, list[tuple[Point, Point]]] = {}
        ratios: dict[Regime, list[SizeRatios]] = {}
        for point in curve.points:
            beside = [other for each in sound if (other := each.at(point.bytes)) is not None]
            deviations = _deviations(point, [logs(each) for each in beside])
            if deviations:
                regime = regime_of(point.workload)
                middle = sorted(beside, key=lambda each: each.seconds)[len(beside) // 2]
                points.setdefault(regime, []).append((point, middle))
                size = SizeRatios(point.bytes, deviations, within(point))
                ratios.setdefault(regime, []).append(size)
        if ratios:
            centre = sound[0]
            found.append(_Member(kind, CurvePair(curve, centre), points, ratios))
    return found


def _deviations(point: Point, others: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """By process: from the median of the others in that process. If none was measured in the same
    process, from the median of all their processes."""
    beside = list(others)
    own = logs(point)
    found = {
        process: value - median(centre)
        for process, value in own.items()
        if (centre := [each[process] for each in beside if process in each])
    }
    if found or not beside:
        return found
    everything = [value for each in beside for value in each.values()]
    return {process: value - median(everything) for process, value in own.items()}
