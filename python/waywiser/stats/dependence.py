"""How much the samples of a process depend on each other, and the intervals of medians despite it.

*n* samples that depend on each other say as much about their level as *n* / τ independent ones. τ,
the integrated autocorrelation time, is 1 + 2 Σ ρ_k over the autocorrelations of all lags: 1 for
independent samples, (1 + ρ) / (1 - ρ) for an autoregression of order one (Sokal, "Monte Carlo
Methods in Statistical Mechanics", 1997). The order statistics between which a median lies are
√τ times as far from the middle.

τ is the larger of two estimates, since each is too small for series of the other's kind:

- the initial monotone sequence of autocorrelations (Geyer, "Practical Markov Chain Monte Carlo",
  Statistical Science 7, 1992), for any shape of the correlation;
- that of an autoregression of order one, whose ρ is corrected for what few samples take from it
  (Kendall, "Note on Bias in the Estimation of Autocorrelation", Biometrika 41, 1954).

Values are clipped one interquartile range from their median, so that a few slow samples hide no
dependence. Processes of one series are taken to depend alike: their products are added up.

Medians have intervals from `ENOUGH_TIMES` autocorrelation times on. Few samples do not show how
long that is, and what they seem to show is the shorter the more they hide. So a single process
has an interval if its samples are enough for the longest τ that they do not exclude, and its width
is for that: the upper 95 % bound of the correlation of neighbours decides (`HIGH`). Of several
processes the hull of their intervals has the median also where a dependence of each is missed: a
test (`SIGNIFICANT`) decides whether they have any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.stats.order import INTERVAL_SAMPLES, Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ENOUGH_TIMES = 10.0
"""Autocorrelation times from which on samples of a process give an interval."""

HIGH = 1.645
"""Standard errors above its estimate of the upper 95 % bound of a correlation."""

SIGNIFICANT = 1.28
"""Standard errors above that of independent samples of a correlation of neighbours that is no
chance: one of ten independent series has more."""

MOST_CORRELATION = 0.99
"""Correlation of neighbours above which none is taken for that of an autoregression."""

LEAST_TIMES = 2.0
"""Autocorrelation times of each of several processes that have `ENOUGH_TIMES` together."""


class Dependence(NamedTuple):
    """One number for each group of samples."""

    times: Array
    """τ, in samples and at least 1."""
    most: Array
    """The τ that intervals are for: its upper bound in series of one process."""
    are_enough: Array
    """Whether the samples of the series are enough for intervals of its medians."""


def dependence(samples: Segments, series: Array) -> Dependence:
    """How much the samples of groups depend on each other, which lie in the order taken.

    ``series`` has the number of each group's series, in ascending order: the groups of a series
    depend alike.
    """
    import numpy as np

    times, most = np.ones(samples.groups), np.ones(samples.groups)
    are_enough = np.ones(samples.groups, dtype=bool)
    enough = samples.counts >= INTERVAL_SAMPLES
    if enough.any():
        of = samples.known[enough]
        first = np.flatnonzero(np.diff(series[of], prepend=-1))
        counts = samples.counts[enough]
        products = _Products(_scores(samples, enough), counts, first)
        independent = _independent(products)
        found, bound = _autoregressive_times(products), _autoregressive_times(products, HIGH)
        found = np.maximum(_monotone_times(products), found)
        single = products.blocks == 1
        bound = np.where(single, np.maximum(found, bound), found)
        shown = np.where(independent & ~single, 1.0, bound)
        groups = np.diff(first, append=len(counts))
        found, bound, shown, total = (
            np.repeat(each, groups) for each in (found, bound, shown, products.counts)
        )
        times[of], most[of] = found, bound
        are_enough[of] = (total >= ENOUGH_TIMES * shown) & (counts >= LEAST_TIMES * shown)
    return Dependence(times, most, are_enough)


def intervals(
    samples: Segments, of: Dependence, explained: Array | None = None
) -> tuple[Array, Array]:
    """The ends of the 95 % intervals of medians; NaN for too few samples, also because they depend
    on each other. ``explained`` groups do so by a level that shifted and returned, which is in
    their interval (`waywiser.stats.level_shift`)."""
    import numpy as np

    low, high = samples.intervals_at(np.sqrt(of.most))
    none = ~of.are_enough if explained is None else ~(of.are_enough | explained)
    low[none], high[none] = np.nan, np.nan
    return low, high


class _Products:
    """Sums over the samples of each series of products of scores that are some samples apart."""

    def __init__(self, scores: Array, counts: Array, first: Array) -> None:
        """``first`` is the first group of each series."""
        import numpy as np

        self.counts = np.add.reduceat(counts, first)
        """Samples of each series."""
        self.blocks = np.diff(first, append=len(counts))
        self.longest = np.maximum.reduceat(counts, first)
        self._scores = scores
        self._after = (np.repeat(np.cumsum(counts), counts) - np.arange(1, len(scores) + 1)).astype(
            np.int32
        )
        """Samples of the group that come after each."""
        self._counts = self.counts
        self._starts = np.cumsum(self.counts) - self.counts
        self.squares = self.at(0)
        constant = self.squares <= 0
        self.neighbours = np.where(
            constant, 0.0, self.at(1) / np.where(constant, 1.0, self.squares)
        )
        """The correlation of neighbours in each series; 0 if its samples are all the same."""

    def at(self, lag: int) -> Array:
        """One sum for each series that is kept."""
        import numpy as np

        products = np.zeros_like(self._scores)
        stop = max(len(products) - lag, 0)
        np.multiply(self._scores[:stop], self._scores[lag:], out=products[:stop])
        products *= self._after >= lag
        found: Array = np.add.reduceat(products, self._starts)
        return found.astype(float)

    def keep(self, kept: Array) -> None:
        """Leaves out the samples of all other series. ``kept`` is about those that are here."""
        import numpy as np

        samples = np.repeat(kept, self._counts)
        self._scores, self._after = self._scores[samples], self._after[samples]
        self._counts = self._counts[kept]
        self._starts = np.cumsum(self._counts) - self._counts


def _scores(samples: Segments, enough: Array) -> Array:
    """Deviations from the median in interquartile ranges, at most 1, around their mean; of the
    groups with enough samples."""
    import numpy as np

    of, counts = samples.known[enough], samples.counts[enough]
    values = samples.values if enough.all() else samples.values[np.repeat(enough, samples.counts)]
    scale = samples.quantiles(0.75)[of] - samples.quantiles(0.25)[of]
    scale = np.where(scale > 0, scale, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        scores = (values - np.repeat(samples.medians[of], counts)) / np.repeat(scale, counts)
    scores = np.clip(scores, -1.0, 1.0, out=scores).astype(np.float32)
    means = np.add.reduceat(scores, np.cumsum(counts) - counts) / counts
    found: Array = scores - np.repeat(means.astype(np.float32), counts)
    return found


def _monotone_times(products: _Products) -> Array:
    """τ by sums of two neighbouring autocorrelations, up to the first that is not above 0; none
    counts more than one before it."""
    import numpy as np

    total = np.where(products.squares > 0, 1 + products.neighbours, 0.0)
    series = np.flatnonzero(total > 0)
    products.keep(total > 0)
    before, squares, longest = total[series], products.squares[series], products.longest[series]
    lag = 2
    while len(series):
        pair = np.minimum((products.at(lag) + products.at(lag + 1)) / squares, before)
        goes_on = (pair > 0) & (2 * lag < longest)
        total[series[goes_on]] += pair[goes_on]
        before = np.where(goes_on, pair, 0.0)  # a pair after it is no more than 0
        lag += 2
        if 5 * goes_on.sum() < 4 * len(series):
            products.keep(goes_on)
            series, before = series[goes_on], before[goes_on]
            squares, longest = squares[goes_on], longest[goes_on]
    found: Array = 2 * total - 1
    return found


def _autoregressive_times(products: _Products, errors: float = 0.0) -> Array:
    """τ, at least 1, if the correlation of neighbours is so many standard errors above its
    estimate."""
    import numpy as np

    few = products.counts - 3 * products.blocks
    correlation = (products.counts * products.neighbours + products.blocks) / few
    correlation = np.where(products.squares > 0, correlation, -1.0).clip(-1.0, MOST_CORRELATION)
    error = np.sqrt((1 - correlation**2) / products.counts)
    correlation = (correlation + errors * error).clip(0.0, MOST_CORRELATION)
    found: Array = (1 + correlation) / (1 - correlation)
    return found


def _independent(products: _Products) -> Array:
    """Whether a test does not show that neighbours are alike."""
    import numpy as np

    above = products.neighbours + products.blocks / products.counts
    found: Array = above * np.sqrt(products.counts) <= SIGNIFICANT
    return found
