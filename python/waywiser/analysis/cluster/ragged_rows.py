"""Values in rows of any length, and their statistics, in memory by the number of values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class RaggedRows:
    """The values of each row, one row after the other."""

    row: _Ints
    """The row of each value, in ascending order."""
    y: _Floats
    """Value, rail, direction; NaN if missing."""
    rows: int
    """How many rows there are, empty ones included."""

    @cached_property
    def lengths(self) -> _Ints:
        return np.bincount(self.row, minlength=self.rows)

    @cached_property
    def _starts(self) -> _Ints:
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    def count(self, mask: _Bools) -> _Ints:
        """Returns how many values of each row a mask has: row, rail, direction."""
        sums = np.zeros((len(mask) + 1, *mask.shape[1:]), dtype=np.int64)
        np.cumsum(mask, axis=0, out=sums[1:])
        return np.asarray(sums[self._starts + self.lengths] - sums[self._starts])

    @cached_property
    def _ordered(self) -> _Floats:
        """The values of each row in ascending order, NaN last."""
        order = np.argsort(self.y, axis=0)
        back = np.argsort(self.row[order], axis=0, kind="stable")
        return np.take_along_axis(self.y, np.take_along_axis(order, back, axis=0), axis=0)

    def at(self, place: _Ints) -> _Floats:
        """Returns the value at a place of each row, the lowest first: row, rail, direction. NaN of
        an empty row. ``place`` is the same for all columns of a row, or has them."""
        shape = (self.rows, *self.y.shape[1:])
        if not len(self.y):
            return np.full(shape, np.nan)
        inner = (slice(None), *(None,) * (self.y.ndim - 1))
        columns = place if place.ndim == self.y.ndim else place[inner]
        index = np.minimum(self._starts[inner] + columns, len(self.y) - 1)
        found = np.take_along_axis(self._ordered, np.broadcast_to(index, shape), axis=0)
        return np.where((self.lengths > 0)[inner], found, np.nan)

    def quantile(self, q: float, *, lower: bool = False) -> _Floats:
        """Returns a quantile of what is not NaN of each row: row, rail, direction; NaN if there is
        nothing. ``lower`` takes the next lower value in place of interpolating."""
        place = np.maximum(q * (self.count(~np.isnan(self.y)) - 1), 0)
        below = np.floor(place).astype(np.int64)
        low = self.at(below)
        if lower:
            return low
        high = self.at(np.ceil(place).astype(np.int64))
        return np.asarray(low + (high - low) * (place - below))


def rows_of(row: _Ints, y: _Floats, rows: int) -> RaggedRows:
    """Returns values by their rows."""
    order = np.argsort(row, kind="stable")
    return RaggedRows(row[order], y[order], rows)
