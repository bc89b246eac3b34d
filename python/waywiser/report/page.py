"""A report as one page that needs nothing else: no network, no script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.report.figures import theme
from waywiser.report.figures.render import inline, key_sign
from waywiser.report.parts import (
    MARKS,
    SEVERITIES,
    Document,
    Picture,
    shown_of,
    shown_there,
)
from waywiser.words.visible import visible

if TYPE_CHECKING:
    from markupsafe import Markup

SHORT_ROWS = 12
"""Rows up to which a table is printed on one page."""

MOST_IN_PRINTED_COLUMN = 380.0
"""The widest figure whose text can be read if it is printed in half a page's width."""

TEMPLATES = Path(__file__).parent / "templates"

_WHOLE = re.compile(r"(&lt;-&gt;|-&gt;|(?<![\w-])--[a-z][a-z-]*|\d+ × [\d.]+ [KMGT]?i?B)")


def page(document: Document) -> str:
    """The whole page. Every text is escaped; what is drawn, drawn now."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawings = {id(picture): picture.draw() for picture in document.pictures()}
    names = {id(picture): f"figure-{n}" for n, picture in enumerate(document.pictures(), 1)}

    def drawn(picture: Picture) -> Markup:
        return Markup(inline(picture, drawings[id(picture)], names[id(picture)]))

    def keys(picture: Picture) -> list[tuple[Markup, str]]:
        return [(Markup(key_sign(key)), key.name) for key in drawings[id(picture)].keys]

    def classes(picture: Picture) -> str:
        drawn = drawings[id(picture)]
        marked = {
            "wide": picture.wide,
            "named": drawn.names_from is not None,
            "large": drawn.axes_width > MOST_IN_PRINTED_COLUMN,
        }
        return " ".join(name for name, is_so in marked.items() if is_so)

    environment.filters["text"] = _text
    environment.globals.update(
        drawn=drawn,
        classes=classes,
        keys=keys,
        kind=lambda part: type(part).__name__.lower(),  # the name of its macro
        marks=MARKS,
        severities=SEVERITIES,
        short_rows=SHORT_ROWS,
        shown_of=shown_of,
        shown_there=shown_there,
        name=lambda p: names[id(p)],
        notes=lambda p: drawings[id(p)].notes,
        width=lambda p: f"{drawings[id(p)].width:g}px",
        cropped=lambda p: f"{drawings[id(p)].width / drawings[id(p)].axes_width:.4f}",
    )
    template = environment.get_template("page.html.j2")
    return visible(template.render(document=document, style=Markup(_style())))


def _style() -> str:
    """The style sheet of the page."""
    style = (TEMPLATES / "page.css").read_text()
    for dark, word in ((False, "LIGHT"), (True, "DARK")):
        style = style.replace(f"/* {word} */", theme.style_sheet(dark))
    return style


def _text(text: str) -> Markup:
    """Escaped, with arrows, options and ``2 × 64 MiB`` that no line breaks in two."""
    from markupsafe import Markup, escape

    escaped = escape(text)
    if "-" not in text and "×" not in text:  # as in most cells
        return escaped
    return Markup(_WHOLE.sub(r'<span class="whole">\1</span>', str(escaped)))
