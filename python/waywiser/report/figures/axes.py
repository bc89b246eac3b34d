"""Logarithmic axes of sizes, rates and times, with few and readable labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from waywiser.report.figures.theme import INK, LINE, SOFT
from waywiser.words import format_bytes

MOST_SIZES = 7
"""Labels below an axis of some 350 points."""

LEAST_SPAN = math.log10(4)
"""Of an axis: small differences stay small to the eye."""

_SECONDS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


def plain(axes: Any) -> None:
    """No frame but the line below; a light grid."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE.sentinel)
    axes.patch.set_visible(False)
    axes.grid(True, color=LINE.sentinel, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=SOFT.sentinel, labelsize=11, pad=5)


def of_sizes(axes: Any, sizes: Sequence[int]) -> None:
    """The x axis: powers of two, labelled where there is room."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    room = max((high - low) * 0.04, 0.3)
    axes.set_xlim(2 ** (low - room), 2 ** (high + room))
    step = max(1, math.ceil((high - low) / (MOST_SIZES - 1)))
    shown = [2**n for n in range(math.ceil(low), math.floor(high) + 1, step)] or [min(sizes)]
    axes.xaxis.set_major_locator(FixedLocator([float(size) for size in shown]))
    axes.xaxis.set_major_formatter(FixedFormatter([format_bytes(size) for size in shown]))
    axes.xaxis.set_minor_locator(NullLocator())


def of_rates(axes: Any, low: float, high: float) -> None:
    """The y axis in GB/s; values are in GB/s."""
    _decades(axes, low, high, lambda value: f"{value:g}")


def of_times(axes: Any, low: float, high: float) -> None:
    """The y axis of seconds, with their unit."""
    _decades(axes, low, high, _time)


def title(axes: Any, text: str) -> None:
    """What the y axis is, above it, where it can be read."""
    axes.set_title(text, loc="left", fontsize=11, color=INK.sentinel, pad=8)


def _decades(axes: Any, low: float, high: float, label: Any) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axes.set_yscale("log")
    bottom, top = math.log10(low), math.log10(high)
    if (lacking := LEAST_SPAN - (top - bottom)) > 0:
        bottom, top = bottom - lacking / 2, top + lacking / 2
    room = max((top - bottom) * 0.06, 0.05)
    axes.set_ylim(10 ** (bottom - room), 10 ** (top + room))
    shown = _ticks(bottom - room, top + room)
    axes.yaxis.set_major_locator(FixedLocator(shown))
    axes.yaxis.set_major_formatter(FixedFormatter([label(value) for value in shown]))
    axes.yaxis.set_minor_locator(NullLocator())


def _ticks(bottom: float, top: float) -> list[float]:
    """Decades; in a short range also 2 and 5, or 1 to 9."""
    span = top - bottom
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span < 0.9 else (1, 2, 5) if span < 2.6 else (1,)
    stride = max(1, math.ceil(span / 7))
    decades = range(math.floor(bottom), math.ceil(top) + 1)
    values = [s * 10.0**n for n in decades if n % stride == 0 for s in steps]
    return [value for value in values if bottom <= math.log10(value) <= top]


def _time(seconds: float) -> str:
    for scale, unit in reversed(_SECONDS):
        if seconds >= scale * 0.9999:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
