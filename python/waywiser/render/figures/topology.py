"""The machine with the bandwidth of its links: host memory, GPUs below it, NVLink under these."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from waywiser.render.figures.drawing import Drawing
from waywiser.render.figures.styles import Position
from waywiser.render.figures.text_width import shortened, text_width
from waywiser.render.figures.theme import INK, PANEL, PAPER, SOFT, Colour
from waywiser.words import Value

GPU_WIDTH = 100.0
GAP = 14.0
GROUP_GAP = 34.0
EDGE = 4.0
LEAST_WIDTH = 340.0
"""The narrowest picture takes a phone's width."""
LINE = 13.5
TEXT = 10.0
SMALL = 9.5
PADDING = 5.0
HOST_TOP, HOST_HEIGHT = 4.0, 58.0
GPU_HEIGHT = 66.0
STUB = 15.0
"""Part of a link that is seen before and after its text."""
SWITCH_HEIGHT = 28.0
ARC_DEPTH = 28.0
"""Depth of an arc for each GPU that a direct link passes over."""

HOST_LINK, PEER_LINK = SOFT, INK
"""No colours of methods."""

NOT_MEASURED = (3.0, 3.0)
"""Dashes of links that nothing was measured on."""


class LinkLabel(Value, frozen=True):
    """What is written on a link."""

    kind: str
    """``PCIe 5 x16``, ``NVLink, 18 lanes``; empty if it is not known."""
    lines: tuple[str, ...]
    """``H2D 55.3 GB/s, 88 %``: for each direction that was measured."""
    bandwidth: float
    """GB/s of the faster direction: the width of the line; 0 if nothing was measured."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.kind, *self.lines)))


class GpuBox(Value, frozen=True):
    """A GPU with its links to the host and to a switch."""

    name: str
    details: tuple[str, ...]
    host: LinkLabel
    switch: LinkLabel | None
    """None if it has no link to a switch."""


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
    label: LinkLabel


class TopologyLayout(Value, frozen=True):
    """All that is drawn."""

    groups: tuple[GpuGroup, ...]
    direct: tuple[Direct, ...]
    note: str

    @property
    def gpus(self) -> list[GpuBox]:
        return [gpu for group in self.groups for gpu in group.gpus]


class _Frame(NamedTuple):
    """The places of the boxes."""

    gpu_width: float
    lefts: list[tuple[float, list[float]]]
    """The left edges of each group and of its GPUs."""
    width: float
    gpu_top: float
    switch_top: float

    @property
    def middles(self) -> list[float]:
        return [left + self.gpu_width / 2 for _, boxes in self.lefts for left in boxes]


def draw_topology(layout: TopologyLayout) -> Drawing:
    """Links first, so that boxes cover their ends."""
    frame = _frame(layout)
    middles, gpus = frame.middles, layout.gpus
    gpu_bottom = frame.gpu_top + GPU_HEIGHT
    bottom = max([frame.switch_top + SWITCH_HEIGHT if _switched(layout) else gpu_bottom,
                  *(_deepest(each, gpu_bottom) for each in layout.direct)])  # fmt: skip
    found = Drawing(frame.width, bottom + 4)
    found.notes = [layout.note] if layout.note else []
    for gpu, x in zip(gpus, middles, strict=True):
        _link(found, gpu.host, x, HOST_TOP + HOST_HEIGHT, frame.gpu_top, HOST_LINK)
        if gpu.switch is not None:
            _link(found, gpu.switch, x, gpu_bottom, frame.switch_top, PEER_LINK)
    for each in layout.direct:
        _arc(found, middles[each.first], middles[each.second], gpu_bottom, each)
    for group, (left, _) in zip(layout.groups, frame.lefts, strict=True):
        _host(found, group, left, _group_width(group, frame.gpu_width))
    for gpu, x in zip(gpus, middles, strict=True):
        _gpu(found, gpu, x - frame.gpu_width / 2, frame.gpu_top, frame.gpu_width)
    if _switched(layout):
        start, end = middles[0] - frame.gpu_width / 2, middles[-1] + frame.gpu_width / 2
        _box(found, start, frame.switch_top, end - start, SWITCH_HEIGHT, PEER_LINK)
        _text(found, (start + end) / 2, frame.switch_top + SWITCH_HEIGHT / 2, "NVLink switch",
              bold=True)  # fmt: skip
    for each in layout.direct:
        _name_of_arc(found, (middles[each.first] + middles[each.second]) / 2, gpu_bottom, each)
    return found


def _frame(layout: TopologyLayout) -> _Frame:
    """Boxes are as wide as the widest text of a GPU or of its links."""
    texts = [text for gpu in layout.gpus for text in _texts_of(gpu)]
    widest = max((text_width(text, TEXT) for text in texts), default=0.0)
    gpu_width = max(GPU_WIDTH, widest + 2 * PADDING)
    groups = [_group_width(group, gpu_width) for group in layout.groups]
    drawn = sum(groups) + GROUP_GAP * max(0, len(groups) - 1)
    width = max(drawn + 2 * EDGE, LEAST_WIDTH)
    left, lefts = (width - drawn) / 2, []
    for group, wide in zip(layout.groups, groups, strict=True):
        first = left + (wide - len(group.gpus) * (gpu_width + GAP) + GAP) / 2
        lefts.append((left, [first + n * (gpu_width + GAP) for n in range(len(group.gpus))]))
        left += wide + GROUP_GAP
    above = max((len(gpu.host.texts) for gpu in layout.gpus), default=0)
    below = max((len(gpu.switch.texts) for gpu in layout.gpus if gpu.switch), default=0)
    gpu_top = HOST_TOP + HOST_HEIGHT + 2 * STUB + LINE * above
    switch_top = gpu_top + GPU_HEIGHT + 2 * STUB + LINE * below
    return _Frame(gpu_width, lefts, width, gpu_top, switch_top)


def _texts_of(gpu: GpuBox) -> Iterator[str]:
    yield from gpu.details
    yield from gpu.host.texts
    if gpu.switch is not None:
        yield from gpu.switch.texts


def _switched(layout: TopologyLayout) -> bool:
    return any(gpu.switch is not None for gpu in layout.gpus)


def _group_width(group: GpuGroup, gpu_width: float) -> float:
    count = max(len(group.gpus), 2 if len(group.title) > 12 or group.found else 1)
    return count * gpu_width + (count - 1) * GAP


def _host(drawing: Drawing, group: GpuGroup, left: float, width: float) -> None:
    _box(drawing, left, HOST_TOP, width, HOST_HEIGHT, SOFT, dashed=group.found)
    title = shortened(group.title, 11, width - PADDING)
    _text(drawing, left + width / 2, HOST_TOP + 15, title, bold=True)
    for n, line in enumerate(group.lines[:2]):
        _text(drawing, left + width / 2, HOST_TOP + 31 + LINE * n,
              shortened(line, SMALL, width - PADDING), soft=True, size=SMALL)  # fmt: skip


def _gpu(drawing: Drawing, gpu: GpuBox, left: float, top: float, width: float) -> None:
    _box(drawing, left, top, width, GPU_HEIGHT, INK)
    _text(drawing, left + width / 2, top + 13, gpu.name, bold=True)
    for n, line in enumerate(gpu.details):
        _text(drawing, left + width / 2, top + 27.5 + 13 * n, line, soft=True, size=SMALL)


def line_width(bandwidth: float) -> float:
    """The width of a link's line: ten times the bandwidth, a little more than three times the
    width, so that PCIe and NVLink stand in one picture."""
    return min(max(0.4 * math.sqrt(bandwidth), 1.0), 14.0)


def _link(
    drawing: Drawing, label: LinkLabel, x: float, top: float, bottom: float, colour: Colour
) -> None:
    """A link with its text in the middle of its line."""
    drawing.line([(x, top), (x, bottom)], *_pen(label, colour))
    _name(drawing, label.texts, (x, (top + bottom) / 2), TEXT, LINE, soft=bool(label.kind))


def _name(
    drawing: Drawing, texts: Sequence[str], at: Position, size: float, line: float, *, soft: int
) -> None:
    """The lines of text of a link on the paper's colour, the first of them ``soft``."""
    width = max((text_width(text, size) for text in texts), default=0.0) + 4
    height = line * len(texts)
    if texts:
        drawing.box((at[0] - width / 2, at[1] - height / 2), width, height, PAPER)
    for n, text in enumerate(texts):
        y = at[1] + (n - (len(texts) - 1) / 2) * line
        _text(drawing, at[0], y, text, soft=n < soft, size=size)


def _pen(label: LinkLabel, colour: Colour) -> tuple[Colour, float, tuple[float, ...]]:
    """The colour, the width and the dashes of a link's line."""
    if label.bandwidth:
        return colour, line_width(label.bandwidth), ()
    return SOFT, 1.0, NOT_MEASURED


def _deepest(each: Direct, top: float) -> float:
    """The lowest point of an arc with its text."""
    return top + ARC_DEPTH * (each.second - each.first) + LINE * len(each.label.texts) / 2


def _arc(drawing: Drawing, start: float, end: float, top: float, each: Direct) -> None:
    span = each.second - each.first
    x = (start + 5.0 * span, end - 5.0 * span)
    deep = top + ARC_DEPTH * span / 0.75
    bends = ((x[0], deep), (x[1], deep))
    drawing.arc((x[0], top), bends, (x[1], top), *_pen(each.label, PEER_LINK))


def _name_of_arc(drawing: Drawing, x: float, top: float, each: Direct) -> None:
    """The text of a direct link at the arc's lowest point."""
    texts, y = each.label.texts, top + ARC_DEPTH * (each.second - each.first)
    _name(drawing, texts, (x, y), SMALL, 12, soft=0 if each.label.bandwidth else len(texts))


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
    drawing: Drawing, x: float, y: float, text: str, *, soft: bool = False, **font: Any
) -> None:
    """``font`` are the keywords of `Drawing.text`."""
    drawing.text(x, y, text, SOFT if soft else INK, anchor="middle", **font)


def lines_of(texts: Sequence[str]) -> tuple[str, ...]:
    """At most two lines, the rest counted."""
    if len(texts) <= 2:
        return tuple(texts)
    return (texts[0], f"and {len(texts) - 1} more")
