"""How far blocks scatter where a block moves several sizes of a curve at once.

All sizes of a curve that one process visits share its memory, its pages and its side of the
machine. So a block's deviation has two parts: one that it has in *common* at all sizes, of which
there is one value a block however many sizes were measured, and each size's *own*. The first has
as few degrees of freedom as there are blocks, and sizes must not lend it theirs.

A difference of two medians is then that of two common parts and of two own ones, each with a
Student's interval, and its interval reaches as far as both together, at right angles (Howe,
"Approximate Confidence Limits on the Mean of X + Y Where X and Y Are Two Tabled Independent Random
Variables", J. Am. Statistical Association 69, 1974):

    half^2 = v (t(f_c)^2 s_c^2 + t(f_o)^2 s_o^2)

It is Student's where either part is nothing. Few blocks that agree by chance so never pass for
many, as they would in the sum of both variances with Satterthwaite's degrees of freedom.

How far a curve's blocks jump may be its own affair, of which its steady twins know nothing. So each
part is drawn towards that of curves which ought to scatter alike only as far as these agree with
one another (`waywiser.stats.noise`), and not at all where it is beyond what they let expect (as
hypervariable genes are left out by Phipson, Lee, Majewski, Alexander & Smyth, "Robust
Hyperparameter Estimation Protects against Hypervariable Genes ...", Annals of Applied Statistics
10, 2016). Where there are few of them it stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from waywiser.stats.between import Between
from waywiser.stats.equivalence import scatter_of
from waywiser.stats.noise import fit_prior
from waywiser.stats.order import CONFIDENCE, Interval
from waywiser.words import Value

Medians = Mapping[int, Mapping[int, float]]
"""By size in bytes and block: logarithms of the medians of one curve."""

HYPERVARIABLE = 0.1
"""Chance of a scatter as large among others', from which on they lend it nothing."""

_STEPS = 32
"""Bisections between `_LEAST_P` and 1, on logarithms: to 1e-8 of the p-value."""
_LEAST_P = 1e-16


class Clustered(Value, frozen=True):
    """The scatter of one size of single blocks around their series, in two parts."""

    common: Between
    own: Between | None
    """None of a size without others near."""

    def p_value(self, difference: float, variance: float, among: int = 1) -> float:
        """How often chance makes a difference as large, to either side, at any of ``among`` sizes,
        of something whose variance is ``variance`` times that of one block.

        The own parts of sizes are as many chances (Bonferroni); the common part is one chance. What
        a size without others near has in common with them is not known: it is a chance of its own.
        """
        if self.own is None:
            return self.common.p_value(difference, variance, among)
        if self._reach(1.0, among) * variance >= difference**2:
            return 1.0
        low, high = math.log(_LEAST_P), 0.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if self._reach(math.exp(middle), among) * variance > difference**2:
                low = middle
            else:
                high = middle
        return math.exp(high)

    def around(
        self, difference: float, variance: float, confidence: float = CONFIDENCE
    ) -> Interval:
        """The interval of a difference, in logarithms."""
        half = math.sqrt(variance * self._reach(1 - confidence, 1))
        return Interval(difference - half, difference + half)

    def _reach(self, chance: float, among: int) -> float:
        """The square of what lies beyond by ``chance``, of something that varies as one block."""
        common = _quantile(self.common.freedom, chance) * self.common.deviation
        if self.own is None:
            return common**2
        own = _quantile(self.own.freedom, chance / among) * self.own.deviation
        return common**2 + own**2


class Parts(NamedTuple):
    """What the blocks of one curve, or of several, deviate by."""

    common: list[list[float]]
    """Of each curve, of each block: the mean over sizes."""
    own: list[list[float]]
    """Of each size of each curve, of each block: what is left."""
    left: float
    """Of the degrees of freedom that the blocks of each size have, those that are left to the
    own parts."""


class Apart(NamedTuple):
    """The scatter of both parts, as some blocks alone tell it; None where they do not."""

    common: Between | None
    own: Between | None


def parts(curves: Sequence[Medians]) -> Parts:
    """Of near sizes; those with a single block tell nothing."""
    common, own, sizes = [], [], 0
    for medians in curves:
        centred = [_centred(blocks) for blocks in medians.values() if len(blocks) > 1]
        of_block: dict[int, list[float]] = {}
        for size in centred:
            for block, deviation in size.items():
                of_block.setdefault(block, []).append(deviation)
        level = {block: sum(found) / len(found) for block, found in of_block.items()}
        if level:
            common.append(list(level.values()))
        own += [[value - level[block] for block, value in size.items()] for size in centred]
        sizes += len(centred)
    return Parts(common, own, 1 - len(common) / sizes if sizes else 0.0)


def apart(curves: Sequence[Medians], least: float) -> Apart:
    """Of both parts over near sizes of ``curves`` together; neither told as less than ``least``."""
    found = parts(curves)
    common, own = scatter_of(found.common, least), scatter_of(found.own, least)
    if own is None or found.left <= 0:
        return Apart(common, None)
    freedom = max(1, math.floor(own.freedom * found.left))
    return Apart(common, Between(own.deviation, freedom))


def clustered(found: Apart, others: Sequence[Apart]) -> Clustered | None:
    """The scatter that was ``found``, with what ``others`` lend that ought to scatter alike. None
    where no size has two blocks."""
    if found.common is None:
        return None
    common = _with_lent(found.common, [other.common for other in others])
    if found.own is None:
        return Clustered(common, None)
    return Clustered(common, _with_lent(found.own, [other.own for other in others]))


def _with_lent(found: Between, others: Iterable[Between | None]) -> Between:
    known = [other for other in others if other is not None]
    prior = fit_prior([o.deviation**2 for o in known], [o.freedom for o in known])
    variance = found.deviation**2
    if prior.freedom <= 0 or _is_beyond(variance / prior.variance, found.freedom, prior.freedom):
        return found
    return prior.lend(variance, found.freedom)


def _is_beyond(ratio: float, freedom: float, of_prior: float) -> bool:
    """Of two variances, by Fisher's test."""
    from scipy.special import fdtrc

    return float(fdtrc(freedom, of_prior, ratio)) <= HYPERVARIABLE


def _centred(blocks: Mapping[int, float]) -> dict[int, float]:
    mean = sum(blocks.values()) / len(blocks)
    return {block: value - mean for block, value in blocks.items()}


def _quantile(freedom: int, chance: float) -> float:
    """Half the width, in deviations, of Student's interval that misses by ``chance``."""
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, chance / 2))
