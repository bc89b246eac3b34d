"""A figure as SVG for a page, as an SVG file, as PDF and as PNG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from waywiser.render.figures.drawing import Drawing, Key, Shape, Text
from waywiser.render.figures.text_width import BOLD, folded
from waywiser.render.figures.theme import INK, PAPER, Colour
from waywiser.render.parts import Picture
from waywiser.words import WaywiserError

POINTS_PER_INCH = 72

PIXELS_PER_INCH = 192
"""The resolution of PNG: sharp on screens with two pixels for each point of a page."""

MADE = "Made by waywiser report"
"""A mark in every file that a report writes, so that it may be replaced by the next."""

MARGIN = 10.0
TITLE_SIZE = 12.0
TITLE_ROOM = 18.0
"""The margin of a PNG, the size of its title, and the height of a line of it."""

FONT = "DejaVu Sans"

_PRECISE = "text-rendering: geometricPrecision"
"""Letters as wide as their font says: rounded to pixels, small text would become wider."""

_SETTINGS: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "font.family": ["sans-serif"],
    "font.sans-serif": [FONT],
    "lines.scale_dashes": False,
    "text.hinting": "none",
    "text.parse_math": False,
}
"""Text stays text in PDF, and is as wide in PNG as its font says."""


class NoMatplotlib(WaywiserError):
    """PDF and PNG are asked for, and matplotlib cannot be imported."""


def inline(picture: Picture, drawn: Drawing, prefix: str) -> str:
    """``<svg>`` for a page: named, described, in the page's colours and font, scaling with it.

    ``prefix`` keeps its identifiers apart from those of other figures. An element around it says
    how wide it is (``--width``).
    """
    return (
        f'<svg class="figure" viewBox="0 0 {drawn.width:g} {drawn.height:g}" '
        f'style="font-family: var(--font); {_PRECISE}" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-desc">\n'
        f'<title id="{prefix}-title">{escape(picture.title)}</title>\n'
        f'<desc id="{prefix}-desc">{escape(picture.description)}</desc>\n'
        f"{_page_elements(drawn)}\n</svg>"
    )


def _page_elements(drawn: Drawing) -> str:
    """All marks, the names beside the axes in a group of their own: a narrow frame hides it."""
    axes = _elements(drawn.marks[: drawn.names_from], _of_page)
    if drawn.names_from is None:
        return axes
    names = _elements(drawn.marks[drawn.names_from :], _of_page)
    return f'{axes}\n<g class="names">\n{names}\n</g>'


def _of_page(colour: Colour) -> str:
    return f"var({colour.variable})"


def key_sign(key: Key) -> str:
    """The marker of a curve in the text of a page."""
    if key.colour is None:
        return "="
    marker = Drawing(1, 1)
    marker.markers([(0.5, 0.5)], key.marker, key.colour, 1.0)
    elements = _elements(marker.marks, _of_page)
    return f'<svg viewBox="0 0 1 1" aria-hidden="true">{elements}</svg>'


def svg_file(picture: Picture) -> str:
    """A file of its own: the light theme on white, which can be read on a dark page too."""
    drawn = picture.draw().with_text_below()
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawn.width:g}pt" '
        f'height="{drawn.height:g}pt" viewBox="0 0 {drawn.width:g} {drawn.height:g}" '
        f"style=\"font-family: '{FONT}', sans-serif; stroke-linejoin: round; {_PRECISE}\">\n"
        f"<title>{escape(picture.title)}</title>\n<desc>{escape(picture.description)}</desc>\n"
        f"<!-- {MADE} -->\n"
        f'<rect width="100%" height="100%" fill="{PAPER.light}"/>\n'
        f"{_elements(drawn.marks, lambda colour: colour.light)}\n</svg>\n"
    )


def pdf_file(picture: Picture) -> bytes:
    """The same as PDF, with its fonts. Raises `NoMatplotlib`."""
    about = {"Title": picture.title, "Creator": MADE, "CreationDate": None}
    return _by_matplotlib(picture.draw().with_text_below(), "none", format="pdf", metadata=about)


def png_file(picture: Picture) -> bytes:
    """The same as PNG, on white, with its title and a margin: it is shown where there is no
    caption. Raises `NoMatplotlib`."""
    drawn = picture.draw().with_text_below()
    title = list(folded(picture.title, TITLE_SIZE * BOLD, drawn.width))
    top = MARGIN + TITLE_ROOM * len(title)
    titled = Drawing(drawn.width + 2 * MARGIN, top + drawn.height + MARGIN)
    for n, line in enumerate(title):
        titled.text(MARGIN, MARGIN + TITLE_ROOM * (n + 0.4), line, INK, size=TITLE_SIZE, bold=True)
    titled.add(drawn, MARGIN, top)
    about = {"Title": picture.title, "Description": picture.description, "Software": MADE}
    return _by_matplotlib(titled, PAPER.light, format="png", dpi=PIXELS_PER_INCH, metadata=about)


def _by_matplotlib(drawn: Drawing, ground: str, **saved: Any) -> bytes:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoMatplotlib(
            f"PDF and PNG need matplotlib, and it cannot be imported ({error})",
            remedy="pip install matplotlib, or write --format svg",
        ) from None
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font does not have is drawn as a box
        size = (drawn.width / POINTS_PER_INCH, drawn.height / POINTS_PER_INCH)
        figure = Figure(figsize=size, dpi=POINTS_PER_INCH, facecolor=ground)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawn.width), ylim=(drawn.height, 0))
        axes.set_axis_off()
        for order, mark in enumerate(drawn.marks):
            if isinstance(mark, Shape):
                axes.add_patch(_patch(mark, order))
            else:
                axes.text(mark.x, mark.y, mark.text, color=mark.colour.light, zorder=order,
                          ha=_ALIGNED[mark.anchor], va="baseline", fontsize=mark.size,
                          fontweight="bold" if mark.bold else "normal")  # fmt: skip
        stream = io.BytesIO()
        figure.savefig(stream, **saved)
    return stream.getvalue()


_ALIGNED = {"start": "left", "middle": "center", "end": "right"}


def _patch(shape: Shape, order: int) -> Any:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = {"M": Path.MOVETO, "L": Path.LINETO, "Q": Path.CURVE3, "C": Path.CURVE4}
    found = []
    for command, points in shape.steps:
        if command == "Z":
            found.append(((0.0, 0.0), Path.CLOSEPOLY))
        found += [(point, codes[command]) for point in points]
    return PathPatch(
        Path([point for point, _ in found], [code for _, code in found]),
        facecolor=shape.fill.light if shape.fill else "none",
        edgecolor=shape.stroke.light if shape.stroke else "none",
        linewidth=shape.width,
        linestyle=(0, shape.dashes) if shape.dashes else "-",
        alpha=shape.opacity,
        capstyle="butt",
        joinstyle="round",
        zorder=order,
    )


def _elements(marks: Sequence[Shape | Text], paint: Callable[[Colour], str]) -> str:
    return "\n".join(
        _path(mark, paint) if isinstance(mark, Shape) else _text(mark, paint) for mark in marks
    )


def _path(shape: Shape, paint: Callable[[Colour], str]) -> str:
    """Its coordinates to a hundredth of a point, which is invisible."""
    data = "".join(
        command + " ".join(f"{_number(x)} {_number(y)}" for x, y in points)
        for command, points in shape.steps
    )
    style = [f"fill: {paint(shape.fill) if shape.fill else 'none'}"]
    if shape.stroke is not None:
        style += [f"stroke: {paint(shape.stroke)}", f"stroke-width: {shape.width:g}"]
    if shape.dashes:
        style.append(f"stroke-dasharray: {','.join(map(_number, shape.dashes))}")
    if shape.opacity < 1:
        style.append(f"opacity: {shape.opacity:g}")
    return f'<path d="{data}" style="{"; ".join(style)}"/>'


def _text(text: Text, paint: Callable[[Colour], str]) -> str:
    style = [
        f"font-size: {text.size:g}px",
        f"text-anchor: {text.anchor}",
        f"fill: {paint(text.colour)}",
    ]
    if text.bold:
        style.append("font-weight: 700")
    at = f'x="{_number(text.x)}" y="{_number(text.y)}"'
    return f'<text {at} style="{"; ".join(style)}">{escape(text.text)}</text>'


def _number(value: float) -> str:
    return f"{round(value, 2):g}"
