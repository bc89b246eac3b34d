"""Profiles as one page, as Markdown, or single figures of them: `waywiser.report`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from waywiser.notebook.verb_result import FileName, VerbResult, file_names
from waywiser.notebook.without_effect import require_effect
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.render.parts import Document, Picture

SINGLE = ("svg", "pdf", "png")
"""Formats of one figure."""

PERFETTO = "perfetto"
"""The format of a trace that ui.perfetto.dev opens."""

FORMATS = ("html", "md", *SINGLE, PERFETTO)

LIST = "list"
"""The figure that is none: it asks for the names of all."""


class ReportError(WaywiserError):
    """A report that cannot be made as asked."""


def make_report(
    names: Sequence[FileName],
    *,
    output: FileName | None = None,
    format: str = "",
    figure: str = "",
    profile: FileName | None = None,
    whole: bool = False,
) -> VerbResult:
    """As `waywiser.report`. Raises `WaywiserError`."""
    from waywiser.notebook.pages import require_page, write_page
    from waywiser.render.parts import Words

    files, target = file_names(names), os.fspath(output or "")
    format = _require_sense(target, format, figure)
    target = target or ("report.html" if format == "html" else "")
    if figure != LIST:
        require_page(target)
    made, notes = (None, ()) if format == PERFETTO else _made(files, profile)
    if figure == LIST and made is not None:
        pictures = [(each.name, each.title) for each in _pictures(made)]
        lines = [f"{name}  {title}" for name, title in pictures]
        return VerbResult(pictures, lambda: pictures, lambda: map(Words, lines), said=notes)
    content = _perfetto(files) if made is None else _content(made, format, figure, whole)
    if target:
        notes += write_page(target, content)
    document = {"schema": 1, "format": format, "output": target}
    is_text = not target and format != "pdf" and format != "png"
    text = content.decode() if is_text else None
    return VerbResult(content, lambda: document, tuple, said=notes, content=text)


def _perfetto(files: Sequence[str]) -> bytes:
    from waywiser.exchange.exports.perfetto import perfetto_json
    from waywiser.profile import is_trace, read_trace

    if len(files) > 1 or not is_trace(files[0]):
        raise ReportError("perfetto is of one trace", remedy="name one file of waywiser trace -o")
    return perfetto_json(read_trace(files[0]))


def _made(
    files: Sequence[str], profile: FileName | None = None
) -> tuple[Document, tuple[str, ...]]:
    """The document, and what a command says of it."""
    from waywiser.profile import is_trace

    if traces := [file for file in files if is_trace(file)]:
        if len(files) > 1:
            raise ReportError(
                f"{traces[0]} is a trace, which has a report of its own", remedy="name it alone"
            )
        return _trace(traces[0], profile)
    require_effect({"it is for a trace": {"--profile": profile}})
    from waywiser.profile import is_cluster_folder

    folder = next((file for file in files if is_cluster_folder(Path(file))), None)
    if folder is None:
        from waywiser.render.document import document
        from waywiser.render.entry import read, without_copies

        kept, copies = without_copies(files) if len(files) > 1 else ([*files], [])
        return document(read(kept)), tuple(itertools.starmap(_copy_note, copies))
    if len(files) > 1:
        raise ReportError(
            f"{folder} is the folder of a cluster survey, which has a report of its own",
            remedy="name it alone",
        )
    return _cluster(Path(folder))


def _copy_note(copy: str, original: str) -> str:
    what = "is named twice" if copy == original else f"is a copy of {original}"
    return f"waywiser: {copy} {what}, and is shown once"


def _trace(file: str, profile: FileName | None) -> tuple[Document, tuple[str, ...]]:
    import msgspec

    from waywiser.analysis.trace.savings import trace_advice
    from waywiser.notebook.trace_call import subject_of_trace
    from waywiser.profile import read_trace
    from waywiser.render.trace import trace_document

    found = read_trace(file)
    subject, notes = subject_of_trace(found, profile)
    if profile:
        found = msgspec.structs.replace(found, profile=os.path.abspath(profile))
    return trace_document(found, trace_advice(found, subject)), notes


def _cluster(folder: Path) -> tuple[Document, tuple[str, ...]]:
    from waywiser.analysis.cluster.summary import summarise_cluster
    from waywiser.analysis.cluster.verdict import verdict
    from waywiser.analysis.health.many_hosts import read_fleet
    from waywiser.notebook.damaged_lines import damaged_notes
    from waywiser.profile import read_cluster
    from waywiser.render.cluster import cluster_document
    from waywiser.stats import THRESHOLD

    result = read_cluster(folder)
    found = summarise_cluster(result, verdict(result.nodes, result.plan, result.tests))
    profiles = [str(path) for path in result.profiles.values()]
    fleet = read_fleet(profiles, THRESHOLD) if profiles else None
    notes = damaged_notes(result.damaged, result.damaged_count)
    return cluster_document(found, result, fleet), notes


def _pictures(made: Document) -> Sequence[Picture]:
    pictures = made.pictures()
    if not pictures:
        raise ReportError(
            "there is no figure: the profiles show too little for one",
            remedy="survey more sizes or paths",
        )
    return list(pictures)


def _require_sense(output: str, format: str, figure: str) -> str:
    """Returns the format: that which is named, or that of the name of ``output``. Raises
    `ReportError` for options that exclude each other."""
    from waywiser.profile.file_name import SUFFIX

    suffix = PurePath(output).suffix.removeprefix(".").lower()
    named = suffix if suffix in FORMATS else ""
    unknown = suffix and not named and (not format or f".{suffix}" == SUFFIX)
    is_single = figure and figure != LIST
    format = format or named or ("svg" if is_single and not suffix else "html")
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
        from waywiser.render.page import page

        return page(made).encode()
    if format == "md":
        from waywiser.render.markdown import markdown, summary

        return (markdown if whole else summary)(made).encode()
    from waywiser.render.figures.render import pdf_file, png_file, svg_file

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
