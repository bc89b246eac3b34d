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

FIRST = (
    Colour("--s1", "#164de5", "#48a3ff"),
    Colour("--s2", "#963c13", "#f27119"),
    Colour("--s3", "#2c9174", "#70fccc"),
    Colour("--s4", "#6d2693", "#8e59ee"),
    Colour("--s5", "#a77f14", "#fcd520"),
    Colour("--s6", "#0b6064", "#2e7699"),
    Colour("--s7", "#f147b3", "#cf1059"),
    Colour("--s8", "#383029", "#beb2af"),
)
"""Blue, orange, green, purple, yellow, cyan, pink, grey. Their lightness differs too, so that
readers who are colour-blind can distinguish all of them; a test simulates it."""

SERIES = (
    *FIRST,
    Colour("--s9", "#a178f8", "#b18a7d"),
    Colour("--s10", "#5c005e", "#a3cafe"),
    Colour("--s11", "#ac3baa", "#f8a660"),
    Colour("--s12", "#4202c3", "#8896bc"),
    Colour("--s13", "#82703c", "#cf24c2"),
    Colour("--s14", "#019dc8", "#baeb8a"),
    Colour("--s15", "#b80475", "#626b04"),
    Colour("--s16", "#474439", "#fe5bf4"),
    Colour("--s17", "#7c6ad9", "#18aa22"),
    Colour("--s18", "#7a2c05", "#885d72"),
    Colour("--s19", "#625b8a", "#c5cea6"),
    Colour("--s20", "#d05e69", "#66dfd5"),
    Colour("--s21", "#0a247d", "#e90297"),
    Colour("--s22", "#8c7ea0", "#a1b6da"),
    Colour("--s23", "#681003", "#c6a180"),
    Colour("--s24", "#5e563f", "#ab9fa5"),
)
"""As many as a report has methods, so that a colour means one method in all of its figures."""

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
    *(INK._replace(variable=f"--t{n}") for n in (1, 2, 3)),
    Colour("--t4", "#10141a", "#ffffff"),
    *(Colour(f"--t{n}", "#ffffff", "#0d1a26") for n in (5, 6, 7)),
)
"""Colours of the figures on them."""

ALL = (INK, SOFT, LINE, PAPER, PANEL, *SERIES, *HEAT, *HEAT_INK)


def style_sheet(dark: bool) -> str:
    """The variables of a theme, as declarations."""
    return " ".join(f"{c.variable}: {c.dark if dark else c.light};" for c in ALL)
