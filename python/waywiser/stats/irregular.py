"""Dips and drops of a curve: sizes that take longer than the sizes around them let expect.

**Dip.** A window of one to `WIDEST` sizes exceeds what its neighbours let expect
(`waywiser.stats.expectation`): the slowest interpolation, and also what either side alone lets
expect, so that the last size before a faster protocol is none, nor the first one after a cache.
Wider ones are seen where rates have saturated: a run of sizes whose rates lie below a smaller *and*
a larger size's.

**Drop.** From some size to the end, all rates lie below that of a smaller size.

**Test.** The mean excess over the sizes in question, in logarithms of seconds, over its standard
error. That is made of the scatter between blocks (`waywiser.stats.scatter`) and of the *wiggle* of
the curve: the robust scale of the excesses of all its single sizes beyond what noise explains,
since a curve that is rough everywhere has no dips. One-sided by Student's t with the degrees of
freedom of Satterthwaite (Biometrics Bulletin 2, 1946), corrected for all sizes of the profile
(Bonferroni) at `LEVEL`. The excess is at least `THRESHOLD`, and is seen in every block (of
`INTERVAL_SAMPLES` and more, in five of six).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from waywiser.stats.decision import THRESHOLD
from waywiser.stats.distributions import student_quantile, student_tail
from waywiser.stats.expectation import Expected, expected
from waywiser.stats.order import CONFIDENCE, INTERVAL_SAMPLES, NORMAL_SCALE, Interval
from waywiser.stats.scatter import LEAST_SIZES, Array, CurveBlocks, CurveNoise, prepared
from waywiser.words import Value

LEVEL = 0.01
"""Share of profiles without irregularity in which noise is taken for a dip."""
WIDEST = 4
"""Sizes of a window: from five on the neighbours say nothing of its middle."""
SEEN = THRESHOLD / 3
"""An excess by which a block agrees."""
ENOUGH_AGREE = 5 / 6
SELECTED = 1.5
"""Standard errors by which the best of several sizes looks better than it is; taken off where a
size is compared with the best."""
_EFFICIENCY = 0.37
"""Efficiency of the median absolute deviation as an estimate of scale, for normal noise."""

Kind = Literal["dip", "drop"]


class Irregularity(Value, frozen=True):
    kind: Kind
    low: int
    """Bytes: the first size of it."""
    high: int
    """The last; of a drop the largest size of the curve."""
    reference: int
    """The size of the higher rate before a drop; of a dip the neighbour below."""
    depth: float
    """How much longer the sizes take than expected: 0.05 is 5 %."""
    interval: Interval
    """95 %, of the depth."""
    p_value: float
    """Corrected for all sizes of the profile."""
    blocks: int
    """Blocks that agree, of ``of``."""
    of: int


class _Candidate(NamedTuple):
    kind: Kind
    sizes: range
    reference: int
    expected: Array
    """Logarithms, of each of its sizes."""
    depth: float
    variance: float
    """The variance of the depth, from noise alone."""
    freedom: float


def irregularities(curves: Sequence[CurveBlocks]) -> list[tuple[Irregularity, ...]]:
    """The irregularities of each curve in the order given, by size; none for curves of few sizes,
    or with several workloads of as many bytes: a size of these has no neighbours."""
    usable = [n for n, curve in enumerate(curves) if _is_usable(curve.bytes)]
    tests = sum(len(curves[n].bytes) for n in usable)
    found: list[tuple[Irregularity, ...]] = [()] * len(curves)
    ready = list(prepared([curves[n] for n in usable]))
    made = [expected(ready, width) for width in range(1, WIDEST + 1)]
    for n, curve, windows in zip(usable, ready, zip(*made, strict=True), strict=True):
        found[n] = tuple(_of_curve(curve, windows, tests))
    return found


def _is_usable(sizes: Sequence[int]) -> bool:
    return len(sizes) >= LEAST_SIZES and all(a < b for a, b in pairwise(sizes))


def _of_curve(curve: CurveNoise, windows: Sequence[Expected], tests: int) -> Iterator[Irregularity]:
    """The surest of dips that overlap, those of windows before wider ones; none that is how a drop
    begins. ``windows`` are those of one size, of two, and so on."""
    wiggle = _wiggle(curve, windows[0])

    def confirmed(candidates: Iterator[_Candidate]) -> list[Irregularity]:
        found = (_confirmed(curve, each, *wiggle, tests) for each in candidates)
        return [each for each in found if each is not None]

    drops = confirmed(_drop(curve))
    kept: list[Irregularity] = []
    surest = sorted(confirmed(_dips(curve, windows)), key=lambda each: (each.p_value, -each.depth))
    for dip in (*surest, *confirmed(_sags(curve))):
        begins = any(dip.low <= drop.low <= dip.high for drop in drops)
        if not begins and all(dip.high < other.low or dip.low > other.high for other in kept):
            kept.append(dip)
    yield from sorted([*kept, *drops], key=lambda each: each.low)


def _wiggle(curve: CurveNoise, made: Expected) -> tuple[float, float]:
    """(variance of single sizes around what neighbours let expect, beyond noise; its degrees of
    freedom)."""
    off = np.abs(curve.y[made.sizes] - made.nearest)[:, 0]
    known = np.isfinite(off)
    if not known.any():
        return 0.0, 1.0
    scale = NORMAL_SCALE * float(np.median(off[known]))
    noise = 1.5 * float(np.median(curve.noise[made.sizes[known, 0]]))
    return max(0.0, scale**2 - noise), max(1.0, _EFFICIENCY * int(known.sum()))


def _dips(curve: CurveNoise, windows: Sequence[Expected]) -> Iterator[_Candidate]:
    for width, made in enumerate(windows, start=1):
        excess = curve.y[made.sizes] - made.between
        depth = excess.mean(axis=1)
        with np.errstate(invalid="ignore"):
            deep = (depth >= math.log1p(THRESHOLD)) & (excess >= SEEN).all(axis=1)
        for n in np.flatnonzero(deep & made.exceeded):
            first = int(made.sizes[n, 0])
            yield _Candidate(
                "dip",
                range(first, first + width),
                first - 1,
                made.between[n],
                float(depth[n]),
                *_error(curve, range(first, first + width), (first - 1, first + width)),
            )


def _error(curve: CurveNoise, sizes: range, others: Sequence[int]) -> tuple[float, float]:
    """(variance of the mean over sizes less what others let expect, degrees of freedom)."""
    own = float(curve.noise[sizes.start : sizes.stop].sum()) / len(sizes) ** 2
    theirs = max(float(curve.noise[n]) for n in others) * (5 / 9)  # of weights 2/3 and 1/3
    freedom = min(float(curve.freedom[n]) for n in (*sizes, *others))
    return own + theirs, freedom


def _sags(curve: CurveNoise) -> Iterator[_Candidate]:
    """Runs of at least two sizes whose rates lie below those of a smaller and a larger size."""
    rate = np.log(curve.n) - curve.y
    level = np.minimum(_best_before(rate), _best_before(rate[::-1])[::-1])
    below = np.flatnonzero(level - rate >= math.log1p(THRESHOLD))
    for run in np.split(below, np.flatnonzero(np.diff(below) > 1) + 1):
        if len(run) > 1:
            start, stop = int(run[0]), int(run[-1]) + 1
            least = float(level[start:stop].min())
            lack = least - float(rate[start:stop].mean())
            reference = int(np.argmax(rate[:start]))
            yield _against(curve, "dip", range(start, stop), reference, least, lack)


def _drop(curve: CurveNoise) -> Iterator[_Candidate]:
    """A drop: from the first size from which on most of the fall from the best rate has
    happened."""
    rate = np.log(curve.n) - curve.y
    best_after = np.maximum.accumulate(rate[::-1])[::-1]
    fall = (_best_before(rate) - best_after)[:-1]  # the largest size alone is no level
    start = int(np.argmax(fall >= 0.8 * fall.max()))
    if fall.max() >= math.log1p(THRESHOLD) and start:
        best = int(np.argmax(rate[:start]))
        level = float(rate[best])
        yield _against(curve, "drop", range(start, len(rate)), best, level, float(fall[start]))


def _best_before(rate: Array) -> Array:
    return np.concatenate([[-np.inf], np.maximum.accumulate(rate)[:-1]])


def _against(
    curve: CurveNoise, kind: Kind, sizes: range, reference: int, level: float, lack: float
) -> _Candidate:
    """Sizes that lack so much to a rate that is the best of several."""
    variance, freedom = _error(curve, sizes[:1], (reference,))
    taken = SELECTED * math.sqrt(float(curve.noise[reference]))
    expect = np.log(curve.n[sizes.start : sizes.stop]) - level
    return _Candidate(kind, sizes, reference, expect, lack - taken, variance, freedom)


def _confirmed(
    curve: CurveNoise, found: _Candidate, wiggle: float, freedom: float, tests: int
) -> Irregularity | None:
    variance = found.variance + wiggle
    together = variance**2 / (found.variance**2 / found.freedom + wiggle**2 / freedom)
    error = math.sqrt(variance)
    p_value = min(1.0, tests * student_tail(together, found.depth / error))
    if p_value > LEVEL or found.depth < math.log1p(THRESHOLD):
        return None
    agree, of = _agreeing(curve, found)
    if agree < (math.ceil(ENOUGH_AGREE * of) if of >= INTERVAL_SAMPLES else of):
        return None
    half = student_quantile(max(1, int(together)), (1 + CONFIDENCE) / 2) * error
    return Irregularity(
        kind=found.kind,
        low=int(curve.n[found.sizes.start]),
        high=int(curve.n[found.sizes.stop - 1]),
        reference=int(curve.n[found.reference]),
        depth=math.expm1(found.depth),
        interval=Interval(math.expm1(found.depth - half), math.expm1(found.depth + half)),
        p_value=p_value,
        blocks=agree,
        of=of,
    )


def _agreeing(curve: CurveNoise, found: _Candidate) -> tuple[int, int]:
    """(blocks that show the excess by themselves, blocks that visited these sizes)."""
    table = curve.table[found.sizes.start : found.sizes.stop]
    off = table - found.expected[:, None]
    seen = off[:, np.isfinite(off).any(axis=0)]
    means = np.nanmean(seen, axis=0)
    return int((means >= SEEN).sum()), len(means)
