"""How uncertain one number is, as a fraction of it."""

from __future__ import annotations

from waywiser.analysis.fitted import estimate_of
from waywiser.analysis.subject import Point

STEPS = (0.02, 0.05, 0.10)
"""The target of a survey, what suffices to choose between ways, and what is rough."""

MANY_TIMES = 10.0
"""Of a value: from here on a share is told as a multiple."""


def uncertainty(point: Point) -> float | None:
    """Half the interval, or half of what blocks differ by where that is more; None without any."""
    found = estimate_of(point)
    relative = found.relative
    if relative is None:
        return None
    return max(relative, blocks_differ_by(point) / 2)


def blocks_differ_by(point: Point) -> float:
    """The slowest block over the fastest, minus 1; 0 of one block."""
    medians = [block.median for block in estimate_of(point).blocks]
    return max(medians) / min(medians) - 1 if min(medians) > 0 else 0.0


def amount(share: float, digits: int = 0) -> str:
    """``17%``; ``402 ×`` the value where percents would be many digits."""
    return f"{share:.{digits}%}" if share < MANY_TIMES else f"{share:.0f} ×"
