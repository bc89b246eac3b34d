"""Colours that can be told from what is behind them (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import pytest

from waywiser.report.figures.theme import ALL, HEAT, HEAT_INK, INK, PAPER, SERIES, SOFT, Colour

TEXT = 4.5
GRAPHICS = 3.0


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


def test_every_variable_is_one() -> None:
    assert len({colour.variable for colour in ALL}) == len(ALL)
