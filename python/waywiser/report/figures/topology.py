"""The machine with what its links carry: host memory above, GPUs below it, NVLink under these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from waywiser.report.figures.drawing import Drawing
from waywiser.report.figures.theme import INK, PANEL, PAPER, SERIES, SOFT, Colour
from waywiser.report.parts import Picture, Sheet
from waywiser.words import Value

GPU_WIDTH = 92.0
GAP = 10.0
GROUP_GAP = 34.0
EDGE = 12.0
LEAST_WIDTH = 420.0
HOST_TOP, HOST_HEIGHT = 26.0, 58.0
GPU_TOP, GPU_HEIGHT = 152.0, 66.0
SWITCH_TOP, SWITCH_HEIGHT = 288.0, 30.0
ARC_DEPTH = 26.0
"""Depth of an arc for each GPU that a direct link passes over."""

DIGIT_WIDTH = 0.636
"""Width of a digit of DejaVu Sans, over the size of the font."""

HOST_LINK, PEER_LINK = SERIES[0], SERIES[2]


class GpuBox(Value, frozen=True):
    """A GPU with the figures on its links, in GB/s; empty if nothing was measured."""

    name: str
    model: str
    pci: str
    within: str
    down: str
    """The rate from the host."""
    up: str
    switch_out: str
    switch_in: str


class GpuGroup(Value, frozen=True):
    """GPUs that are together, and what they are together at."""

    title: str
    lines: tuple[str, ...]
    gpus: tuple[GpuBox, ...]
    found: bool
    """Whether a measurement found it: the system does not show it."""


class Direct(Value, frozen=True):
    """NVLink between two GPUs, by their positions from the left."""

    first: int
    second: int
    text: str


class TopologyLayout(Value, frozen=True):
    """All that is drawn."""

    groups: tuple[GpuGroup, ...]
    switched: bool
    direct: tuple[Direct, ...]


def topology_picture(
    name: str, title: str, layout: TopologyLayout, description: str, data: Sheet
) -> Picture:
    return Picture(
        name=name,
        title=title,
        description=description,
        draw=partial(_draw, layout),
        data=data,
        wide=True,
    )


def _draw(layout: TopologyLayout) -> Drawing:
    """Links first, so that boxes cover their ends."""
    width = max(_width(layout), LEAST_WIDTH)
    span = max((d.second - d.first for d in layout.direct), default=0)
    bottom = SWITCH_TOP + SWITCH_HEIGHT if layout.switched else GPU_TOP + GPU_HEIGHT
    height = max(bottom, GPU_TOP + GPU_HEIGHT + (ARC_DEPTH * span + 16 if span else 0)) + EDGE
    found = Drawing(width, height)
    lefts = _lefts(layout, (width - _width(layout)) / 2 + EDGE)
    gpus = [gpu for group in layout.groups for gpu in group.gpus]
    middles = [left + GPU_WIDTH / 2 for _, boxes in lefts for left in boxes]
    for x in middles:
        found.line([(x, HOST_TOP + HOST_HEIGHT), (x, GPU_TOP)], HOST_LINK, 2.2)
        if layout.switched:
            found.line([(x, GPU_TOP + GPU_HEIGHT), (x, SWITCH_TOP)], PEER_LINK, 2.2)
    for each in layout.direct:
        _arc(found, middles[each.first], middles[each.second], each)
    for group, (left, _) in zip(layout.groups, lefts, strict=True):
        _host(found, group, left)
    for gpu, x in zip(gpus, middles, strict=True):
        _rates(found, x, (HOST_TOP + HOST_HEIGHT + GPU_TOP) / 2, gpu.down, gpu.up)
        _gpu(found, gpu, x)
        if layout.switched:
            _rates(found, x, (GPU_TOP + GPU_HEIGHT + SWITCH_TOP) / 2, gpu.switch_out,
                   gpu.switch_in)  # fmt: skip
    if layout.switched and middles:
        start, end = middles[0] - GPU_WIDTH / 2, middles[-1] + GPU_WIDTH / 2
        _box(found, start, SWITCH_TOP, end - start, SWITCH_HEIGHT, PEER_LINK)
        middle = SWITCH_TOP + SWITCH_HEIGHT / 2
        _text(found, (start + end) / 2, middle, "NVLink switch", bold=True)
    for each in layout.direct:
        _rate_of_arc(found, (middles[each.first] + middles[each.second]) / 2, each)
    return found


def _lefts(layout: TopologyLayout, left: float) -> list[tuple[float, list[float]]]:
    """Where each group begins, and each of its GPUs."""
    found = []
    for group in layout.groups:
        wide = _group_width(group)
        first = left + (wide - len(group.gpus) * (GPU_WIDTH + GAP) + GAP) / 2
        found.append((left, [first + n * (GPU_WIDTH + GAP) for n in range(len(group.gpus))]))
        left += wide + GROUP_GAP
    return found


def _width(layout: TopologyLayout) -> float:
    groups = sum(_group_width(group) for group in layout.groups)
    return groups + GROUP_GAP * max(0, len(layout.groups) - 1) + 2 * EDGE


def _group_width(group: GpuGroup) -> float:
    count = max(len(group.gpus), 2)
    return count * GPU_WIDTH + (count - 1) * GAP


def _host(drawing: Drawing, group: GpuGroup, left: float) -> None:
    width = _group_width(group)
    _box(drawing, left, HOST_TOP, width, HOST_HEIGHT, SOFT, dashed=group.found)
    _text(drawing, left + width / 2, HOST_TOP + 16, group.title, bold=True)
    for n, line in enumerate(group.lines[:2]):
        _text(drawing, left + width / 2, HOST_TOP + 32.5 + 14 * n, line, soft=True)


def _gpu(drawing: Drawing, gpu: GpuBox, middle: float) -> None:
    _box(drawing, middle - GPU_WIDTH / 2, GPU_TOP, GPU_WIDTH, GPU_HEIGHT, INK)
    _text(drawing, middle, GPU_TOP + 15, gpu.name, bold=True)
    for n, line in enumerate(filter(None, (gpu.model, gpu.pci, gpu.within))):
        _text(drawing, middle, GPU_TOP + 30 + 13.5 * n, line, soft=True, size=9)


def _rates(drawing: Drawing, x: float, y: float, down: str, up: str) -> None:
    """Draws the rates of both directions of a link on it."""
    texts = [text for text in (f"↓ {down}" if down else "", f"↑ {up}" if up else "") if text]
    if not texts:
        return
    height = 15.0 * len(texts) + 4
    drawing.box((x - GPU_WIDTH / 2, y - height / 2), GPU_WIDTH, height, PAPER)
    for n, text in enumerate(texts):
        _text(drawing, x, y + (n - (len(texts) - 1) / 2) * 15, text)


def _arc(drawing: Drawing, start: float, end: float, each: Direct) -> None:
    top, span = GPU_TOP + GPU_HEIGHT, each.second - each.first
    x = (start + 5.0 * span, end - 5.0 * span)
    deep = top + ARC_DEPTH * span * 1.3
    drawing.arc((x[0], top), ((x[0], deep), (x[1], deep)), (x[1], top), PEER_LINK)


def _rate_of_arc(drawing: Drawing, x: float, each: Direct) -> None:
    """Writes the rate at the arc's lowest point, on the paper's colour."""
    if not each.text:
        return
    y = GPU_TOP + GPU_HEIGHT + ARC_DEPTH * (each.second - each.first) * 0.975
    width = DIGIT_WIDTH * 10 * len(each.text) + 3
    drawing.box((x - width / 2, y - 6.5), width, 13, PAPER)
    _text(drawing, x, y, each.text, size=10)


def _box(
    drawing: Drawing,
    x: float,
    y: float,
    width: float,
    height: float,
    edge: Colour,
    dashed: bool = False,
) -> None:
    drawing.box((x, y), width, height, PANEL, edge=edge, edge_width=1.2, radius=6,
                dashes=(4.8, 3.6) if dashed else ())  # fmt: skip


def _text(
    drawing: Drawing,
    x: float,
    y: float,
    text: str,
    *,
    bold: bool = False,
    soft: bool = False,
    size: float = 11,
) -> None:
    drawing.text(x, y, text, SOFT if soft else INK, size=size, anchor="middle", bold=bold)


def lines_of(texts: Sequence[str]) -> tuple[str, ...]:
    """At most two lines, the rest counted."""
    if len(texts) <= 2:
        return tuple(texts)
    return (texts[0], f"and {len(texts) - 1} more")
