"""``waywiser report``: profiles as one page, as Markdown, or single figures of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from waywiser.cli.app import verb
from waywiser.cli.streams import put_line, say
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.report.parts import Document, Picture

SINGLE = ("svg", "pdf", "png")
"""Formats of one figure."""

PERFETTO = "perfetto"
"""The format of a trace that ui.perfetto.dev opens."""

FORMATS = ("html", "md", *SINGLE, PERFETTO)

LIST = "list"
"""The figure that is none: it asks for the names of all."""


class ReportError(WaywiserError):
    """A report that cannot be made as asked."""


@verb("Make a page of profiles: status, findings, figures.")
def report(
    files: list[str], output: str = "", format: str = "", figure: str = "", whole: bool = False
) -> None:
    """Make a page of profiles: status, findings, figures, everything that was measured.

    FILE...: Profiles (.wwp), side by side; or the folder of a cluster survey, or a trace (.wwt).
    -o, --output FILE: By default report.html, and standard output for md; - for standard output. A
        former report is replaced.
    --format FORMAT: The form of the file: html (one page that needs no network), md (a summary of
        at most 8 KB), or svg, pdf or png of one figure, or perfetto (the worst second of a trace,
        for ui.perfetto.dev); without it, what the name of FILE says, else html.
    --figure NAME: The figure of svg, pdf and png; list names all of them.
    --all: The whole report also as md, not the summary; a page has everything.

    waywiser report node.wwp -o report.html
        make a page of one machine
    waywiser report before.wwp now.wwp -o both.html
        show two profiles together
    """
    from waywiser.cli.pages import require_page, write_page

    format = _require_sense(output, format, figure)
    output = output or ("report.html" if format == "html" else "-")
    if figure != LIST:
        require_page(output)
    if format == PERFETTO:
        write_page(output, _perfetto(files))
        return
    made = _made(files)
    if figure == LIST:
        _list(made)
    else:
        write_page(output, _content(made, format, figure, whole))


def _perfetto(files: Sequence[str]) -> bytes:
    from waywiser.exchange.exports.perfetto import perfetto_json
    from waywiser.profile import is_trace, read_trace

    if len(files) > 1 or not is_trace(files[0]):
        raise ReportError("perfetto is of one trace", remedy="name one file of waywiser trace -o")
    return perfetto_json(read_trace(files[0]))


def _made(files: Sequence[str]) -> Document:
    from waywiser.profile import is_trace

    if traces := [file for file in files if is_trace(file)]:
        if len(files) > 1:
            raise ReportError(
                f"{traces[0]} is a trace, which has a report of its own", remedy="name it alone"
            )
        return _trace(traces[0])
    from waywiser.profile import is_cluster_folder

    folder = next((file for file in files if is_cluster_folder(Path(file))), None)
    if folder is None:
        from waywiser.report.document import document
        from waywiser.report.entry import read

        return document(read(_without_copies(files) if len(files) > 1 else files))
    if len(files) > 1:
        raise ReportError(
            f"{folder} is the folder of a cluster survey, which has a report of its own",
            remedy="name it alone",
        )
    return _cluster(Path(folder))


def _trace(file: str) -> Document:
    from waywiser.analysis.trace.savings import trace_advice
    from waywiser.cli.trace import subject_of_trace
    from waywiser.profile import read_trace
    from waywiser.report.trace import trace_document

    found = read_trace(file)
    return trace_document(found, trace_advice(found, subject_of_trace(found)))


def _cluster(folder: Path) -> Document:
    from waywiser.analysis.cluster.summary import summarise_cluster
    from waywiser.analysis.cluster.verdict import verdict
    from waywiser.analysis.health.many_hosts import read_fleet
    from waywiser.cli.damaged_lines import say_damaged
    from waywiser.profile import read_cluster
    from waywiser.report.cluster import cluster_document
    from waywiser.stats import THRESHOLD

    result = read_cluster(folder)
    say_damaged(result.damaged, result.damaged_count)
    found = summarise_cluster(result, verdict(result.nodes, result.plan, result.tests))
    profiles = [str(path) for path in result.profiles.values()]
    fleet = read_fleet(profiles, THRESHOLD) if profiles else None
    return cluster_document(found, result, fleet)


def _without_copies(files: Sequence[str]) -> list[str]:
    """The profiles but for those that are the same survey again, which are named."""
    from waywiser.report.entry import without_copies

    kept, copies = without_copies(files)
    for copy, original in copies:
        what = "is named twice" if copy == original else f"is a copy of {original}"
        say(f"waywiser: {copy} {what}, and is shown once\n")
    return kept


def _list(made: Document) -> None:
    pictures = made.pictures()
    if not pictures:
        raise ReportError(
            "there is no figure: the profiles show too little for one",
            remedy="survey more sizes or paths",
        )
    put_line("\n".join(f"{picture.name}  {picture.title}" for picture in pictures))


def _require_sense(output: str, format: str, figure: str) -> str:
    """Returns the format: that which is named, or that of the name of ``output``. Raises
    `ReportError` for options that exclude each other."""
    from waywiser.profile.file_name import SUFFIX

    suffix = PurePath(output).suffix.removeprefix(".").lower()
    named = suffix if suffix in FORMATS else ""
    unknown = suffix and not named and (not format or f".{suffix}" == SUFFIX)
    format = format or named or "html"
    if format not in FORMATS:
        raise ReportError(
            f"{format!r} is no format",
            remedy="write --format html, md, svg, pdf, png or perfetto",
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
    if unknown and format != PERFETTO:
        raise ReportError(
            f"{output}: no report has the extension .{suffix}",
            remedy="name it .html, .md, .svg, .pdf or .png",
        )
    if named and named != format:
        raise ReportError(
            f"{output} would be {format}, and its name says {named}",
            remedy=f"write --format {named}, or name it .{format}",
        )
    return format


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
