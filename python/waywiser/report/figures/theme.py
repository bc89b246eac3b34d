"""The colours and markers of figures. On a page they are variables of its style sheet; on its own
a figure has the light theme.
"""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """One colour of a figure."""

    variable: str
    """The variable of the page's style sheet."""
    light: str
    dark: str


INK = Colour("--ink", "#1b1f24", "#e6e9ed")
SOFT = Colour("--soft", "#5a636e", "#a3adb8")
LINE = Colour("--line", "#d5d9de", "#3a414a")
PAPER = Colour("--paper", "#ffffff", "#14171b")
PANEL = Colour("--panel", "#f4f6f8", "#1d2228")

SERIES = (
    Colour("--s1", "#0b5fa5", "#6cb2f5"),
    Colour("--s2", "#b34700", "#ff9a5c"),
    Colour("--s3", "#00704a", "#4fd0a0"),
    Colour("--s4", "#7b3aa0", "#d29bf0"),
    Colour("--s5", "#75590a", "#e0bd4f"),
    Colour("--s6", "#006b80", "#55cbe0"),
    Colour("--s7", "#a82a63", "#f590bf"),
    Colour("--s8", "#555b63", "#b8bec6"),
)
"""As distinct to the colour-blind in this order as colours can be (after Okabe and Ito, *Color
Universal Design*, 2008), and each with a marker of its own."""

HEAT = (
    Colour("--h1", "#eef4fb", "#182430"),
    Colour("--h2", "#d6e5f5", "#1c3550"),
    Colour("--h3", "#b3d0ec", "#22496f"),
    Colour("--h4", "#86b3de", "#2a6092"),
    Colour("--h5", "#3474b0", "#8abde9"),
    Colour("--h6", "#1f629f", "#b3d5f3"),
    Colour("--h7", "#0f4577", "#dcecfa"),
)
"""Colours from the least to the most."""

HEAT_INK = (
    Colour("--t1", "#1b1f24", "#e6e9ed"),
    Colour("--t2", "#1b1f24", "#e6e9ed"),
    Colour("--t3", "#1b1f24", "#e6e9ed"),
    Colour("--t4", "#10141a", "#ffffff"),
    Colour("--t5", "#ffffff", "#0d1a26"),
    Colour("--t6", "#ffffff", "#0d1a26"),
    Colour("--t7", "#ffffff", "#0d1a26"),
)
"""Colours of the figures on them."""

ALL = (INK, SOFT, LINE, PAPER, PANEL, *SERIES, *HEAT, *HEAT_INK)


def style_sheet(dark: bool) -> str:
    """The variables of a theme, as declarations."""
    return " ".join(f"{c.variable}: {c.dark if dark else c.light};" for c in ALL)


def series(number: int) -> Colour:
    """The colour of the n-th series of a figure, from 0."""
    return SERIES[number % len(SERIES)]
