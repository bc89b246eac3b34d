"""The variance within many series of values, kept up to date by one value at a time.

Each value costs the same, however many there are (Welford, "Note on a Method for Calculating
Corrected Sums of Squares and Products", Technometrics 4 (1962)).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from waywiser.stats.noise_model import Variance, variance_of


class RunningVariance:
    """Squares of values around the mean of their series, by groups of series."""

    def __init__(self) -> None:
        self._series: defaultdict[Hashable, _Mean] = defaultdict(_Mean)
        self._groups: defaultdict[Hashable, _Squares] = defaultdict(_Squares)
        self._all = _Squares()

    def add(self, group: Hashable, series: Hashable, value: float) -> None:
        """Takes one more value of a series, which belongs to a group."""
        mean = self._series[group, series]
        squares = mean.add(value)
        freedom = 1 if mean.count > 1 else 0
        self._groups[group].add(squares, freedom)
        self._all.add(squares, freedom)

    def without(self, group: Hashable) -> Variance:
        """The variance pooled over the series of all other groups."""
        own = self._groups.get(group, _NONE)
        # A difference of rounded sums may be below 0, where the others hardly vary.
        squares = max(self._all.squares - own.squares, 0.0)
        return variance_of(squares, self._all.freedom - own.freedom)


class _Mean:
    """The mean of the values so far."""

    def __init__(self) -> None:
        self.count = 0
        self._mean = 0.0

    def add(self, value: float) -> float:
        """Returns what the value adds to the squares around the mean."""
        self.count += 1
        apart = value - self._mean
        self._mean += apart / self.count
        return apart * (value - self._mean)


class _Squares:
    """A sum of squares with its degrees of freedom."""

    def __init__(self) -> None:
        self.squares = 0.0
        self.freedom = 0

    def add(self, squares: float, freedom: int) -> None:
        self.squares += squares
        self.freedom += freedom


_NONE = _Squares()
