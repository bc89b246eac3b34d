"""The variance within many series of values, kept up to date by one value at a time.

Each value costs the same, however many there are (Welford, "Note on a Method for Calculating
Corrected Sums of Squares and Products", Technometrics 4 (1962)).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable

from waywiser.stats.noise_model import Variance, variance_of

_ALL = object()
"""All groups together."""


class RunningVariance:
    """Squares of values around the mean of their series, by groups of series."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._means: defaultdict[Hashable, float] = defaultdict(float)
        """Both by group and series."""
        self._freedom: Counter[Hashable] = Counter()
        self._squares: defaultdict[Hashable, float] = defaultdict(float)
        """Both by group, and of all groups together."""

    def add(self, group: Hashable, series: Hashable, value: float) -> None:
        """Takes one more value of a series, which belongs to a group."""
        key = group, series
        self._counts[key] += 1
        apart = value - self._means[key]
        self._means[key] += apart / self._counts[key]
        for each in (group, _ALL):
            self._squares[each] += apart * (value - self._means[key])
            self._freedom[each] += self._counts[key] > 1

    def without(self, group: Hashable) -> Variance:
        """The variance pooled over the series of all other groups."""
        # A difference of rounded sums may be below 0, where the others hardly vary.
        squares = max(self._squares[_ALL] - self._squares[group], 0.0)
        return variance_of(squares, self._freedom[_ALL] - self._freedom[group])
