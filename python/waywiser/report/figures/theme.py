"""The colours of figures: drawn as sentinels, which the page replaces by its own variables.

A sentinel is an RGB value that nothing else uses. On its own a figure has the light theme.
"""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """One colour of a figure."""

    variable: str
    """Of the page's style sheet."""
    sentinel: str
    light: str
    dark: str


INK = Colour("--ink", "#f10001", "#1b1f24", "#e6e9ed")
SOFT = Colour("--soft", "#f10002", "#5a636e", "#a3adb8")
LINE = Colour("--line", "#f10003", "#d5d9de", "#3a414a")
PAPER = Colour("--paper", "#f10004", "#ffffff", "#14171b")
PANEL = Colour("--panel", "#f10005", "#f4f6f8", "#1d2228")

SERIES = (
    Colour("--s1", "#f20001", "#0b5fa5", "#6cb2f5"),
    Colour("--s2", "#f20002", "#b34700", "#ff9a5c"),
    Colour("--s3", "#f20003", "#00704a", "#4fd0a0"),
    Colour("--s4", "#f20004", "#7b3aa0", "#d29bf0"),
    Colour("--s5", "#f20005", "#75590a", "#e0bd4f"),
    Colour("--s6", "#f20006", "#006b80", "#55cbe0"),
    Colour("--s7", "#f20007", "#a82a63", "#f590bf"),
    Colour("--s8", "#f20008", "#555b63", "#b8bec6"),
)
"""Distinct to the colour-blind in this order as far as colours can be (after Okabe and Ito, *Color
Universal Design*, 2008), and each with a marker of its own."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

HEAT = (
    Colour("--h1", "#f30001", "#eef4fb", "#182430"),
    Colour("--h2", "#f30002", "#d6e5f5", "#1c3550"),
    Colour("--h3", "#f30003", "#b3d0ec", "#22496f"),
    Colour("--h4", "#f30004", "#86b3de", "#2a6092"),
    Colour("--h5", "#f30005", "#3474b0", "#8abde9"),
    Colour("--h6", "#f30006", "#1f629f", "#b3d5f3"),
    Colour("--h7", "#f30007", "#0f4577", "#dcecfa"),
)
"""From the least to the most."""

HEAT_INK = (
    Colour("--t1", "#f40001", "#1b1f24", "#e6e9ed"),
    Colour("--t2", "#f40002", "#1b1f24", "#e6e9ed"),
    Colour("--t3", "#f40003", "#1b1f24", "#e6e9ed"),
    Colour("--t4", "#f40004", "#10141a", "#ffffff"),
    Colour("--t5", "#f40005", "#ffffff", "#0d1a26"),
    Colour("--t6", "#f40006", "#ffffff", "#0d1a26"),
    Colour("--t7", "#f40007", "#ffffff", "#0d1a26"),
)
"""Of the figures on them."""

ALL = (INK, SOFT, LINE, PAPER, PANEL, *SERIES, *HEAT, *HEAT_INK)


def style_sheet(dark: bool) -> str:
    """The variables of a theme, as declarations."""
    return " ".join(f"{c.variable}: {c.dark if dark else c.light};" for c in ALL)


def series(number: int) -> tuple[str, str]:
    """(sentinel, marker) of the n-th series of a figure, from 0."""
    return SERIES[number % len(SERIES)].sentinel, MARKERS[number % len(MARKERS)]
