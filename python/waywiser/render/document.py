"""A whole report: its chapters in the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from waywiser.analysis.comparison.hardware import counted_models
from waywiser.machine import DECLARED, machine_line
from waywiser.render.chapters.curves import curves
from waywiser.render.chapters.glossary import glossary
from waywiser.render.chapters.headlines import headlines, tiles
from waywiser.render.chapters.links import links
from waywiser.render.chapters.method import method
from waywiser.render.chapters.methods import methods
from waywiser.render.chapters.model import model
from waywiser.render.chapters.quality import missing, quality
from waywiser.render.chapters.questions import questions
from waywiser.render.chapters.side_by_side import side_by_side
from waywiser.render.chapters.status import findings, status
from waywiser.render.entry import Entry
from waywiser.render.families import families, of_family
from waywiser.render.figures.render import MADE
from waywiser.render.origin import when
from waywiser.render.parts import Document, Section
from waywiser.version import __version__


def document(entries: Sequence[Entry]) -> Document:
    """The report of one machine, or of several side by side."""
    last = (model(entries), quality(entries), missing(entries), method(entries), glossary())
    chapters = (
        status(entries),
        headlines(entries),
        findings(entries),
        links(entries),
        side_by_side(entries),
        methods(entries),
        _curves(entries),
        questions(entries),
        *map(folded, last),
    )
    return Document(
        title=" and ".join(entry.name for entry in entries),
        subtitle=tuple(_about(entry, len(entries) > 1) for entry in entries),
        sections=tuple(each for each in chapters if each.blocks or each.sections),
        made=made_now(),
        tiles=tiles(entries[0]) if len(entries) == 1 else (),
    )


def _curves(entries: Sequence[Entry]) -> Section:
    """The curves of paths with a GPU; those of the host and its files are folded beside them."""
    section, names = curves(entries), families(entries)
    shown = [name for name in names if _is_of_gpus(entries, name)] or names
    below = (
        each if name in shown else folded(each)
        for name, each in zip(names, section.sections, strict=True)
    )
    return msgspec.structs.replace(section, sections=tuple(below))


def _is_of_gpus(entries: Sequence[Entry], family: str) -> bool:
    """Whether any of its curves moves bytes between GPUs, or between them and host memory."""
    ends = (
        [end for each in curve.workload.transfers for end in each.path.ends]
        for entry in entries
        for curve in of_family(entry, family)
    )
    return any(
        any(map(DECLARED.is_of_gpu, found)) and not any(end.place.kind == "file" for end in found)
        for found in ends
    )


def folded(section: Section) -> Section:
    """The section with nothing but its heading shown."""
    return msgspec.structs.replace(section, folded=True)


def made_now() -> str:
    """The program and the date of the report."""
    return f"{MADE} {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _about(entry: Entry, named: bool) -> str:
    """The machine and the date; of one of several machines, briefly: the lines to cite have all."""
    machine = entry.subject.machine
    if named:
        models = counted_models(machine.gpus, len(machine.gpus)) if machine.gpus else ""
        return " · ".join(filter(None, (entry.name, models, when(entry))))
    preset = f"{entry.preset} survey" if entry.preset else ""
    # With curves, the status says why there is no GPU.
    line = machine_line(machine, host=False, reason=not entry.curves)
    return " · ".join(filter(None, (line, when(entry), preset)))
