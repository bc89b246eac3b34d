"""Many comparisons at once: what each p-value is worth when the others are asked as well.

Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
Statistics 6 (1979). It holds for any dependence between the comparisons, as it must here: paths of
one machine share its links and its noise.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """The adjusted p-values, in the order given.

    The k-th smallest of m is multiplied by m - k + 1; none is then below a smaller one's, or above
    1. Rejecting where the adjusted value is at most 5 % rejects any true null hypothesis at all in
    at most 5 % of families. Raises ValueError for a value that is no probability.
    """
    if not all(0.0 <= value <= 1.0 for value in p_values):
        raise ValueError(f"a p-value lies between 0 and 1: {list(p_values)!r}")
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = least
    return adjusted
