"""``waywiser report``: profiles as one page, as Markdown, or single figures of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from waywiser.cli.pages import require_page, write_page
from waywiser.cli.streams import put_line, say
from waywiser.profile.name import SUFFIX
from waywiser.report.parts import Document, Picture
from waywiser.words import WaywiserError

SINGLE = ("svg", "pdf", "png")
"""Formats of one figure."""

FORMATS = ("html", "md", *SINGLE)

LIST = "list"
"""The figure that is none: it asks for the names of all."""


class ReportError(WaywiserError):
    """A report that cannot be made as asked."""


def run_report(
    files: Sequence[str], output: str, format: str, figure: str, *, whole: bool = False
) -> int:
    """Writes the report to ``output`` (``-``: standard output; empty: ``report.html`` for a page,
    standard output for anything else). Without ``format`` the name of the file says it. Markdown
    is a summary unless ``whole``. Returns 0.

    Raises `ReportError` for a wish that cannot be met, `ExistingFile` for a file that no report
    wrote, and the `ProfileError` of a bad profile.
    """
    suffix = PurePath(output).suffix.removeprefix(".").lower()
    named = suffix if suffix in FORMATS else ""
    unknown = suffix and not named and (not format or f".{suffix}" == SUFFIX)
    format = format or named or "html"
    _require_sense(format, figure, whole)
    if unknown:
        raise ReportError(
            f"{output}: no report has the extension .{suffix}",
            remedy="name it .html, .md, .svg, .pdf or .png",
        )
    if named and named != format:
        raise ReportError(
            f"{output} would be {format}, and its name says {named}",
            remedy=f"write --format {named}, or name it .{format}",
        )
    return _make(files, output, format, figure, whole)


def _make(files: Sequence[str], output: str, format: str, figure: str, whole: bool) -> int:
    from waywiser.report.document import document
    from waywiser.report.entry import read, without_copies

    if len(files) > 1:
        files, copies = without_copies(files)
        for copy, original in copies:
            what = "is named twice" if copy == original else f"is a copy of {original}"
            say(f"waywiser: {copy} {what}, and is shown once\n")
    output = output or ("report.html" if format == "html" else "-")
    if figure != LIST:
        require_page(output)
    made = document(read(files))
    if figure == LIST:
        return _list(made)
    content = _content(made, format, figure, whole)
    write_page(output, content)
    return 0


def _list(made: Document) -> int:
    pictures = made.pictures()
    if not pictures:
        raise ReportError(
            "there is no figure: the profiles show too little for one",
            remedy="survey more sizes or paths",
        )
    put_line("\n".join(f"{picture.name}  {picture.title}" for picture in pictures))
    return 0


def _require_sense(format: str, figure: str, whole: bool) -> None:
    if format not in FORMATS:
        raise ReportError(
            f"{format!r} is no format", remedy="write --format html, md, svg, pdf or png"
        )
    if whole and format != "md":
        raise ReportError(
            f"--all is for Markdown, and the report is {format}",
            remedy="write --format md with it, or leave --all out: a page has everything",
        )
    single = format in SINGLE
    if single and not figure:
        raise ReportError(
            f"{format} is one figure, and none is named",
            remedy="write --figure NAME; --figure list names them",
        )
    if figure and figure != LIST and not single:
        raise ReportError(
            f"a single figure is no {format}", remedy="write --format svg, pdf or png with it"
        )


def _content(made: Document, format: str, figure: str, whole: bool) -> bytes:
    if format == "html":
        from waywiser.report.page import page

        return page(made).encode()
    if format == "md":
        from waywiser.report.markdown import markdown, summary

        return (markdown if whole else summary)(made).encode()
    from waywiser.report.figures.render import pdf_file, png_file, svg_file

    picture = _named(made, figure)
    if format == "svg":
        return svg_file(picture).encode()
    return pdf_file(picture) if format == "pdf" else png_file(picture)


def _named(made: Document, name: str) -> Picture:
    for picture in made.pictures():
        if picture.name == name:
            return picture
    if not made.pictures():
        raise ReportError(
            f"there is no figure {name!r}, and no other: the profiles show too little for one",
            remedy="survey more sizes or paths",
        )
    raise ReportError(f"there is no figure {name!r}", remedy="--figure list names them")
