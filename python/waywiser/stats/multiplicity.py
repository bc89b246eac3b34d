"""Many comparisons at once: what each p-value is worth when the others are asked as well.

Sources: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
Statistics 6 (1979), which holds for any dependence between the comparisons. Benjamini & Hochberg,
"Controlling the False Discovery Rate", J. Royal Statistical Society B 57 (1995), which holds for
positive dependence: paths of one machine share its links and its noise.
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


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The adjusted p-values, in the order given.

    The k-th smallest of m is multiplied by m / k; none is then above a larger one's. Rejecting
    where the adjusted value is at most 5 % makes at most 5 % of the rejections false on average.
    Raises ValueError for a value that is no probability.
    """
    if not all(0.0 <= value <= 1.0 for value in p_values):
        raise ValueError(f"a p-value lies between 0 and 1: {list(p_values)!r}")
    count = len(p_values)
    adjusted = [0.0] * count
    most = 1.0
    for rank, at in zip(
        range(count, 0, -1), sorted(range(count), key=lambda n: -p_values[n]), strict=True
    ):
        most = min(most, p_values[at] * count / rank)
        adjusted[at] = most
    return adjusted
