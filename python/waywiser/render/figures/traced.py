"""Figures of a traced program: the time of copies by line, and the second that loses the most."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from waywiser.analysis.trace.copy_lines import CopyLine
from waywiser.profile import Timeline, TracedProcess
from waywiser.render.figures.drawing import Drawing
from waywiser.render.figures.text_width import folded
from waywiser.render.figures.theme import INK, LINE, SERIES, SOFT, Colour
from waywiser.render.parts import Picture, Sheet, numbers
from waywiser.words import count, format_time

WIDTH = 360.0
NAME_SIZE = 11.0
NAME_LINE = 14.0
BAR = 12.0
ROW_GAP = 8.0
EDGE = 2.0
VALUE = 64.0
"""Width of a value beside its bar."""

LANE = 16.0
LANE_GAP = 6.0
LANE_NAME = 108.0
AXIS = 16.0

EXPOSED: Colour = SERIES[1]
HIDDEN: Colour = SERIES[0]

KINDS = ("copies", "kernels", "memory sets", "collectives")
MOST_LANES = 12


def line_picture(lines: Sequence[CopyLine]) -> Picture:
    """A bar for the time of each line: exposed first, then hidden behind kernels."""
    kept = tuple(lines)
    title = "Time of copies by line"
    exposed = sum(line.exposed_seconds for line in kept)
    rows = [(line.place, line.path, f"{line.exposed_seconds:.4g}", f"{_hidden(line):.4g}")
            for line in kept]  # fmt: skip
    return Picture(
        name="copies-by-line",
        title=title,
        description=f"A bar for each of {count(len(kept), 'line')}; {format_time(exposed)} of "
        f"them exposed. The longest: {kept[0].place}, {kept[0].path}.",
        draw=partial(_draw_lines, kept),
        data=Sheet.of(title, ("line", "path", *numbers("exposed, s", "hidden, s")), rows),
    )


def _hidden(line: CopyLine) -> float:
    return max(line.time_seconds - line.exposed_seconds, 0.0)


def _draw_lines(lines: tuple[CopyLine, ...]) -> Drawing:
    names = [list(folded(f"{each.place}: {each.path}", NAME_SIZE, WIDTH - EDGE)) for each in lines]
    height = sum(NAME_LINE * len(name) + BAR + ROW_GAP for name in names)
    found = Drawing(WIDTH, height)
    found.notes = ["Dark: exposed, no kernel ran on the GPU. Light: hidden behind kernels."]
    most = max(line.exposed_seconds + _hidden(line) for line in lines) or 1.0
    scale, top = (WIDTH - VALUE) / most, 0.0
    for line, name in zip(lines, names, strict=True):
        for text in name:
            found.text(0, top + NAME_LINE / 2, text, INK, size=NAME_SIZE)
            top += NAME_LINE
        exposed, hidden = scale * line.exposed_seconds, scale * _hidden(line)
        found.box((0, top), max(exposed, 0.5), BAR, EXPOSED)
        if hidden > 0:
            found.box((exposed, top), hidden, BAR, SOFT)
        text = format_time(line.exposed_seconds + _hidden(line))
        found.text(exposed + hidden + 6, top + BAR / 2, text, INK, size=NAME_SIZE)
        top += BAR + ROW_GAP
    return found


def timeline_picture(process: TracedProcess) -> Picture | None:
    """The second of a process with the most exposed time: a lane for each kind and stream; None
    without one."""
    timeline = process.timeline
    if timeline is None or not timeline.events:
        return None
    lanes = _lanes(timeline)
    seconds = (timeline.end_ns - timeline.start_ns) / 1e9
    title = f"Copies and kernels of pid {process.process.pid}: the second with most exposed time"
    rows = [(name, len(spans), f"{sum(b - a for a, b in spans) / 1e6:.4g}")
            for name, spans in lanes.items()]  # fmt: skip
    return Picture(
        name=f"timeline-{process.process.pid}",
        title=title,
        description=f"{count(len(timeline.events), 'event')} in {seconds:.2f} s, in "
        f"{count(len(lanes), 'lane')}.",
        draw=partial(_draw_timeline, timeline, lanes),
        data=Sheet.of(title, ("lane", *numbers("events", "busy, ms")), rows),
        wide=True,
    )


Spans = list[tuple[int, int]]


def _lanes(timeline: Timeline) -> dict[str, Spans]:
    """The start and end of events, in ns from the start of the time line, by lane."""
    found: dict[tuple[int, int, int], Spans] = {}
    for kind, gpu, stream, start, end, _, _ in timeline.events:
        span = (start - timeline.start_ns, end - timeline.start_ns)
        found.setdefault((gpu, kind, stream), []).append(span)
    lanes = sorted(found.items())[:MOST_LANES]
    return {
        f"gpu:{gpu} {KINDS[kind] if 0 <= kind < len(KINDS) else kind}, {stream}": sorted(spans)
        for (gpu, kind, stream), spans in lanes
    }


def _draw_timeline(timeline: Timeline, lanes: dict[str, Spans]) -> Drawing:
    width = 2 * WIDTH
    found = Drawing(width, len(lanes) * (LANE + LANE_GAP) + AXIS)
    whole = max(timeline.end_ns - timeline.start_ns, 1)
    scale = (width - LANE_NAME - EDGE) / whole
    found.notes = [] if timeline.complete else ["There were more events than are shown."]
    top = 0.0
    for number, (name, spans) in enumerate(lanes.items()):
        found.text(0, top + LANE / 2, name, INK, size=NAME_SIZE - 1)
        colour = EXPOSED if "copies" in name else HIDDEN if "kernels" in name else SERIES[2]
        for start, end in _drawn(spans, 1 / scale):
            left = LANE_NAME + scale * start
            found.box((left, top), max(scale * (end - start), 0.4), LANE, colour)
        top += LANE + LANE_GAP
        if number + 1 < len(lanes):
            found.line([(LANE_NAME, top - 3), (width, top - 3)], LINE, 0.4)
    for tick in range(5):
        at = whole * tick / 4
        anchor = "start" if tick == 0 else "end" if tick == 4 else "middle"
        found.text(LANE_NAME + scale * at, top + AXIS / 2, f"{at / 1e6:.0f} ms", SOFT,
                   size=NAME_SIZE - 1, anchor=anchor)  # type: ignore[arg-type]  # fmt: skip
    return found


def _drawn(spans: Spans, least: float) -> Spans:
    """The spans, those joined that are closer than a point of the drawing: there may be
    thousands."""
    joined: Spans = []
    for start, end in spans:
        if joined and start - joined[-1][1] < least / 2:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
