"""Two curves in relation, size by size: where one takes longer than the other, and how much.

At each size that both have, medians are compared as `waywiser.stats.equivalence` does. The scatter
of blocks is pooled over curves that ought to scatter alike, and over near sizes. A size counts as
different where all of these hold:

- the 95 % interval of the ratio lies wholly beyond the margin;
- the difference is significant with p <= 1 % by that scatter (Student), among all sizes of the
  pair that tell of the same (Holm, 1979): small, medium and large sizes are answered apart;
- of single blocks, whose scatter nobody knows, the difference is more than `BY_FAR`;
- a near size differs to the same side, where there are any: a curve is continuous and a chance is
  not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Literal

from waywiser.analysis.kinds import is_quiet
from waywiser.analysis.subject import Curve, Point
from waywiser.stats.between import Between
from waywiser.stats.equivalence import MARGIN, Comparison, compare, scatter_of
from waywiser.stats.multiplicity import holm
from waywiser.words import Value, format_bytes

ALPHA = 0.01
"""Of all sizes of a pair together that tell of the same."""

NEAR = 4
"""Sizes further apart than by this factor are no neighbours, neither in scatter nor in what they
tell: of a path that ought to be like others only a few are measured, and 1 MiB says nothing of the
rate that 64 MiB tells."""

LEAST_SCATTER = 0.0005
"""Blocks scatter by no less: two that agree to more digits do so by chance."""

RATE_BYTES = 16 * 2**20
"""From here on a size tells of a link's rate: over PCIe 5 beginning takes then under 1 %."""

START_BYTES = 64 * 2**10
"""Below a size tells of what it costs to begin; between the two, of both."""

BY_FAR = {"large": MARGIN, "medium": 0.05, "small": 0.10, "noisy": 0.25}
"""A single block says nothing of how far another one would be. By less than this a difference is
not told there: of what copy engines and kernels move between page-locked memories, blocks of an
H200 were seen to scatter by 0.3 % at large sizes, 2 % at medium and 5 % at small ones; what goes
through the host's own memory by tens of percent."""

Verdict = Literal["same", "different", "unclear"]


class AtSize(Value, frozen=True):
    """Both curves at one size."""

    a: Point
    b: Point
    comparison: Comparison
    counts: bool
    """As different, beyond chance."""

    @property
    def bytes(self) -> int:
        return self.a.bytes

    @property
    def effect(self) -> float:
        """By how much the first takes longer, relative to the second."""
        return self.comparison.effect


class Related(Value, frozen=True):
    """Two curves."""

    a: Curve
    b: Curve
    sizes: tuple[AtSize, ...]
    """Ascending; those that both have."""

    @property
    def different(self) -> tuple[AtSize, ...]:
        return tuple(each for each in self.sizes if each.counts)

    @property
    def small(self) -> Related:
        """The sizes that tell of what it costs to begin."""
        return self._only(lambda each: part_of(each.bytes) == "small")

    @property
    def medium(self) -> Related:
        return self._only(lambda each: part_of(each.bytes) == "medium")

    @property
    def rates(self) -> Related:
        """The sizes that tell of a rate."""
        return self._only(lambda each: part_of(each.bytes) == "large")

    def _only(self, keep: Callable[[AtSize], bool]) -> Related:
        return Related(self.a, self.b, tuple(filter(keep, self.sizes)))

    @property
    def worst(self) -> AtSize | None:
        """The size with the largest difference that counts."""
        return max(self.different, key=lambda each: abs(_log(each)), default=None)

    @property
    def largest(self) -> AtSize | None:
        """The largest size that both have."""
        return self.sizes[-1] if self.sizes else None

    @property
    def verdict(self) -> Verdict:
        """Different at some size; the same where most sizes are equal within the margin and none
        differs; else unclear."""
        if self.different:
            return "different"
        equal = sum(each.comparison.verdict == "equal" for each in self.sizes)
        return "same" if self.sizes and 2 * equal > len(self.sizes) else "unclear"

    @property
    def ranges(self) -> str:
        """The sizes that differ, in words: ``64 KiB to 1 MiB, 1 GiB``."""
        runs: list[list[int]] = []
        for n, each in enumerate(self.sizes):
            if each.counts and n and self.sizes[n - 1].counts:
                runs[-1][1] = each.bytes
            elif each.counts:
                runs.append([each.bytes, each.bytes])
        return ", ".join(
            format_bytes(low) if low == high else f"{format_bytes(low)} to {format_bytes(high)}"
            for low, high in runs
        )


class Alike:
    """Curves whose blocks ought to scatter alike. How much they do is worked out once a size, since
    each pair of them asks for it again."""

    def __init__(self, curves: Iterable[Curve]) -> None:
        self._logs: dict[int, list[list[float]]] = {}
        for curve in {curve.text: curve for curve in curves}.values():
            for point in curve.points:
                self._logs.setdefault(point.bytes, []).append(logs(point))
        self._scatter: dict[int, Between | None] = {}

    def scatter(self, size: int) -> Between | None:
        """Of blocks, at this size in bytes and near ones."""
        if size not in self._scatter:
            near = (each for other, each in self._logs.items() if is_near(other, size))
            self._scatter[size] = scatter_of(chain.from_iterable(near), LEAST_SCATTER)
        return self._scatter[size]


def relate(a: Curve, b: Curve, margin: float = MARGIN, alike: Alike | None = None) -> Related:
    """The times of ``a`` in relation to those of ``b`` at the sizes that both have.

    ``alike`` are the curves whose blocks ought to scatter alike, these two among them; without it
    these two alone.
    """
    alike = alike or Alike((a, b))
    pairs = [(one, other) for one in a.points if (other := b.at(one.bytes)) is not None]
    pairs = [(one, other) for one, other in pairs if one.seconds > 0 and other.seconds > 0]
    bytes = [one.bytes for one, _ in pairs]
    found = [
        compare(one.estimate, other.estimate, margin, alike.scatter(one.bytes))
        for one, other in pairs
    ]
    significant = _significant(bytes, found)
    quiet = all(is_quiet(t.path) for curve in (a, b) for t in curve.workload.transfers)
    signs = [
        _side(each) if sure and _is_far_enough(each, quiet, size) else 0
        for each, sure, size in zip(found, significant, bytes, strict=True)
    ]
    sizes = tuple(
        AtSize(one, other, comparison, bool(signs[n]) and _is_backed(signs, bytes, n))
        for n, ((one, other), comparison) in enumerate(zip(pairs, found, strict=True))
    )
    return Related(a, b, sizes)


def is_near(one: int, other: int) -> bool:
    """Whether two sizes in bytes are neighbours."""
    return max(one, other) <= NEAR * min(one, other)


def logs(point: Point) -> list[float]:
    """Logarithms of the medians of a point's blocks."""
    return [math.log(block.median) for block in point.estimate.blocks if block.median > 0]


def _significant(bytes: Sequence[int], found: Sequence[Comparison]) -> list[bool]:
    """Those without a test (single blocks) rest on their intervals alone."""
    sure = [True] * len(found)
    families: dict[str, dict[int, float]] = {}
    for n, (size, each) in enumerate(zip(bytes, found, strict=True)):
        if each.p_differ is not None:
            families.setdefault(part_of(size), {})[n] = each.p_differ
    for family in families.values():
        for n, p in zip(family, holm(list(family.values())), strict=True):
            sure[n] = p <= ALPHA
    return sure


def part_of(size: int) -> str:
    """What a size in bytes tells of: ``small`` of beginning, ``large`` of a rate, ``medium`` of
    both."""
    if size < START_BYTES:
        return "small"
    return "medium" if size < RATE_BYTES else "large"


def _is_far_enough(comparison: Comparison, quiet: bool, size: int) -> bool:
    """Of single blocks."""
    if comparison.how != "within blocks":
        return True
    least = BY_FAR[part_of(size) if quiet else "noisy"]
    return abs(math.log(comparison.ratio)) > math.log1p(least)


def _side(comparison: Comparison) -> int:
    return {"more": 1, "less": -1}.get(comparison.verdict, 0)


def _is_backed(signs: Sequence[int], bytes: Sequence[int], at: int) -> bool:
    beside = [
        signs[n] for n in (at - 1, at + 1) if 0 <= n < len(signs) and is_near(bytes[n], bytes[at])
    ]
    return not beside or signs[at] in beside


def _log(each: AtSize) -> float:
    return math.log(each.comparison.ratio)
