"""``3%`` and ``0.03`` as a fraction."""

from __future__ import annotations

from waywiser.words import WordError
from waywiser.words.numbers import decimal_number


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
