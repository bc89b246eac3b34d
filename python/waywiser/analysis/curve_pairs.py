"""Pairs of curves that ask the same question, grouped by kind of transfer, with their decisions.

What the mean over the pairs of a kind shows is a property of the kind. What few of them show is
said about those few. `waywiser.stats.pairwise` decides; this file makes its input from curves and
gives its results to answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from waywiser.analysis.answer import Cell, Device, Exhibit, Mark, Table
from waywiser.analysis.regimes import RATE_BYTES, START_BYTES, Regime, regime_of
from waywiser.analysis.subject import Curve, Point, Subject
from waywiser.analysis.texts import hidden_loss, named, percent, size_ranges
from waywiser.series.block import BlockEstimate
from waywiser.stats.decision import THRESHOLD, Decision, Verdict
from waywiser.stats.order import Interval
from waywiser.stats.pairwise import (
    GroupDecisions,
    PairGroup,
    RegimeDecision,
    SizeRatios,
    decide_groups,
)
from waywiser.words import Place, Value, format_bytes

REGIMES: tuple[Regime, ...] = ("bandwidth", "medium", "latency")

MARKS: dict[Verdict, Mark] = {
    "different": "yes", "equivalent": "no", "no change found": "unclear",
}  # fmt: skip

_NORMAL = 1.96
_MEDIAN = 1.2533
"""Deviation of the median of normal samples, over that of their mean."""


class CurvePair(NamedTuple):
    """Two curves of which the first is held against the second."""

    a: Curve
    b: Curve


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
    """Of the median over sizes."""
    sizes: tuple[PointPair, ...]
    """Ascending."""

    @property
    def different(self) -> tuple[PointPair, ...]:
        return tuple(each for each in self.sizes if each.decision.verdict == "different")

    @property
    def verdict(self) -> Verdict:
        """Different as a whole or at some size."""
        return "different" if self.different else self.decision.verdict

    @property
    def is_whole(self) -> bool:
        """Whether the regime differs, and not some sizes of it."""
        most = not self.different or 2 * len(self.different) > len(self.sizes)
        return self.decision.verdict == "different" and most

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
    """Of the mean over the pairs."""
    at_size: dict[int, Decision]
    """The same at each size."""
    pairs: tuple[PairResult, ...]

    @property
    def differing(self) -> tuple[PairResult, ...]:
        return tuple(pair for pair in self.pairs if pair.verdict == "different")

    @property
    def different_sizes(self) -> list[int]:
        """At which the pairs differ on average."""
        return [size for size, each in self.at_size.items() if each.verdict == "different"]

    @property
    def is_mixed(self) -> bool:
        """Whether some pairs differ to one side and some to the other."""
        return len({pair.evidence[0].slower for pair in self.differing}) > 1

    @property
    def is_of_kind(self) -> bool:
        """Whether a difference is one of the kind and not of few pairs: what one pair shows at
        sizes that no other has is one of the kind."""
        if self.is_mixed:
            return False
        regime = sum(pair.decision.verdict == "different" for pair in self.pairs)
        have = Counter(each.bytes for pair in self.pairs for each in pair.sizes)
        differ = Counter(each.bytes for pair in self.pairs for each in pair.different)
        few = 0 < 2 * regime <= len(self.pairs) or any(
            have[size] > 1 and 2 * differ[size] <= have[size] for size in differ
        )
        most = 2 * regime > len(self.pairs) or any(2 * differ[size] > have[size] for size in differ)
        on_average = self.decision.verdict == "different" or bool(self.different_sizes)
        return (most or on_average) and not (few and 2 * len(self.differing) <= len(self.pairs))

    @property
    def is_whole(self) -> bool:
        """Whether the regime differs on average, and not some sizes of it."""
        sizes = self.different_sizes
        most = not sizes or 2 * len(sizes) > len(self.at_size)
        return self.decision.verdict == "different" and most

    @property
    def verdict(self) -> Verdict:
        if self.is_of_kind or self.differing:
            return "different"
        return self.decision.verdict

    @property
    def evidence(self) -> tuple[Decision, PointPair]:
        """The decision to report and the middle pair at the size that shows it: of the kind, or of
        the pair that differs most."""
        if not self.is_of_kind and self.differing:
            return max(
                (pair.evidence for pair in self.differing),
                key=lambda each: abs(math.log(each[0].ratio)),
            )
        if not self.is_whole and self.different_sizes:
            size = max(self.different_sizes, key=lambda n: abs(math.log(self.at_size[n].ratio)))
            points = [
                (each.decision, each)
                for pair in self.pairs
                for each in pair.sizes
                if each.bytes == size
            ]
            return self.at_size[size], self._middle(points)[1]
        if self.decision.verdict != "different" and self.differing:
            return self._middle([pair.evidence for pair in self.differing])
        points = [(pair.decision, nearest(self.decision, pair.sizes)) for pair in self.pairs]
        return self.decision, self._middle(points)[1]

    @staticmethod
    def _middle(found: Sequence[tuple[Decision, PointPair]]) -> tuple[Decision, PointPair]:
        return sorted(found, key=lambda each: each[0].ratio)[len(found) // 2]

    @property
    def sizes_text(self) -> str:
        """At which sizes the kind, or any pair of it, differs; empty if nowhere by itself."""
        sizes = set(self.different_sizes)
        if not self.is_of_kind:
            sizes = {each.bytes for pair in self.differing for each in pair.different}
        return size_ranges(sorted(sizes), sorted(self.at_size))


class CurveGroup(Value, frozen=True):
    """All pairs of one kind of transfer."""

    label: str
    regimes: dict[Regime, RegimeResult]

    def of(self, regime: Regime) -> RegimeResult | None:
        return self.regimes.get(regime)

    @property
    def bandwidth(self) -> RegimeResult | None:
        return self.regimes.get("bandwidth")

    @property
    def count(self) -> int:
        """Pairs with any size in common."""
        texts = {pair.a.text for each in self.regimes.values() for pair in each.pairs}
        return len(texts)


class PairQuestion(NamedTuple):
    """Pairs of one kind before they are decided."""

    label: str
    family: Hashable
    """Kinds whose processes scatter alike."""
    pairs: Sequence[CurvePair]


def decided(asked: Iterable[PairQuestion]) -> list[CurveGroup]:
    """All kinds of one question, decided together; those without a size in common are left out."""
    made = []
    for each in asked:
        found = [(pair, _sizes(pair)) for pair in each.pairs]
        found = [(pair, sizes) for pair, sizes in found if sizes]
        if found:
            made.append((each, [pair for pair, _ in found], [sizes for _, sizes in found]))
    groups = [
        PairGroup(
            [{regime: [size for _, _, size in found] for regime, found in each.items()}
             for each in sizes],
            asked.family,
        )
        for asked, _, sizes in made
    ]  # fmt: skip
    return [
        _group(asked.label, pairs, sizes, decisions)
        for (asked, pairs, sizes), decisions in zip(made, decide_groups(groups), strict=True)
    ]


_Sizes = dict[Regime, list[tuple[Point, Point, SizeRatios]]]


def _sizes(pair: CurvePair) -> _Sizes:
    found: _Sizes = {}
    beside = {point.bytes: point for point in pair.b.points}
    for point in pair.a.points:
        other = beside.get(point.bytes)
        if other is not None and (ratios := ratios_of(point, other)):
            size = SizeRatios(point.bytes, ratios, within(point) + within(other))
            found.setdefault(regime_of(point.workload), []).append((point, other, size))
    return found


def ratios_of(a: Point, b: Point) -> dict[int, float]:
    """By process. If no process measured both, processes are paired in their order: they are
    independent of each other either way."""
    one, other = logs(a), logs(b)
    common = one.keys() & other.keys()
    if common:
        return {process: one[process] - other[process] for process in sorted(common)}
    pairs = zip(one.items(), other.values(), strict=False)
    return {process: value - beside for (process, value), beside in pairs}


def logs(point: Point) -> dict[int, float]:
    """By process: logarithms of medians."""
    return {
        block.block: math.log(block.median) for block in point.estimate.blocks if block.median > 0
    }


def within(point: Point) -> float:
    """Variance of a process' median by its samples, the mean over processes; logarithms."""
    squares = [_deviation(block) ** 2 for block in point.estimate.blocks if block.median > 0]
    return sum(squares) / max(len(squares), 1)


def _deviation(block: BlockEstimate) -> float:
    if block.interval is None:
        return _MEDIAN * block.spread / math.sqrt(max(block.count, 1))
    return block.interval.width / 2 / _NORMAL / block.median


def _group(
    label: str, pairs: Sequence[CurvePair], sizes: Sequence[_Sizes], decisions: GroupDecisions
) -> CurveGroup:
    regimes: dict[Regime, RegimeResult] = {}
    for regime in REGIMES:
        mean = decisions.mean.get(regime)
        if mean is None:
            continue
        results = tuple(
            result_of(pair, [(a, b) for a, b, _ in found[regime]], own[regime])
            for pair, found, own in zip(pairs, sizes, decisions.pairs, strict=True)
            if regime in own
        )
        at_size = dict(sorted(mean.sizes.items()))
        regimes[regime] = RegimeResult(label, regime, mean.decision, at_size, results)
    return CurveGroup(label, regimes)


def result_of(
    pair: CurvePair, points: Sequence[tuple[Point, Point]], found: RegimeDecision
) -> PairResult:
    sizes = tuple(PointPair(a, b, found.sizes[a.bytes]) for a, b in points)
    return PairResult(pair.a, pair.b, found.decision, sizes)


# What answers say of them.


def longer(decision: Decision) -> tuple[float, Interval | None]:
    """By how much the first takes longer than the second (below 0: less), relative to it."""
    span = decision.interval
    interval = Interval(1 / span.high - 1, 1 / span.low - 1) if span and span.low > 0 else None
    return 1 / decision.ratio - 1, interval


def slower_by(decision: Decision) -> tuple[float, Interval | None]:
    """By how much the slower of the two takes longer than the faster."""
    span = decision.interval
    if decision.slower:
        return longer(decision)
    return decision.ratio - 1, Interval(span.low - 1, span.high - 1) if span else None


def signed(decision: Decision) -> str:
    """``+8.1 %``: the first takes so much longer; ``−3.5 %``: so much less."""
    effect = longer(decision)[0]
    return f"{'+' if effect >= 0 else '−'}{percent(effect)}"


def devices(subject: Subject, pairs: Sequence[PairResult]) -> tuple[Device, ...]:
    """The GPUs of all pairs, else the nodes."""
    places: dict[str, Place] = {}
    for pair in pairs:
        for curve in (pair.a, pair.b):
            for transfer in curve.workload.transfers:
                places |= {str(place): place for place in transfer.path.places}
    gpus = [place for place in places.values() if place.kind == "gpu"]
    chosen = gpus or list(places.values())
    return tuple(subject.device(p) for p in sorted(chosen, key=lambda p: (p.kind, p.index)))


def exhibits(decision: Decision, at: PointPair, what: str) -> tuple[Exhibit, ...]:
    """Both bandwidths of a size (times if they say nothing there), and the ratio that was
    decided about."""
    first, second = exhibit(at.a), exhibit(at.b)
    return first, second, Exhibit(first.series, what, decision.ratio, "ratio", decision.interval)


def exhibit(point: Point) -> Exhibit:
    """The bandwidth of a point that shows one, else its time."""
    estimate = point.estimate
    if point.bytes >= RATE_BYTES and estimate.rate is not None:
        rate = estimate.rate
        return Exhibit(point.line.workload, "rate", rate.value, "B/s", rate.interval)
    return Exhibit(point.line.workload, "time", estimate.median, "s", estimate.interval)


def cell(result: RegimeResult | None, text: str = "") -> Cell:
    """The mark of a kind in one regime. ``text`` states the effect of a kind that differs; of
    others the cell says how large a difference could have been missed."""
    if result is None:
        return Cell("—")
    series = result.pairs[0].a.text
    mark = MARKS[result.verdict]
    if result.verdict == "different":
        few = "" if result.is_of_kind else f" ({len(result.differing)} of {len(result.pairs)})"
        return Cell(f"{text}{few}", mark, result.evidence[1].a.line.curve)
    if result.verdict == "equivalent":
        return Cell("", mark, series)
    return Cell(hidden_loss(result.decision), mark, series)


def where(result: RegimeResult) -> str:
    """`` at 32 MiB to 64 MiB``: of a difference at some sizes alone; empty for a whole regime."""
    if result.evidence[0] is result.decision or not result.sizes_text:
        return ""
    return f" at {result.sizes_text}"


def at_sizes(result: RegimeResult) -> str:
    """`` at 64 MiB``: the sizes that differ, or of a whole regime the size that is shown."""
    return where(result) or f" at {format_bytes(result.evidence[1].bytes)}"


Wording = Callable[[Decision], str]
"""An effect, as the question writes it."""

COLUMNS = ("transfer", "bandwidth", "medium sizes", "latency", "pairs")


def table_of(title: str, groups: Sequence[CurveGroup], effect: Wording, marks: str) -> Table:
    """One row for each kind. ``marks`` explains the effects."""
    return Table(
        title=title,
        columns=COLUMNS,
        rows=tuple(
            (
                Cell(group.label),
                *(cell(found, _effect(found, effect)) for regime in REGIMES
                  for found in (group.of(regime),)),
                Cell(str(group.count)),
            )
            for group in groups
        ),
        caption=f"✓ differs by more than {THRESHOLD:.0%}, × equivalent within it, ? not determined "
        f"(< n %: a larger difference would have been found); {marks}; bandwidth from "
        f"{format_bytes(RATE_BYTES)} on, latency below {format_bytes(START_BYTES)}.",
    )  # fmt: skip


def _effect(result: RegimeResult | None, effect: Wording) -> str:
    return f"{effect(result.evidence[0])}{where(result)}" if result else ""


def not_determined(groups: Iterable[CurveGroup]) -> list[str]:
    """Kinds whose bandwidth could differ unseen, by how much."""
    found = [each for group in groups if (each := group.bandwidth)]
    unknown = [r.label for r in found if r.verdict == "no change found"
               and r.decision.detectable is None]  # fmt: skip
    hidden = [f"{r.label} {hidden_loss(r.decision)}" for r in found
              if r.verdict == "no change found" and r.decision.detectable is not None]  # fmt: skip
    return undecided_lines(unknown, hidden, "without equivalent paths")


def undecided_lines(unknown: Sequence[str], hidden: Sequence[str], lacking: str) -> list[str]:
    """A line for what has no known noise, which says what is ``lacking``, and one for what could
    hide a difference. Without names there is no line."""
    lines = []
    if unknown:
        lines.append(f"measured in one process, {lacking}: {named(unknown)}")
    if hidden:
        lines.append(f"a difference of this size could have been missed: {named(hidden)}")
    return lines
