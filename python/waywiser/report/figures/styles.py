"""One colour and marker for each method, the same in all figures of a report; and the markers, as
outlines that a figure scales and moves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from waywiser.report.figures.theme import SERIES, Colour

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

    No two methods have the same style. Two in one figure have different colours, and different
    markers, if there are enough of them. Methods in ``first`` get the first styles; after them
    those in the most figures.
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
        colours, markers = ({part(each) for each in known} for part in (colour_of, marker_of))
        found[method] = min(
            (n for n in range(len(drawn) + STYLES) if n not in found.values()),
            key=lambda n: (colour_of(n) in colours, marker_of(n) in markers),
        )
    return found


def colour_of(style: Style) -> Colour:
    return SERIES[style % len(SERIES)]


def marker_of(style: Style) -> int:
    """The number of its marker: another one each time that the colours begin anew."""
    return (style + style // len(SERIES)) % len(MARKERS)
