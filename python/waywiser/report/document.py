"""A whole report: its chapters in the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from waywiser import __version__
from waywiser.report.chapters.curves import curves
from waywiser.report.chapters.headlines import headlines
from waywiser.report.chapters.links import links
from waywiser.report.chapters.method import describe, method
from waywiser.report.chapters.quality import missing, quality
from waywiser.report.chapters.questions import questions
from waywiser.report.chapters.side_by_side import side_by_side
from waywiser.report.chapters.verdict import verdict
from waywiser.report.entry import Entry
from waywiser.report.figures.render import MADE
from waywiser.report.origin import when
from waywiser.report.parts import Document
from waywiser.words.number_format import count


def document(entries: Sequence[Entry]) -> Document:
    """The report of one machine, or of several side by side."""
    chapters = (
        verdict(entries),
        headlines(entries),
        links(entries),
        side_by_side(entries),
        questions(entries),
        curves(entries),
        quality(entries),
        missing(entries),
        method(entries),
    )
    return Document(
        title=" and ".join(entry.name for entry in entries),
        subtitle=tuple(_about(entry, len(entries) > 1) for entry in entries),
        sections=tuple(each for each in chapters if each.blocks or each.sections),
        made=made_now(),
    )


def made_now() -> str:
    """The program and the date of the report."""
    return f"{MADE} {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _about(entry: Entry, named: bool) -> str:
    summary = entry.subject.overview.summary
    parts = [
        entry.name if named else "",
        describe(entry.subject.machine),
        when(entry),
        f"{entry.preset} survey" if entry.preset else "",
        f"{count(summary.converged + summary.not_converged, 'series')} of "
        f"{count(summary.curves, 'curve')}",
    ]
    return " · ".join(filter(None, parts))
