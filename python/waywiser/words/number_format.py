"""Measured values in a few characters, never with more digits than their interval allows."""

from __future__ import annotations

import math

RATE_BYTES = 64 * 2**10
"""Sizes below show the latency: their time is shown, a rate would only restate it."""

MOST_DIGITS = 4
"""A sharper interval does not make a table more readable; ``--json`` has every digit."""

UNCERTAIN_DIGITS = 2
"""Least digits of a value, however wide its interval is."""

LEAST_STATED_DIGITS = 3
"""Least digits of a value without an interval: its precision is that of its source."""

MATRIX_DIGITS = 3
"""Digits of each cell of a matrix."""

_TIMES = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"))


def format_number(value: float, relative: float | None = None) -> str:
    """``55.42``, ``0.512``, ``390``, ``15``: without exponent.

    ``relative`` is the half-width of the value's interval over the value: the last digit shown is
    the one where the half-width has its first, so 55.42 may be off by 0.01 to 0.09. Two digits are
    always shown. A value without an interval has the digits that it was stated with, three at
    least: that its precision is unknown does not make it coarser.
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    most = MOST_DIGITS - 1 - math.floor(math.log10(abs(value)))
    if relative is None:
        return _as_stated(value, most)
    if not math.isfinite(relative):
        decimals = most - MOST_DIGITS + UNCERTAIN_DIGITS
    elif relative <= 0:
        decimals = most
    else:
        decimals = -math.floor(math.log10(abs(value) * relative))
    # never coarser than the value itself: 55 with a half-width of 30 is no 60
    decimals = max(decimals, most - MOST_DIGITS + UNCERTAIN_DIGITS)
    decimals = min(decimals, most)
    return f"{round(value, decimals):.{max(0, decimals)}f}"


def _as_stated(value: float, decimals: int) -> str:
    """The value to `MOST_DIGITS` digits without the zeros at its end, beyond the least digits."""
    decimals = max(decimals, 0)
    rounded = round(value, decimals)
    for fewer in range(decimals - MOST_DIGITS + LEAST_STATED_DIGITS, decimals):
        if round(value, fewer) == rounded:
            return f"{rounded:.{max(0, fewer)}f}"
    return f"{rounded:.{max(0, decimals)}f}"


def format_in_matrix(value: float) -> str:
    """``55.3``, ``2.40``, ``382``, ``1885``, ``0.007``: three digits, all of those before the point
    and at most three behind it. The cells of a matrix are compared by eye, so all have one format,
    whatever their intervals are."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    rounded = float(f"{value:.{MATRIX_DIGITS}g}")
    decimals = max(0, MATRIX_DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{value:.{min(decimals, MATRIX_DIGITS)}f}"
    return text if float(text) else f"<{10.0**-MATRIX_DIGITS:g}"


def format_time(seconds: float, relative: float | None = None) -> str:
    """``5.51 µs``, ``19.37 ms``: in the unit that leaves one to three digits before the point."""
    for size, unit in _TIMES:
        text = format_number(seconds / size, relative)
        if float(text) < 1000:
            return f"{text} {unit}"
    return f"{format_number(seconds, relative)} s"


def format_rate(bytes_per_second: float, relative: float | None = None) -> str:
    """A rate in GB/s (10^9 bytes per second), without the unit."""
    return format_number(bytes_per_second / 1e9, relative)


def format_relative(relative: float | None) -> str:
    """``±0.6 %``, ``±19 %``, ``<0.1 %``; ``>100 %`` from where digits say nothing of the value;
    a dash if there is no interval."""
    if relative is None:
        return "—"
    if relative < 0.0005:
        return "<0.1 %"
    if relative > 1:
        return ">100 %"
    return f"±{relative * 100:.1f} %" if relative < 0.0995 else f"±{relative * 100:.0f} %"


def count(number: int, what: str) -> str:
    """``1 curve``, ``2 curves``, ``3 series``, ``2 processes``."""
    if number == 1 or what == "series":
        return f"{number} {what}"
    return f"{number} {plural(what)}"


def plural(what: str) -> str:
    """``curves``, ``processes``."""
    return f"{what}{'es' if what.endswith('ss') else 's'}"


def format_seconds(seconds: float) -> str:
    """``8 s``, ``2 min 05 s``, ``1 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
