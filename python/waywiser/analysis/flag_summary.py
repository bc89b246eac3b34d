"""The quality flags of all series, by kind: how many, how large, and which is worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from waywiser.analysis.shown import Shown
from waywiser.analysis.subject import MeasuredPoint
from waywiser.series.quality_flags import REMEDIES
from waywiser.stats.order import median
from waywiser.words import Value

UNMEASURED = 0.05
"""The size that a quality flag without one is taken to have."""


class FlagKind(Value, frozen=True):
    """What a kind of quality flag says of a profile."""

    says: str
    """Text after the number of series."""
    measure: str = ""
    """What is measured of it, up to "typically"."""
    size: Callable[[MeasuredPoint], float | None] = lambda _: None
    """How large it is, of one series, relative."""
    wrong: bool = False
    """The numbers are of something else than they say, however narrow their intervals."""
    weighs: bool = True
    """It makes numbers vague; else it only explains them."""
    of_devices: bool = False


def blocks_differ_by(point: MeasuredPoint) -> float:
    """The slowest block over the fastest, minus 1; 0 of one block."""
    medians = [block.median for block in point.estimate.blocks]
    return max(medians) / min(medians) - 1 if min(medians) > 0 else 0.0


def _above_bound(point: MeasuredPoint) -> float | None:
    share = point.line.of_bound
    return share - 1 if share is not None else None


def _most_of_blocks(name: str) -> Callable[[MeasuredPoint], float]:
    return lambda point: max(abs(getattr(block, name)) for block in point.estimate.blocks)


KINDS: dict[str, FlagKind] = {
    "failed block": FlagKind("have a block that failed, and so fewer than planned"),
    "summary only": FlagKind("are another tool's mean or median, without samples", weighs=False),
    "few samples": FlagKind("have too few samples for an interval"),
    "not converged": FlagKind(
        "did not converge", "half the interval is", lambda point: point.estimate.relative
    ),
    "blocks disagree": FlagKind(
        "differ from block to block by more than their intervals", "the difference is",
        blocks_differ_by,
    ),
    "drift": FlagKind("drifted while they were sampled", "the drift is", _most_of_blocks("drift")),
    "spread": FlagKind(
        "scatter widely", "the middle half of their samples spans", _most_of_blocks("spread")
    ),
    "outliers": FlagKind(
        "have outliers",
        "the largest deviation is",
        _most_of_blocks("largest_deviation"),
        weighs=False,
    ),
    "throttled": FlagKind("were measured on a GPU that was throttled", wrong=True, of_devices=True),
    "slow link": FlagKind(
        "were measured over a link that ran below its best", wrong=True, of_devices=True
    ),
    "above bound": FlagKind(
        "are faster than the bound", "the excess is", _above_bound, weighs=False
    ),
    "below resolution": FlagKind("are partly below the timer's resolution", weighs=False),
    "misplaced": FlagKind("had memory elsewhere than they say", wrong=True),
    "unverified": FlagKind("had memory whose place the system does not show", weighs=False),
    "void": FlagKind("lost samples to the watchdog"),
}  # fmt: skip
"""Kinds by their name in `waywiser.series.quality_flags.REMEDIES`."""


class Flagged(Value, frozen=True):
    """All series with one kind of quality flag."""

    name: str
    points: tuple[MeasuredPoint, ...]
    typical: float | None
    """Median of its sizes, relative; None if it has none."""
    most: float | None
    worst: MeasuredPoint
    family: str
    """The family of paths that has most of the series."""
    most_often: int
    """How many of the series are of that family."""

    @property
    def kind(self) -> FlagKind:
        return KINDS[self.name]

    @property
    def remedy(self) -> str:
        return REMEDIES[self.name]

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """What makes numbers wrong or vague, by series times size; then what only explains them,
        by series."""
        size = UNMEASURED if self.typical is None else self.typical
        weight = size if self.kind.weighs else 1.0
        return not self.kind.wrong, not self.kind.weighs, -len(self.points) * weight


def flagged(points: Sequence[MeasuredPoint]) -> list[Flagged]:
    """The weightiest first."""
    found: dict[str, list[MeasuredPoint]] = {}
    for point in points:
        for flag in point.estimate.quality_flags:
            found.setdefault(flag.kind, []).append(point)
    return sorted((_flagged(*each) for each in found.items()), key=lambda each: each.rank)


def _flagged(name: str, members: Sequence[MeasuredPoint]) -> Flagged:
    sized = [(size, point) for point in members if (size := KINDS[name].size(point)) is not None]
    most, worst = max(sized, key=lambda each: each[0], default=(None, members[0]))
    typical = median([size for size, _ in sized]) if sized else None
    ((family, times),) = Counter(map(family_of, members)).most_common(1)
    return Flagged(name, tuple(members), typical, most, worst, family, times)


def family_of(point: MeasuredPoint) -> str:
    """The family of the paths that its curve belongs to."""
    return Shown(point.line.curve, (point.line,)).family
