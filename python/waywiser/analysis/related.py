"""Two curves in relation, size by size: where one takes longer than the other, and how much.

At each size that both have, medians are compared as `waywiser.stats.equivalence` does. The scatter
of blocks is that of the pair at near sizes, with what curves that ought to scatter alike lend; what
a block does to all sizes of a curve counts once a block, not once a size
(`waywiser.stats.clustered`). A size counts as different where all of these hold:

- the 95 % interval of the ratio lies wholly beyond the margin;
- the difference is significant by that scatter with p <= 1 % among all sizes of the pair: as many
  chances as it has parts, small, medium and large sizes, and within each as `Clustered` has it;
- of single blocks, whose scatter nobody knows, the difference is more than `BY_FAR`;
- a near size differs to the same side, where there are any: a curve is continuous and a chance is
  not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from waywiser.analysis.kinds import is_quiet
from waywiser.analysis.subject import Curve, Point
from waywiser.stats.clustered import Apart, Clustered, Medians, apart, clustered
from waywiser.stats.equivalence import MARGIN, Comparison, compare
from waywiser.topology.traits import Traits
from waywiser.words import Value, format_bytes

ALPHA = 0.01
"""Of all sizes of a pair together."""

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
    """Curves whose blocks ought to scatter alike. How much each does is worked out once a size,
    since each pair of them asks for it again."""

    def __init__(self, curves: Iterable[Curve]) -> None:
        self._medians = {curve.text: medians(curve) for curve in curves}
        self._apart: dict[int, dict[str, Apart]] = {}

    def scatter(self, size: int, a: Curve, b: Curve) -> Clustered | None:
        """Of blocks of two of the curves, at this size in bytes and near ones that both have."""
        if size not in self._apart:
            self._apart[size] = {
                text: apart([_near(curve, size)], LEAST_SCATTER)
                for text, curve in self._medians.items()
            }
        pair = [_near(self._medians[curve.text], size) for curve in (a, b)]
        both = pair[0].keys() & pair[1].keys()
        found = apart([{at: curve[at] for at in both} for curve in pair], LEAST_SCATTER)
        lending = self._apart[size].items()
        others = [each for text, each in lending if text not in (a.text, b.text)]
        return clustered(found, others)


def relate(
    a: Curve,
    b: Curve,
    margin: float = MARGIN,
    alike: Alike | None = None,
    traits: Traits | None = None,
) -> Related:
    """The times of ``a`` in relation to those of ``b`` at the sizes that both have.

    ``alike`` are the curves whose blocks ought to scatter alike, these two among them; without it
    these two alone.
    """
    alike = alike or Alike((a, b))
    pairs = [(one, other) for one in a.points if (other := b.at(one.bytes)) is not None]
    pairs = [(one, other) for one, other in pairs if one.seconds > 0 and other.seconds > 0]
    bytes = [one.bytes for one, _ in pairs]
    among = Counter(map(part_of, bytes))
    found = []
    for size, (one, other) in zip(bytes, pairs, strict=True):
        scatter = alike.scatter(size, a, b)
        found.append(compare(one.estimate, other.estimate, margin, scatter, among[part_of(size)]))
    known = traits or Traits()
    quiet = all(is_quiet(t.path, known) for curve in (a, b) for t in curve.workload.transfers)
    signs = [
        _side(each)
        if _is_significant(each, len(among)) and _is_far_enough(each, quiet, size)
        else 0
        for each, size in zip(found, bytes, strict=True)
    ]
    sizes = tuple(
        AtSize(one, other, comparison, bool(signs[n]) and _is_backed(signs, bytes, n))
        for n, ((one, other), comparison) in enumerate(zip(pairs, found, strict=True))
    )
    return Related(a, b, sizes)


def is_near(one: int, other: int) -> bool:
    """Whether two sizes in bytes are neighbours."""
    return max(one, other) <= NEAR * min(one, other)


def medians(curve: Curve) -> dict[int, dict[int, float]]:
    """By size and block: logarithms of medians."""
    return {
        point.bytes: {
            block.block: math.log(block.median)
            for block in point.estimate.blocks
            if block.median > 0
        }
        for point in curve.points
    }


def _near(curve: Medians, size: int) -> Medians:
    return {other: blocks for other, blocks in curve.items() if is_near(other, size)}


def logs(point: Point) -> list[float]:
    """Logarithms of the medians of a point's blocks."""
    return [math.log(block.median) for block in point.estimate.blocks if block.median > 0]


def part_of(size: int) -> str:
    """What a size in bytes tells of: ``small`` of beginning, ``large`` of a rate, ``medium`` of
    both."""
    if size < START_BYTES:
        return "small"
    return "medium" if size < RATE_BYTES else "large"


def _is_significant(comparison: Comparison, parts: int) -> bool:
    """Those without a test (single blocks) rest on their intervals alone."""
    return comparison.p_differ is None or comparison.p_differ * parts <= ALPHA


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
