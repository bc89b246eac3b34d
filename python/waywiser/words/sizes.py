"""Numbers of bytes as people write them."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from waywiser.words.errors import WordError
from waywiser.words.numbers import MOST_BYTES

_UNITS = {"": 1, "b": 1, "k": 2**10, "kib": 2**10, "m": 2**20, "mib": 2**20, "g": 2**30,
          "gib": 2**30, "t": 2**40, "tib": 2**40}  # fmt: skip
_SIZE = re.compile(r"^\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zA-Z]*)\s*$")
_DECIMAL = {"kb": "KiB", "mb": "MiB", "gb": "GiB", "tb": "TiB"}
"""Units of a thousand, and the binary units in place of which people write them."""


class DecimalUnit(WordError):
    """A size in units of a thousand bytes."""


def nearest_power_of_two(size: float) -> int:
    """The power of two nearest to a size, as a ratio; 0 for 0."""
    return int(2 ** round(math.log2(size))) if size else 0


def parse_bytes(text: str) -> int:
    """``4096``, ``64KiB``, ``1.5 GiB`` as a number of bytes; K, M, G alone are binary as well."""
    match = _SIZE.match(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is not None and (meant := _DECIMAL.get(match[2].lower())):
        raise DecimalUnit(
            f"{text!r} has a decimal unit, and sizes are binary", remedy=f"write {match[1]}{meant}"
        )
    if match is None or unit is None:
        raise WordError(f"{text!r} is not a size", remedy="write 4096, 64KiB, 8MiB or 1GiB")
    size = (Fraction(match[1]) if "." in match[1] else int(match[1])) * unit
    if size.denominator != 1:
        raise WordError(f"{text!r} is not a whole number of bytes")
    if size > MOST_BYTES:
        raise WordError(f"{text!r} is more than any machine has")
    return int(size)


def format_bytes(size: int) -> str:
    """The shortest exact text in binary units: ``8 B``, ``64 KiB``, ``1 GiB``, ``1536 B``."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def size_text(size: int) -> str:
    """``11.3 MiB``: a computed boundary needs few digits."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            value = size / factor
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{size} B"
