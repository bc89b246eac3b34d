"""Numbers in a row, written as the first and the last."""

from __future__ import annotations

from collections.abc import Iterable


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending: (0, 3) and (6, 6) of 3, 0, 1, 2, 6."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
