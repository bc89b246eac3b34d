"""One colour and marker for each method, the same in all figures of a report; and the markers, as
outlines that a figure scales and moves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal

from waywiser.render.figures.theme import SERIES, Colour

Position = tuple[float, float]
Step = tuple[Literal["M", "L", "Q", "C", "Z"], tuple[Position, ...]]
"""A command of an SVG path with its points: move, line, quadratic and cubic curve, close."""

Steps = tuple[Step, ...]


def _polygon(*corners: tuple[float, float]) -> Steps:
    first, *others = corners
    return (("M", (first,)), *(("L", (corner,)) for corner in others), ("Z", ()))


def _circle() -> Steps:
    """Four curves of Bézier."""
    radius, bend = 0.5, 0.5 * 0.5523
    found: list[Step] = [("M", ((radius, 0.0),))]
    for cos, sin in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        quarter = ((radius, bend), (bend, radius), (0.0, radius))
        turned = tuple((x * cos - y * sin, x * sin + y * cos) for x, y in quarter)
        found.append(("C", turned))
    return (*found, ("Z", ()))


def _star() -> Steps:
    """A star with five rays."""
    radii = (0.5, 0.5 * 0.382)
    turns = [(radii[n % 2], math.pi * n / 5) for n in range(10)]
    return _polygon(*((r * math.sin(turn), -r * math.cos(turn)) for r, turn in turns))


def _cross(reach: float, half: float) -> list[tuple[float, float]]:
    """Upright, with arms of so much and half their width."""
    quarter = [(half, -reach), (half, -half), (reach, -half)]
    turns = ((1, 0), (0, 1), (-1, 0), (0, -1))
    return [(x * cos - y * sin, x * sin + y * cos) for cos, sin in turns for x, y in quarter]


_SLANT = math.sqrt(0.5)

MARKERS: tuple[Steps, ...] = (
    _circle(),
    _polygon((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    _polygon((0.0, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    _polygon((0.0, -_SLANT), (_SLANT, 0.0), (0.0, _SLANT), (-_SLANT, 0.0)),
    _polygon((0.0, 0.5), (-0.5, -0.5), (0.5, -0.5)),
    _polygon(*_cross(1 / 2, 1 / 6)),
    _polygon((0, -1/4), (1/4, -1/2), (1/2, -1/4), (1/4, 0), (1/2, 1/4), (1/4, 1/2),
             (0, 1/4), (-1/4, 1/2), (-1/2, 1/4), (-1/4, 0), (-1/2, -1/4), (-1/4, -1/2)),
    _star(),
)  # fmt: skip
"""Outlines around the origin, for a size of 1: circle, square, triangle, diamond, triangle on its
tip, plus, cross, star."""

Style = int
"""The number of a colour with a marker."""

STYLES = len(SERIES) * len(MARKERS)
"""All colours with all markers."""


def assigned(figures: Iterable[Sequence[str]], first: Iterable[str] = ()) -> dict[str, Style]:
    """A style for each method, given the methods that each figure draws.

    No two methods have the same style, and no two the same colour if there are enough of them. Two
    in one figure have colours that are far apart, and different markers. Methods in ``first`` get
    the first styles; after them those in the most figures.
    """
    drawn_with: dict[str, set[str]] = {}
    drawn: dict[str, int] = {}
    for figure in figures:
        for method in figure:
            drawn_with.setdefault(method, set()).update(figure)
            drawn[method] = drawn.get(method, 0) + 1
    begin = [method for method in dict.fromkeys(first) if method in drawn]
    others = sorted((each for each in drawn if each not in begin), key=lambda each: -drawn[each])
    found: dict[str, Style] = {}
    for method in (*begin, *others):
        known = [found[each] for each in drawn_with[method] if each in found]
        markers = {marker_of(each) for each in known}
        used = {colour_of(each) for each in found.values()}
        found[method] = min(
            (n for n in range(len(drawn) + STYLES) if n not in found.values()),
            key=lambda n: (colour_of(n) in used, _near(n, known), marker_of(n) in markers),
        )
    return found


FAR = 0.14
"""Distance of two colours in Oklab from which on a reader does not confuse them."""


def _near(style: Style, others: Sequence[Style]) -> float:
    """How much nearer than `FAR` its colour is to the nearest colour of others; 0 if none is."""
    nearest = min((distance(colour_of(style), colour_of(each)) for each in others), default=FAR)
    return round(max(0.0, FAR - nearest), 2)


@cache
def distance(one: Colour, other: Colour) -> float:
    """The distance in Oklab, in the theme where it is less."""
    return min(
        math.dist(_oklab(one.light), _oklab(other.light)),
        math.dist(_oklab(one.dark), _oklab(other.dark)),
    )


def _oklab(colour: str) -> tuple[float, ...]:
    """Lightness and two axes of colour (B. Ottosson, 2020)."""
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    cones = [math.cbrt(sum(a * b for a, b in zip(row, linear, strict=True))) for row in _CONES]
    return tuple(sum(a * b for a, b in zip(row, cones, strict=True)) for row in _LAB)


_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def colour_of(style: Style) -> Colour:
    return SERIES[style % len(SERIES)]


def marker_of(style: Style) -> int:
    """The number of its marker: another one each time that the colours begin anew."""
    return (style + style // len(SERIES)) % len(MARKERS)
