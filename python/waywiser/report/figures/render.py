"""A drawn figure as SVG for a page, as an SVG file, and as PDF."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

from waywiser.report.figures.theme import ALL
from waywiser.report.parts import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

POINTS_PER_INCH = 72
"""Of an SVG and a PDF: figures are laid out in points, which a page takes for pixels."""

MADE = "Made by waywiser report"
"""In every file that a report writes, so that it may be replaced by the next."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "waywiser",
    "pdf.fonttype": 42,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
}
"""Text stays text, and the same figure gives the same bytes."""

_SIZED = re.compile(r'<svg [^>]*?viewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>')
_ID = re.compile(r' id="([^"]+)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^")]+)')

_COORDINATES = re.compile(r' (?:d|x|y|transform|points)="[^"]*"')
_LONG = re.compile(r"(\.\d{2})\d+")
"""A hundredth of a point is nothing that is seen."""


def canvas(width: float, height: float) -> Canvas:
    """An empty figure of so many points."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(_SETTINGS)
    size = (width / POINTS_PER_INCH, height / POINTS_PER_INCH)
    return Figure(figsize=size, dpi=POINTS_PER_INCH, facecolor="none")


def inline(picture: Picture, prefix: str) -> str:
    """``<svg>`` for a page: named, described, in the page's colours and font, scaling with it.

    ``prefix`` keeps its identifiers apart from those of other figures.
    """
    text = _svg(picture.draw())
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    referred = {match[1] for match in _REFERENCE.findall(text)}
    text = _ID.sub(lambda m: f' id="{prefix}-{m[1]}"' if m[1] in referred else "", text)
    text = _REFERENCE.sub(rf"\1{prefix}-\2", text)
    text = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", "var(--font)", text)
    text = _COORDINATES.sub(lambda m: _LONG.sub(r"\1", m[0]), text)
    for colour in ALL:
        text = text.replace(colour.sentinel, f"var({colour.variable})")
    head = (
        f'<svg class="figure" viewBox="0 0 \\1 \\2" style="--width: \\1px" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-desc">'
        f'<title id="{prefix}-title">{_literal(picture.title)}</title>'
        f'<desc id="{prefix}-desc">{_literal(picture.description)}</desc>'
    )
    return _SIZED.sub(head, text, count=1)


def svg_file(picture: Picture) -> str:
    """A file of its own, in the light theme."""
    text = _svg(picture.draw())
    for colour in ALL:
        text = text.replace(colour.sentinel, colour.light)
    title = f"<title>{escape(picture.title)}</title><desc>{escape(picture.description)}</desc>"
    at = text.index(">", text.index("<svg")) + 1
    return f"{text[:at]}\n{title}<!-- {MADE} -->{text[at:]}"


def pdf_file(picture: Picture) -> bytes:
    """The same as PDF, with its fonts."""
    drawn = picture.draw()
    light = {colour.sentinel: colour.light for colour in ALL}
    _recolour(drawn, light)
    stream = io.BytesIO()
    about = {"Title": picture.title, "Creator": MADE, "CreationDate": None}
    drawn.savefig(stream, format="pdf", metadata=about)
    return stream.getvalue()


def _svg(drawn: Canvas) -> str:
    stream = io.StringIO()
    drawn.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _recolour(drawn: Canvas, to: dict[str, str]) -> None:
    """Every artist's colours, which PDF writes as numbers."""
    from matplotlib.colors import to_hex

    def exchange(colours: object) -> object:
        if isinstance(colours, str):
            return to.get(colours.lower(), colours)
        return colours

    for artist in drawn.findobj():
        for kind in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            get, put = getattr(artist, f"get_{kind}", None), getattr(artist, f"set_{kind}", None)
            if get is None or put is None:
                continue
            found = get()
            if isinstance(found, str):
                put(exchange(found))
                continue
            many = found if getattr(found, "ndim", 1) == 2 else [found]
            if len(many) and len(many[0]) in (3, 4) and not isinstance(many[0], str):
                opacity = float(many[0][3]) if len(many[0]) == 4 else 1.0
                known = to.get(to_hex(many[0]))
                if known is not None and opacity:
                    put(known)


def _literal(text: str) -> str:
    return escape(text).replace("\\", "\\\\")
