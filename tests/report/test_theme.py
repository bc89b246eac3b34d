"""Colours that can be distinguished from what is behind them (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from waywiser.render.figures.theme import (
    ALL,
    FIRST,
    HEAT,
    HEAT_INK,
    INK,
    PAPER,
    SERIES,
    SOFT,
    Colour,
)

TEXT = 4.5
GRAPHICS = 3.0

Matrix = NDArray[np.float64]

VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip
"""What readers see of linear RGB (Machado, Oliveira and Fernandes, 2009, severity 1)."""

TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
TO_OKLAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip

LEAST_DISTANCE = 0.08
"""In Oklab. Neighbours on a scale of ten greys are 0.1 apart."""
LEAST_OF_ALL = 0.055
"""The same of all colours, which are not all in one figure."""


def oklab(colour: str, vision: Matrix) -> Matrix:
    channels = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(vision @ linear, 0, 1)
    found: Matrix = TO_OKLAB @ np.cbrt(TO_CONES @ seen)
    return found


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", [INK, SOFT, *SERIES], ids=lambda c: c.variable)
def test_lines_and_labels_stand_out(colour: Colour, theme: str) -> None:
    least = TEXT if colour in (INK, SOFT) else GRAPHICS
    assert contrast(getattr(colour, theme), getattr(PAPER, theme)) >= least


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("step", range(len(HEAT)))
def test_figures_in_cells_can_be_read(step: int, theme: str) -> None:
    assert contrast(getattr(HEAT[step], theme), getattr(HEAT_INK[step], theme)) >= TEXT


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
def test_colours_of_curves_are_distinguished_by_every_reader(vision: str, theme: str) -> None:
    for colours, least in ((FIRST, LEAST_DISTANCE), (SERIES, LEAST_OF_ALL)):
        seen = [oklab(getattr(colour, theme), VISION[vision]) for colour in colours]
        distances = [float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)]
        assert min(distances) >= least


def test_every_variable_is_one() -> None:
    assert len({colour.variable for colour in ALL}) == len(ALL)
