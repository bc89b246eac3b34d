"""Numbers that people and files write, with their bounds.

`native/include/waywiser/words.hpp` has the same bounds, and a test compares both. Python reads more
than numbers as numbers (digits of other scripts, ``1_000``, ``nan``) and fails with thousands of
digits; these functions read ASCII digits and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from waywiser.words.errors import WordError

MOST_INDEX = 2**31 - 1
"""The greatest index of a NUMA node, a GPU or a rank."""

MOST_BYTES = 2**50
"""More bytes than any machine has. Small products of it fit into 64 bits."""

MOST_SIMULATED_GPUS = 32
"""GPUs of a simulated survey: the pairs of more would be thousands of curves."""

MOST_GPUS = 1024
"""The greatest number of GPUs of one machine."""

_PLAIN = re.compile("[0-9][-+.a-zA-Z0-9]{0,19}")
"""Numbers that need no quotes."""

_DIGITS = re.compile(r"[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value of a number that people give, and what the number is."""

    least: int
    most: int
    what: str = "whole number"

    def whole(self, text: str, name: str) -> int:
        """The whole number that an option or argument of this name has. Raises `WordError`."""
        number = whole_number(text, self.most)
        if number is None:
            raise self._wrong(text, name)
        self.require(number, name)
        return number

    def decimal(self, text: str, name: str) -> float:
        """The same for a number that need not be whole."""
        number = decimal_number(text)
        self.require(number, name, text)
        return number

    def require(self, value: float, name: str, text: str = "") -> None:
        """Raises `WordError` for a value out of bounds and for NaN. ``text`` is the value as it was
        written, if it was."""
        if not self.least <= value <= self.most:
            raise self._wrong(text or f"{value:.12g}", name)

    def _wrong(self, text: str, name: str) -> WordError:
        shown = text if _PLAIN.fullmatch(text) else repr(text)
        return WordError(f"{name} {shown} is not a {self.what} from {self.least} to {self.most}")


COUNTS = Bounds(0, 2**31 - 1)
"""Numbers of threads; 0 is one of them."""

POSITIVE_COUNTS = Bounds(1, 2**31 - 1)
"""Numbers of pieces or messages."""


def whole_number(text: str, most: int = MOST_BYTES) -> int | None:
    """The number that is written in up to 20 digits; None if it is none, or more than ``most``."""
    number = int(text) if _DIGITS.fullmatch(text) else None
    return number if number is not None and number <= most else None


def decimal_number(text: str) -> float:
    """``3``, ``0.03``, ``1e-3`` or NaN if the text is no number; infinity if it is too large."""
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending: (0, 3) and (6, 6) of 3, 0, 1, 2, 6."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def parse_fraction(text: str, what: str) -> float:
    """A fraction from 0 to below 1. Raises `WordError` for anything else."""
    number = text.strip()
    percent = number.endswith("%")
    value = decimal_number(number.removesuffix("%"))
    value = value / 100 if percent else value
    if not 0 <= value < 1:
        raise WordError(
            f"{text!r} is no {what}", remedy="write 3% or 0.03: from 0 to less than 100%"
        )
    return value
