"""The markers of series, as outlines that a figure scales and moves."""

from __future__ import annotations

import math
from typing import Literal

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
