"""The doubts of all series, by kind: how many, how large, and which is worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from waywiser.analysis.fitted import estimate_of
from waywiser.analysis.shown import Shown
from waywiser.analysis.subject import Point
from waywiser.analysis.uncertainty import blocks_differ_by
from waywiser.series.doubts import REMEDIES
from waywiser.stats.order import median
from waywiser.words import Value

Measure = Callable[[Point], float | None]


def _no_measure(point: Point) -> float | None:
    return None


class Kind(Value, frozen=True):
    """What a kind of doubt says of a profile."""

    says: str
    """After the number of series."""
    measure: str = ""
    """What is measured of it, up to "typically"."""
    size: Measure = _no_measure
    """How large it is, of one series, relative."""
    wrong: bool = False
    """The numbers are of something else than they say, however narrow their intervals."""
    weighs: bool = True
    """It makes numbers vague; else it only explains them."""
    of_devices: bool = False


def _above_bound(point: Point) -> float | None:
    share = point.line.of_bound
    return share - 1 if share is not None else None


def _most_of_blocks(name: str) -> Measure:
    return lambda point: max(abs(getattr(block, name)) for block in estimate_of(point).blocks)


KINDS: dict[str, Kind] = {
    "failed block": Kind("have a block that failed, and so fewer than planned"),
    "summary only": Kind("are another tool's mean or median, without samples", weighs=False),
    "few samples": Kind("have too few samples for an interval"),
    "not converged": Kind(
        "did not converge", "half the interval is", lambda point: estimate_of(point).relative
    ),
    "blocks disagree": Kind(
        "differ from block to block by more than their intervals", "the difference is",
        blocks_differ_by,
    ),
    "drift": Kind("drifted while they were sampled", "the drift is", _most_of_blocks("drift")),
    "spread": Kind(
        "scatter widely", "the middle half of their samples spans", _most_of_blocks("spread")
    ),
    "outliers": Kind(
        "have samples far out", "the farthest is off by", _most_of_blocks("farthest"), weighs=False
    ),
    "throttled": Kind("were measured on a GPU that was throttled", wrong=True, of_devices=True),
    "slow link": Kind(
        "were measured over a link that ran below its best", wrong=True, of_devices=True
    ),
    "above bound": Kind(
        "are faster than the bound", "the excess is", _above_bound, weighs=False
    ),
    "below resolution": Kind("are partly below the timer's resolution", weighs=False),
    "misplaced": Kind("had memory elsewhere than they say", wrong=True),
    "unverified": Kind("had memory whose place the system does not tell", weighs=False),
    "void": Kind("lost samples to the watchdog"),
}  # fmt: skip
"""By the kind's name in `waywiser.series.doubts.REMEDIES`."""


class Doubted(Value, frozen=True):
    """All series with one kind of doubt."""

    kind: str
    points: tuple[Point, ...]
    typical: float | None
    """Median of its sizes, relative; None where it has none."""
    most: float | None
    worst: Point
    family: str
    """Of paths, that has most of the series."""
    most_often: int
    """How many of the series are of that family."""
    remedy: str

    @property
    def weight(self) -> float:
        """How much it matters: series times size, next to nothing where it only explains."""
        size = self.typical if self.typical is not None else UNMEASURED
        return len(self.points) * (size if KINDS[self.kind].weighs else EXPLAINS)


UNMEASURED = 0.05
"""What a doubt without a size is taken to be worth."""
EXPLAINS = 0.001
"""What one is worth that leaves its number as certain as it was."""


def by_kind(points: Sequence[Point]) -> list[Doubted]:
    """The weightiest first."""
    found: dict[str, list[Point]] = {}
    for point in points:
        for doubt in estimate_of(point).doubts:
            found.setdefault(doubt.kind, []).append(point)
    told = [_doubted(kind, members) for kind, members in found.items()]
    return sorted(told, key=lambda each: (not KINDS[each.kind].wrong, -each.weight))


def _doubted(kind: str, members: Sequence[Point]) -> Doubted:
    sized = [(size, point) for point in members if (size := KINDS[kind].size(point)) is not None]
    most, worst = max(sized, key=lambda each: each[0], default=(None, members[0]))
    typical = median([size for size, _ in sized]) if sized else None
    families = Counter(Shown(point.line.curve, (point.line,)).family for point in members)
    ((family, times),) = families.most_common(1)
    return Doubted(kind, tuple(members), typical, most, worst, family, times, REMEDIES[kind])
