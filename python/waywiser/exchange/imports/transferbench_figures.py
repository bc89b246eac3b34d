"""Figures of TransferBench: a rate and a time of the same bytes, each with few decimals.

The one with more digits is used, and both must agree within their digits: if they do not, a
row is damaged, or of a version whose rate was wrong.
"""

from __future__ import annotations

import math
import re

NUMBER = r"[-+]?(?:[0-9]{1,15}(?:\.[0-9]{1,12})?|nan|inf)"
"""A figure, or what C prints for a division by zero."""


class BadFigure(Exception):
    """Why figures are none; its text is the reason."""


def seconds_of(rate: str, milliseconds: str, size: int) -> float:
    """Seconds by a rate in GB/s and a time in ms, as printed. Raises `BadFigure`."""
    by_rate, by_time = _half_digit(rate), _half_digit(milliseconds)
    gigabytes, time = _finite(rate), _finite(milliseconds)
    known = []
    if time > 0:
        known.append((by_time / time, time * 1e-3))
    if gigabytes > 0 and size > 0:
        known.append((by_rate / gigabytes, size / (gigabytes * 1e9)))
    if size <= 0:
        raise BadFigure("it has 0 bytes")
    if not known:
        raise BadFigure("its figure is 0")
    too_short = time == 0 and bool(known) and known[0][1] > 1.5e-3 * by_time
    if too_short or (len(known) == 2 and not _agree(*known)):
        raise BadFigure(
            f"{rate} GB/s and {milliseconds} ms are not of the same {size:,} bytes, so that one "
            "of them is wrong"
        )
    return min(known)[1]


def rate_of(text: str, decimals: int) -> float:
    """Bytes per second by a rate in GB/s. Raises `BadFigure` for 0 and less, and for a figure that
    has not as many decimals as its table; `ValueError` for a text that is no figure."""
    if not re.fullmatch(NUMBER, text):
        raise ValueError(text)
    rate = _finite(text)
    if len(text.partition(".")[2]) != decimals:
        raise BadFigure(f"its figure {text} is cut off: its table has {decimals} decimals")
    if rate <= 0:
        raise BadFigure("its figure is 0")
    return rate * 1e9


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise BadFigure(f"its figure is {text}")
    return value


def _half_digit(text: str) -> float:
    """How far the figure may be from the one that was rounded to it."""
    _, point, decimals = text.partition(".")
    return float(0.5 * 10.0 ** -len(decimals)) if point else 0.5


def _agree(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two times with their relative roundings may be of one time."""
    (wide_one, first), (wide_other, second) = one, other
    return abs(first - second) <= 1.5 * (wide_one * first + wide_other * second) + 1e-4 * first
