"""A report as one page that needs nothing else: no network, no script."""

from __future__ import annotations

from pathlib import Path

from waywiser.report.figures import theme
from waywiser.report.figures.render import inline
from waywiser.report.parts import MARKS, SEVERITIES, SIGNS, Block, Document, Picture, told_there

TEMPLATES = Path(__file__).parent / "templates"

_KINDS = {
    "Words": "words",
    "Listing": "listing",
    "Facts": "facts",
    "Code": "code",
    "Remarks": "remarks",
    "Verdict": "verdict",
    "Sheet": "sheet",
    "Pictures": "pictures",
    "Fold": "fold",
}
"""The template's macro for each kind of block."""


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
    names = {id(picture): f"figure-{n}" for n, picture in enumerate(document.pictures(), 1)}

    def drawn(picture: Picture) -> Markup:
        return Markup(inline(picture, names[id(picture)]))

    environment.globals.update(
        drawn=drawn,
        kind=_kind,
        marks=MARKS,
        severities=SEVERITIES,
        signs=SIGNS,
        told_there=told_there,
        name=lambda p: names[id(p)],
    )
    style = (TEMPLATES / "page.css").read_text()
    for dark, word in ((False, "LIGHT"), (True, "DARK")):
        style = style.replace(f"/* {word} */", theme.style_sheet(dark))
    return environment.get_template("page.html.j2").render(document=document, style=Markup(style))


def _kind(block: Block) -> str:
    return _KINDS[type(block).__name__]
