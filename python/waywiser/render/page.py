"""A report as one page that needs nothing else: no network, no script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.render.figures import theme
from waywiser.render.figures.render import inline, key_sign
from waywiser.render.parts import (
    MARKS,
    SEVERITIES,
    Assessment,
    Document,
    Picture,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetRow,
    Tile,
    shown_of,
    shown_there,
)
from waywiser.words import count, visible, with_sizes

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SHORT_ROWS = 12
"""Rows up to which a table is printed on one page."""

MOST_IN_PRINTED_COLUMN = 380.0
"""The widest figure whose text can be read if it is printed in half a page's width."""

MOST_WORDS = 132
"""Words on the first screen of one machine's report."""

BRAND, MORE, ALL_NUMBERS, TO_DO = "Waywiser report", "More", "All numbers", "To do:"
"""Texts of the first screen."""

TEMPLATES = Path(__file__).parent / "templates"

_WHOLE = re.compile(r"(&lt;-&gt;|-&gt;|(?<![\w-])--[a-z][a-z-]*|\d+ × [\d.]+ [KMGT]?i?B)")


@cache
def _environment() -> Environment:
    """Returns the environment of the template, without what depends on a document: to compile it
    takes longer than to render a page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["text"] = _text
    environment.globals.update(
        kind=lambda part: type(part).__name__.lower(),  # the name of its macro
        marks=MARKS,
        severities=SEVERITIES,
        grounds_of=_grounds,
        key_of_tiles=_key_of_tiles,
        percent=lambda share: f"{share:.0%}" if share else "",
        to_do=_to_do,
        texts={"brand": BRAND, "more": MORE, "all_numbers": ALL_NUMBERS, "to_do": TO_DO},
        short_rows=SHORT_ROWS,
        columns_of=_columns_of,
        details_of=_details_of,
        shown_of=shown_of,
        shown_there=shown_there,
    )
    return environment


def page(document: Document) -> str:
    """The whole page. Every text is escaped; what is drawn, drawn now."""
    from markupsafe import Markup

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

    rendered = (
        _environment()
        .get_template("page.html.j2")
        .render(
            document=document,
            style=Markup(_style()),
            drawn=drawn,
            classes=classes,
            keys=keys,
            name=lambda p: names[id(p)],
            notes=lambda p: drawings[id(p)].notes,
            width=lambda p: f"{drawings[id(p)].width:g}px",
            cropped=lambda p: f"{drawings[id(p)].width / drawings[id(p)].axes_width:.4f}",
        )
    )
    return visible(rendered)


def _columns_of(sheet: Sheet, row: SheetRow) -> list[tuple[SheetColumn, SheetCell]]:
    """The cells of a row that a page shows in columns."""
    pairs = zip(sheet.columns, row.cells, strict=True)
    return [(column, cell) for column, cell in pairs if column.detail != "page"]


def _details_of(sheet: Sheet, row: SheetRow) -> list[tuple[SheetColumn, SheetCell]]:
    """The cells with a text that are in the details of a row, those of every page before those of
    a narrow one; none if there are none of every page."""
    known = [
        (column, cell)
        for column, cell in zip(sheet.columns, row.cells, strict=True)
        if column.detail and (cell.text or cell.note)
    ]
    known.sort(key=lambda each: (each[0].detail != "page", not each[0].folds))
    return known if known and known[0][0].detail == "page" else []


def _grounds(verdict: Assessment) -> list[str]:
    """What a status rests on, briefly: ``Link equivalence``, ``Not determined: 2 of 8 questions``,
    ``3 warnings``."""
    found = (
        verdict.equivalence.partition(":")[0],
        verdict.unknown.partition(" (")[0],
        verdict.quality.partition(" (")[0].rpartition(": ")[2],
    )
    return list(filter(None, found))


def _key_of_tiles(tiles: Sequence[Tile]) -> str:
    """What the small figures of tiles are."""
    keys = (
        ("Bar: share of the bound.", any(each.share for each in tiles)),
        ("±: half of the 95 % interval.", any("±" in each.sure for each in tiles)),
        ("Time: latency.", any(each.latency for each in tiles)),
    )
    return " ".join(key for key, is_used in keys if is_used)


def _to_do(document: Document) -> tuple[str, str]:
    """(a link to the findings, what to do) below the tiles: the gravest finding, unless the status
    states it, with its remedy if there is room for both; or how many there are."""
    found = document.first_remarks()
    if found is None:
        return "No finding asks for a change.", ""
    first, findings = found.remarks[0], count(max(found.of, len(found.remarks)), "finding")
    said = " ".join(verdict.statement.lower() for verdict in _verdicts(document))
    statement = findings if with_sizes(first.statement).lower() in said else first.statement
    left = MOST_WORDS - _words_above(document)
    if len(f"{statement} {TO_DO} {first.remedy}".split()) <= left:
        return statement, first.remedy
    return statement if len(statement.split()) <= left else findings, ""


def _verdicts(document: Document) -> list[Assessment]:
    return [block for block in document.sections[0].blocks if isinstance(block, Assessment)]


def _words_above(document: Document) -> int:
    """The words on the first screen besides those of `_to_do`, the contents among them."""
    shown = [f"{BRAND} {MORE} {ALL_NUMBERS}", document.title, *document.subtitle]
    shown += [document.sections[0].title, _key_of_tiles(document.tiles)]
    shown += [section.title for section in document.sections if not section.folded]
    for verdict in _verdicts(document):
        shown += [MARKS[verdict.severity][0], verdict.statement, verdict.about, *_grounds(verdict)]
    shown += [
        f"{t.name} {t.bandwidth} GB/s {t.sure} {t.latency} {t.normal}" for t in document.tiles
    ]
    return sum(len(text.split()) for text in shown)


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
