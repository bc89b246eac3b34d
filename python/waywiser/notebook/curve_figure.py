"""Bandwidth or latency over size as a figure of matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal, NamedTuple

from matplotlib.figure import Figure

from waywiser.curves import Curve
from waywiser.curves.sizes import joined
from waywiser.render.figures.theme import INK, LINE, SERIES, SOFT
from waywiser.stats import Interval
from waywiser.words import WaywiserError, format_bytes, visible

CurveQuantity = Literal["bandwidth", "latency"]

QUANTITIES: tuple[CurveQuantity, ...] = ("bandwidth", "latency")

INCHES = (7.0, 4.2)
LEGEND_INCHES = 0.22
"""Height of one line of the legend, which is below the axes."""

MARKERS = "osD^vPX*"


class NothingToPlot(WaywiserError):
    """No curve that was asked for has the quantity at any size."""


class CurveFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        found = io.BytesIO()
        self.savefig(found, format="png", dpi=110)
        return found.getvalue()


class _Plotted(NamedTuple):
    bytes: int
    value: float
    interval: Interval


def curve_figure(
    curves: Sequence[Curve], quantity: CurveQuantity, title: str, *, named: bool
) -> CurveFigure:
    """Points with their 95 % intervals over size, joined by lines between neighbours of a sweep.

    Raises `NothingToPlot` if no curve has the quantity, and for curves that the caller ``named`` if
    one of them has not.
    """
    if quantity not in QUANTITIES:
        raise NothingToPlot(
            f"{quantity!r} is no quantity", remedy=f"write {' or '.join(QUANTITIES)}"
        )
    drawn = [(curve, _points(curve, quantity)) for curve in curves]
    empty = [curve.name for curve, points in drawn if not points]
    if len(empty) == len(drawn) or (named and empty):
        what = f"{empty[0]} has no" if named and empty else "no headline path has a"
        raise NothingToPlot(
            f"{what} {quantity} over size", remedy="name other paths of profile.series"
        )
    drawn = [(curve, points) for curve, points in drawn if points]
    size = (INCHES[0], INCHES[1] + LEGEND_INCHES * len(drawn))
    figure = CurveFigure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for (curve, points), colour, marker in zip(drawn, cycle(SERIES), cycle(MARKERS), strict=False):
        _draw(axes, points, colour.light, marker, _plain(curve.name))
    bounds = {_bound(curve) for curve, _ in drawn}
    if quantity == "bandwidth" and len(bounds) == 1 and (bound := bounds.pop()):
        axes.axhline(bound, color=SOFT.light, linestyle="--", linewidth=1,
                     label=f"bound {bound:.4g} GB/s")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda size, _: format_bytes(round(size)) if size >= 1 else "")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("size")
    axes.set_ylabel("bandwidth in GB/s" if quantity == "bandwidth" else "latency in µs")
    axes.set_title(_plain(title), color=INK.light, loc="left")
    axes.grid(True, color=LINE.light, linewidth=0.6)
    figure.legend(loc="outside lower left", frameon=False, fontsize="small")
    return figure


def _draw(axes: Any, points: Sequence[_Plotted], colour: str, marker: str, label: str) -> None:
    sizes, values = [point.bytes for point in points], [point.value for point in points]
    below = [point.value - point.interval.low for point in points]
    above = [point.interval.high - point.value for point in points]
    axes.errorbar(sizes, values, yerr=[below, above], color=colour, marker=marker, markersize=4,
                  linestyle="none", elinewidth=1.3, capsize=2, label=label)  # fmt: skip
    for part in joined(sizes):
        axes.plot(sizes[part], values[part], color=colour, linewidth=1.3)


def _plain(text: str) -> str:
    """The text without what matplotlib would take for mathematics."""
    return visible(text).replace("$", r"\$")


def _points(curve: Curve, quantity: CurveQuantity) -> list[_Plotted]:
    """GB/s or microseconds; a value without an interval has one of no width."""
    known = [(point.bytes, point.measured) for point in curve.measured if point.bytes]
    if quantity == "bandwidth":
        rates = ((size, found.rate) for size, found in known if found.rate)
        return [_plotted(size, rate.value, rate.interval, 1e-9) for size, rate in rates]
    return [_plotted(size, found.median, found.interval, 1e6) for size, found in known]


def _plotted(size: int, value: float, interval: Interval | None, scale: float) -> _Plotted:
    low, high = (value, value) if interval is None else (interval.low, interval.high)
    return _Plotted(size, value * scale, Interval(low * scale, high * scale))


def _bound(curve: Curve) -> float:
    """GB/s; 0 if it is not known."""
    bound = curve.measured[-1].bound
    return 0.0 if bound is None else bound.bytes_per_second / 1e9
