"""The width of a text before it is drawn, so that labels are placed without any installed font.

The widths are those of DejaVu Sans, which is wider than most fonts of screens, and 15 % more; at
least those of a monospaced font. A text may take less space than is kept for it, and not more.
"""

from __future__ import annotations

from collections.abc import Iterator

_WIDTHS = {
    318: " ,.·", 401: "!", 460: '"', 636: "$0123456789{}µ", 950: "%", 780: "&", 275: "'",
    390: "()[]", 500: "*_`–", 361: "-", 337: "/:;\\|", 531: "?", 684: "AV", 686: "B", 698: "C",
    770: "D", 632: "E", 575: "F", 775: "G", 752: "H", 295: "IJ", 656: "K", 557: "L", 863: "M",
    748: "N", 787: "OQ", 603: "P", 695: "R", 635: "Sbdgpq", 611: "TY", 732: "U", 989: "W",
    685: "XZ", 613: "a", 550: "c", 615: "e", 352: "f", 634: "hnu", 278: "ijl", 579: "k", 974: "m",
    612: "o", 411: "r", 521: "s", 392: "t", 592: "vxy", 818: "w", 525: "z", 838: "#+<=>^~→↔↓↑×±−",
}  # fmt: skip
"""Thousandths of the size of the font, and the characters that are so wide."""

_WIDTH = {character: width for width, several in _WIDTHS.items() for character in several}

WIDEST = 1000

WIDER = 1.15
"""Width of the widest proportional font over that of DejaVu Sans."""

MONOSPACED = 0.62
"""Width of a letter of the widest monospaced font over its size."""

BOLD = 1.14
"""Width of bold letters over that of others."""


def text_width(text: str, size: float) -> float:
    """The most that one line of text takes in a font of this size."""
    proportional = sum(_WIDTH.get(character, WIDEST) for character in text) / 1000
    return max(WIDER * proportional, MONOSPACED * len(text)) * size


def shortened(text: str, size: float, width: float) -> str:
    """The text, cut off with ``…`` if it is wider than ``width``."""
    if text_width(text, size) <= width:
        return text
    kept = text
    while kept and text_width(f"{kept}…", size) > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def folded(text: str, size: float, width: float) -> Iterator[str]:
    """The lines of a text that is folded between words at this width."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer, size) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line
