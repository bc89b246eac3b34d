"""A traced program as a page: what can be saved, its copies by line, the worst second."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.trace.copy_lines import exposed_seconds
from waywiser.analysis.trace.savings import TraceAdvice
from waywiser.profile import Trace
from waywiser.render.document import made_now
from waywiser.render.figures.traced import line_picture, timeline_picture
from waywiser.render.parts import (
    Assessment,
    Block,
    Document,
    Facts,
    Listing,
    Pictures,
    Section,
)
from waywiser.render.views.trace import (
    headline_of,
    line_sheet,
    pinning_sheet,
    program_name,
)

MOST_LINES = 100
MOST_BARS = 12
MOST_TIMELINES = 4


def trace_document(trace: Trace, found: TraceAdvice) -> Document:
    """The page of a trace."""
    return Document(
        title=f"Copies of {program_name(trace.command)}",
        subtitle=(" ".join(trace.command), f"{trace.host}, {trace.started[:16]} UTC"),
        sections=tuple(_sections(trace, found)),
        made=made_now(),
    )


def _sections(trace: Trace, found: TraceAdvice) -> Iterator[Section]:
    is_worth = found.is_worth_doing
    statement = "Copies can take less time." if is_worth else "No saving is certain."
    if not found.has_advice or not found.are_kernels_known:
        statement = "What the copies could take is not known."
    status = Assessment("warning" if is_worth else "info", statement, headline_of(trace, found))
    yield Section("status", "Status", (status,))
    lines = found.lines[:MOST_LINES]
    if lines:
        sheet = line_sheet(lines, has_advice=found.has_advice, omitted=("time", "exposed"))
        bars = [each.line for each in lines if each.line.seconds > 0][:MOST_BARS]
        blocks: list[Block] = [sheet]
        if bars:
            blocks.insert(0, Pictures((line_picture(bars),)))
        yield Section("lines", "Copies by line", tuple(blocks))
    if found.pinning:
        yield Section("pinning", "Pinned memory", (pinning_sheet(found.pinning),))
    worst = sorted(trace.processes, key=exposed_seconds, reverse=True)
    pictures = [picture for process in worst[:MOST_TIMELINES]
                if (picture := timeline_picture(process)) is not None]  # fmt: skip
    if pictures:
        yield Section("timeline", "The worst second", (Pictures(tuple(pictures)),))
    yield Section("how", "How it was traced", tuple(_how(trace, found)))


def _how(trace: Trace, found: TraceAdvice) -> Iterator[Block]:
    facts = [("command", " ".join(trace.command)), ("exit code", str(trace.exit_code)),
             ("processes with a GPU", str(found.processes)),
             ("profile", trace.profile or "none"), ("version", trace.waywiser)]  # fmt: skip
    yield Facts(tuple(facts))
    if found.notes:
        yield Listing(found.notes)
