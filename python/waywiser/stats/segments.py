"""Order statistics of many groups of values at once.

The values lie in one array, group after group. Medians and their intervals are equal, to the bit,
to what `waywiser.stats.order` gives for each group. Quantiles are interpolated between order
statistics: type 7 of Hyndman & Fan, "Sample Quantiles in Statistical Packages" (1996).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from waywiser.stats.order import lower_rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


MOST_PADDING = 4
"""Times the number of values to which groups are filled up to be sorted together."""


class Segments:
    """Groups of values; a result is NaN for a group without values."""

    def __init__(self, values: Array, counts: Array) -> None:
        """``counts`` says how many values each group has."""
        import numpy as np

        self.values = values
        self.groups = len(counts)
        self.known = np.flatnonzero(counts)
        """Groups that have values."""
        self.counts = counts[self.known]
        self.starts = np.cumsum(self.counts) - self.counts

    @cached_property
    def ordered(self) -> Array:
        """The values with each group in ascending order."""
        import numpy as np

        most = int(self.counts.max(initial=0))
        if most * len(self.counts) <= MOST_PADDING * len(self.values):
            rows = np.full((len(self.counts), most), np.nan)  # sorted after every value
            inside = np.arange(most) < self.counts[:, None]
            rows[inside] = self.values
            rows.sort(axis=1)
            padded: Array = rows[inside]
            return padded
        ordered = np.empty_like(self.values)
        for count in np.unique(self.counts):
            starts = self.starts[self.counts == count]
            at = starts[:, None] + np.arange(count)
            ordered[at] = np.sort(self.values[at], axis=1)
        return ordered

    def filled(self, found: Array, fill: Any = float("nan")) -> Array:
        """One value for each group, from one for each known group."""
        import numpy as np

        full = np.full(self.groups, fill, dtype=np.result_type(found))
        full[self.known] = found
        return full

    @cached_property
    def medians(self) -> Array:
        below = self.ordered[self.starts + (self.counts - 1) // 2]
        above = self.ordered[self.starts + self.counts // 2]
        return self.filled(_between(below, above, 0.5))

    def quantiles(self, probability: float) -> Array:
        import numpy as np

        position = probability * (self.counts - 1)
        below = position.astype(np.int64)
        above = np.minimum(below + 1, self.counts - 1)
        low, high = self.ordered[self.starts + below], self.ordered[self.starts + above]
        return self.filled(_between(low, high, position - below))

    @property
    def intervals(self) -> tuple[Array, Array]:
        """The ends of the 95 % intervals of the medians; NaN also for too few values."""
        import numpy as np

        return self.intervals_at(np.ones(self.groups))

    def intervals_at(self, reach: Array) -> tuple[Array, Array]:
        """The same with ends that are so many times as far from the middle, in order statistics:
        one number for each group. Between two values an end is interpolated."""
        import numpy as np

        sizes, place = np.unique(self.counts, return_inverse=True)
        ranks = np.array([lower_rank(int(size)) or 0 for size in sizes], dtype=np.int64)[place]
        middle = (self.counts - 1) / 2
        position = np.maximum(middle - (middle - (ranks - 1)) * reach[self.known], 0.0)
        whole = np.floor(position)
        part, steps = position - whole, whole.astype(np.int64)
        outer, inner = steps, np.minimum(steps + 1, self.counts - 1)
        first, last = self.starts, self.starts + self.counts - 1
        ends = []
        for at, beside in ((first + outer, first + inner), (last - outer, last - inner)):
            value = self.ordered[at] + part * (self.ordered[beside] - self.ordered[at])
            ends.append(self.filled(np.where(ranks > 0, value, np.nan)))
        return ends[0], ends[1]

    def sums(self, values: Array) -> Array:
        """Sums of ``values``, which lie as the values of the groups do; 0 for no values."""
        import numpy as np

        found = np.add.reduceat(values, self.starts) if len(self.starts) else values[:0]
        return self.filled(found, 0)


def _between(low: Array, high: Array, part: Any) -> Array:
    import numpy as np

    found: Array = np.minimum(low + part * (high - low), high)
    return found
