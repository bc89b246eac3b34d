"""Pairs of curves that ask the same question, grouped by kind of transfer, with their decisions.

What the mean over the pairs of a kind shows is a property of the kind. What few of them show is
said about those few. `waywiser.stats.pairwise` decides; this file makes its input from curves and
gives its results to answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from waywiser.curves import Curve, Point, Regime, regime_of, size_ranges
from waywiser.stats import (
    Decision,
    PairGroup,
    SizeRatios,
    TestOutcome,
    decide_groups,
    returned_from_none,
)
from waywiser.stats.pairwise import GroupDecisions, RegimeDecision
from waywiser.words import Value, grouped

REGIMES: tuple[Regime, ...] = ("bandwidth", "medium", "latency")


class PointPair(Value, frozen=True):
    """Both curves at one size."""

    a: Point
    b: Point
    decision: Decision
    """Its ratio is that of bandwidths, the first over the second."""

    @property
    def bytes(self) -> int:
        return self.a.bytes


class PairResult(Value, frozen=True):
    """What was decided about a pair in one regime."""

    a: Curve
    b: Curve
    decision: Decision
    """The decision about the median over sizes."""
    sizes: tuple[PointPair, ...]
    """Ascending."""

    @property
    def different(self) -> tuple[PointPair, ...]:
        return tuple(each for each in self.sizes if each.decision.outcome == "different")

    @property
    def outcome(self) -> TestOutcome:
        """Different as a whole or at some size."""
        return "different" if self.different else self.decision.outcome

    @property
    def is_whole(self) -> bool:
        """Whether the regime differs, and not some sizes of it."""
        most = not self.different or 2 * len(self.different) > len(self.sizes)
        return self.decision.outcome == "different" and most

    @property
    def evidence(self) -> tuple[Decision, PointPair]:
        """The decision that shows most, and the size to show with it: the whole regime with the
        size nearest to it, or the size that differs most."""
        if self.is_whole or not self.different:
            return self.decision, nearest(self.decision, self.sizes)
        worst = max(self.different, key=lambda each: abs(math.log(each.decision.ratio)))
        return worst.decision, worst


def nearest(decision: Decision, sizes: Sequence[PointPair]) -> PointPair:
    """The size whose ratio is nearest to that decided about; of several, the largest."""
    return min(
        sizes, key=lambda each: (abs(math.log(each.decision.ratio / decision.ratio)), -each.bytes)
    )


class RegimeResult(Value, frozen=True):
    """What was decided about all pairs of one kind in one regime."""

    label: str
    regime: Regime
    decision: Decision
    """The decision about the mean over the pairs."""
    at_size: dict[int, Decision]
    """The same at each size."""
    pairs: tuple[PairResult, ...]

    @property
    def differing(self) -> tuple[PairResult, ...]:
        return tuple(pair for pair in self.pairs if pair.outcome == "different")

    @property
    def different_sizes(self) -> list[int]:
        """Sizes at which the pairs differ on average."""
        return [size for size, each in self.at_size.items() if each.outcome == "different"]

    @property
    def is_of_kind(self) -> bool:
        """Whether a difference is one of the kind: not of few pairs, and not to one side in some
        pairs and to the other in others. What one pair shows at sizes that no other has is one of
        the kind."""
        if len({pair.evidence[0].slower for pair in self.differing}) > 1:
            return False
        regime = sum(pair.decision.outcome == "different" for pair in self.pairs)
        have = Counter(each.bytes for pair in self.pairs for each in pair.sizes)
        differ = Counter(each.bytes for pair in self.pairs for each in pair.different)
        few = 0 < 2 * regime <= len(self.pairs) or any(
            have[size] > 1 and 2 * differ[size] <= have[size] for size in differ
        )
        most = 2 * regime > len(self.pairs) or any(2 * differ[size] > have[size] for size in differ)
        on_average = self.decision.outcome == "different" or bool(self.different_sizes)
        return (most or on_average) and not (few and 2 * len(self.differing) <= len(self.pairs))

    @property
    def is_slower_kind(self) -> bool:
        """Whether a difference is one of the kind, and the first of its pairs are the slower."""
        return self.is_of_kind and self.evidence[0].slower

    @property
    def is_whole(self) -> bool:
        """Whether the regime differs on average, and not some sizes of it."""
        sizes = self.different_sizes
        most = not sizes or 2 * len(sizes) > len(self.at_size)
        return self.decision.outcome == "different" and most

    @property
    def outcome(self) -> TestOutcome:
        if self.is_of_kind or self.differing:
            return "different"
        return self.decision.outcome

    @property
    def evidence(self) -> tuple[Decision, PointPair]:
        """The decision to report and the middle pair at the size that shows it: of the kind, or of
        the pair that differs most."""
        if not self.is_of_kind and self.differing:
            shown = (pair.evidence for pair in self.differing)
            return max(shown, key=lambda each: abs(math.log(each[0].ratio)))
        if not self.is_whole and self.different_sizes:
            size = max(self.different_sizes, key=lambda n: abs(math.log(self.at_size[n].ratio)))
            sizes = chain.from_iterable(pair.sizes for pair in self.pairs)
            points = [(each.decision, each) for each in sizes if each.bytes == size]
            return self.at_size[size], self._middle(points)[1]
        if self.decision.outcome != "different" and self.differing:
            return self._middle([pair.evidence for pair in self.differing])
        points = [(pair.decision, nearest(self.decision, pair.sizes)) for pair in self.pairs]
        return self.decision, self._middle(points)[1]

    @staticmethod
    def _middle(found: Sequence[tuple[Decision, PointPair]]) -> tuple[Decision, PointPair]:
        return sorted(found, key=lambda each: each[0].ratio)[len(found) // 2]

    @property
    def sizes_text(self) -> str:
        """Sizes at which the kind, or any pair of it, differs; empty if nowhere by itself."""
        sizes = set(self.different_sizes)
        if not self.is_of_kind:
            sizes = {each.bytes for pair in self.differing for each in pair.different}
        return size_ranges(sorted(sizes), sorted(self.at_size))


class CurveGroup(Value, frozen=True):
    """All pairs of one kind of transfer."""

    label: str
    regimes: dict[Regime, RegimeResult]

    @property
    def bandwidth(self) -> RegimeResult | None:
        return self.regimes.get("bandwidth")

    @property
    def count(self) -> int:
        """Pairs with any size in common."""
        return len({pair.a.text for each in self.regimes.values() for pair in each.pairs})


def in_regime(groups: Iterable[CurveGroup], regime: Regime) -> list[RegimeResult]:
    """Returns the decision on each kind in one regime; kinds without sizes of it are skipped."""
    return [found for group in groups if (found := group.regimes.get(regime))]


class MeasuredPair(NamedTuple):
    """Two curves, of which the first is compared with the second, before anything is decided."""

    a: Curve
    b: Curve
    points: dict[int, tuple[Point, Point]]
    """What is compared at each size."""
    ratios: dict[Regime, list[SizeRatios]]

    @classmethod
    def of(cls, a: Curve, b: Curve) -> MeasuredPair:
        """The sizes that both curves have."""
        found = cls(a, b, {}, {})
        for point, other in a.beside(b):
            if (size := size_ratios(point, other)).ratios:
                found.add(point, other, size)
        return found

    def add(self, a: Point, b: Point, size: SizeRatios) -> None:
        """Adds one size."""
        self.points[a.bytes] = a, b
        self.ratios.setdefault(regime_of(a.workload), []).append(size)

    def results(self, decided: Mapping[str, RegimeDecision]) -> dict[Regime, PairResult]:
        """What was decided about the pair, by regime."""
        return {
            regime: PairResult(
                self.a,
                self.b,
                decided[regime].decision,
                tuple(
                    PointPair(*self.points[size.bytes], decided[regime].sizes[size.bytes])
                    for size in self.ratios[regime]
                ),
            )
            for regime in REGIMES
            if regime in decided
        }


def curve_groups(
    labelled: Iterable[tuple[str, tuple[Curve, Curve]]],
    families: Mapping[str, Hashable] | None = None,
) -> list[CurveGroup]:
    """The pairs of curves of each kind, by its label, decided together; kinds without a size in
    common are left out. Without ``families`` each kind is one of its own."""
    measured = ((label, MeasuredPair.of(*pair)) for label, pair in labelled)
    made = grouped((label, pair) for label, pair in measured if pair.points)
    decided = decide_groups(
        [
            PairGroup([pair.ratios for pair in pairs], families[label] if families else label)
            for label, pairs in made.items()
        ]
    )
    return list(map(_curve_group, made, made.values(), decided))


def _curve_group(label: str, pairs: Sequence[MeasuredPair], found: GroupDecisions) -> CurveGroup:
    results = [pair.results(own) for pair, own in zip(pairs, found.pairs, strict=True)]
    regimes: dict[Regime, RegimeResult] = {}
    for regime in REGIMES:
        if mean := found.mean.get(regime):
            members = tuple(each[regime] for each in results if regime in each)
            at_size = dict(sorted(mean.sizes.items()))
            regimes[regime] = RegimeResult(label, regime, mean.decision, at_size, members)
    return CurveGroup(label, regimes)


def size_ratios(a: Point, b: Point, scale: float = 0.0) -> SizeRatios:
    """The ratios of two points by process, less ``scale``, a logarithm."""
    found, everything = (
        {n: ratio - scale for n, ratio in _ratios_of(logs(a, outliers), logs(b, outliers)).items()}
        for outliers in (False, True)
    )
    return SizeRatios(a.bytes, found, within(a) + within(b), shift_of(everything))


def _ratios_of(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """Ratios by process, of `logs`. If no process measured both, processes are paired in their
    order: they are independent of each other either way."""
    common = one.keys() & other.keys()
    if common:
        return {process: one[process] - other[process] for process in sorted(common)}
    pairs = zip(one.items(), other.values(), strict=False)
    return {process: a_log - b_log for (process, a_log), b_log in pairs}


def logs(point: Point, outliers: bool = False) -> dict[int, float]:
    """Logarithms of medians, by process, with processes that are ``outliers`` or without them."""
    blocks = point.measured.blocks if outliers else point.measured.used
    return {block.block: math.log(block.median) for block in blocks if block.median > 0}


def shift_of(ratios: Mapping[int, float]) -> float:
    """The size of a level that shifted among the processes and returned; outliers count, since they
    may be those before it or after it."""
    return returned_from_none([ratios[process] for process in sorted(ratios)])


def within(point: Point) -> float:
    """Variance of a process' median by its samples, the mean over processes; logarithms."""
    squares = [block.deviation**2 for block in point.measured.used if block.median > 0]
    return sum(squares) / max(len(squares), 1)
