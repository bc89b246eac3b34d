"""Numbers that people and files write, with their bounds.

`native/include/waywiser/words.hpp` has the same bounds, and a test compares both. Python reads more
than numbers as numbers (digits of other scripts, ``1_000``, ``nan``) and fails with thousands of
digits; these functions read ASCII digits and nothing else.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

MOST_INDEX = 2**31 - 1
"""The greatest index of a NUMA node, a GPU or a rank."""

MOST_BYTES = 2**50
"""More bytes than any machine has. Small products of it fit into 64 bits."""

_DIGITS = re.compile(r"[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Bounds(NamedTuple):
    """The least and the greatest value of a number."""

    least: float
    most: float

    def hold(self, value: float) -> bool:
        """Whether the value is within the bounds. NaN is not."""
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"from {self.least:.12g} to {self.most:.12g}"


def whole_number(text: str, most: int = MOST_BYTES) -> int | None:
    """The number that is written in up to 20 digits; None if it is none, or more than ``most``."""
    number = int(text) if _DIGITS.fullmatch(text) else None
    return number if number is not None and number <= most else None


def decimal_number(text: str) -> float:
    """``3``, ``0.03``, ``1e-3`` or NaN if the text is no number; infinity if it is too large."""
    return float(text) if _DECIMAL.fullmatch(text) else math.nan
