"""Two curves in relation, size by size: where one takes longer than the other, and how much.

At each size that both have, medians are compared as `waywiser.stats.equivalence` does, with the
scatter of blocks pooled over both curves and the neighbouring sizes. A size counts as different
where all of these hold:

- the 95 % interval of the ratio lies wholly beyond the margin;
- the difference is significant with p <= 1 % among all sizes of the pair (Holm, 1979);
- a neighbouring size differs to the same side, where there are neighbours: a curve is continuous
  and a chance is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from waywiser.analysis.subject import Curve, Point
from waywiser.stats.between import Between, pooled
from waywiser.stats.equivalence import MARGIN, Comparison, compare
from waywiser.stats.multiplicity import holm
from waywiser.words import Value, format_bytes

ALPHA = 0.01
"""Of all sizes of a pair together."""

NEIGHBOURS = 2
"""Sizes to either side whose scatter is taken to be the same."""

LEAST_SCATTER = 0.0005
"""Blocks scatter by no less: two that agree to more digits do so by chance."""

RATE_BYTES = 16 * 2**20
"""From here on a size tells of a link's rate: over PCIe 5 beginning is then under 1 % of the time."""

START_BYTES = 64 * 2**10
"""Below a size tells of what it costs to begin; between the two, of both."""

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
        return self._only(lambda each: each.bytes < START_BYTES)

    @property
    def medium(self) -> Related:
        return self._only(lambda each: START_BYTES <= each.bytes < RATE_BYTES)

    @property
    def rates(self) -> Related:
        """The sizes that tell of a rate."""
        return self._only(lambda each: each.bytes >= RATE_BYTES)

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


def relate(a: Curve, b: Curve, margin: float = MARGIN) -> Related:
    """The times of ``a`` in relation to those of ``b`` at the sizes that both have."""
    pairs = [(one, other) for one in a.points if (other := b.at(one.bytes)) is not None]
    pairs = [(one, other) for one, other in pairs if one.seconds > 0 and other.seconds > 0]
    found = [
        compare(one.estimate, other.estimate, margin, _scatter(pairs, n))
        for n, (one, other) in enumerate(pairs)
    ]
    significant = _significant(found)
    signs = [_side(each) if sure else 0 for each, sure in zip(found, significant, strict=True)]
    sizes = tuple(
        AtSize(one, other, comparison, bool(signs[n]) and _is_backed(signs, n))
        for n, ((one, other), comparison) in enumerate(zip(pairs, found, strict=True))
    )
    return Related(a, b, sizes)


def _scatter(pairs: Sequence[tuple[Point, Point]], at: int) -> Between | None:
    near = pairs[max(0, at - NEIGHBOURS) : at + NEIGHBOURS + 1]
    return pooled((logs(point) for pair in near for point in pair), LEAST_SCATTER)


def logs(point: Point) -> list[float]:
    """Logarithms of the medians of a point's blocks."""
    return [math.log(block.median) for block in point.estimate.blocks if block.median > 0]


def _significant(found: Sequence[Comparison]) -> list[bool]:
    """Those without a test (single blocks) rest on their intervals alone."""
    tested = [n for n, each in enumerate(found) if each.p_differ is not None]
    adjusted = holm([p for n in tested if (p := found[n].p_differ) is not None])
    sure = [True] * len(found)
    for n, p in zip(tested, adjusted, strict=True):
        sure[n] = p <= ALPHA
    return sure


def _side(comparison: Comparison) -> int:
    return {"more": 1, "less": -1}.get(comparison.verdict, 0)


def _is_backed(signs: Sequence[int], at: int) -> bool:
    beside = [signs[n] for n in (at - 1, at + 1) if 0 <= n < len(signs)]
    return not beside or signs[at] in beside


def _log(each: AtSize) -> float:
    return math.log(each.comparison.ratio)
