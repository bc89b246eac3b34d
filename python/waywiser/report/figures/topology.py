"""The machine with what its links carry: host memory above, GPUs below it, NVLink under these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from waywiser.report.figures.render import canvas
from waywiser.report.figures.theme import INK, PANEL, PAPER, SERIES, SOFT
from waywiser.report.parts import Picture, Sheet
from waywiser.words import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

GPU_WIDTH = 92.0
GAP = 10.0
GROUP_GAP = 34.0
EDGE = 12.0
LEAST_WIDTH = 420.0
HOST_TOP, HOST_HEIGHT = 26.0, 58.0
GPU_TOP, GPU_HEIGHT = 152.0, 66.0
SWITCH_TOP, SWITCH_HEIGHT = 288.0, 30.0
ARC_DEPTH = 26.0
"""For each GPU that a direct link passes over."""

HOST_LINK, PEER_LINK = SERIES[0], SERIES[2]


class GpuBox(Value, frozen=True):
    """A GPU with the figures on its links, in GB/s; empty where nothing was measured."""

    name: str
    model: str
    pci: str
    within: str
    down: str
    """From the host."""
    up: str
    switch_out: str
    switch_in: str


class Group(Value, frozen=True):
    """GPUs that are together, and what they are together at."""

    title: str
    lines: tuple[str, ...]
    gpus: tuple[GpuBox, ...]
    found: bool
    """By measurement: the system does not show it."""


class Direct(Value, frozen=True):
    """NVLink between two GPUs, by their positions from the left."""

    first: int
    second: int
    text: str


class Layout(Value, frozen=True):
    """All that is drawn."""

    groups: tuple[Group, ...]
    switched: bool
    direct: tuple[Direct, ...]


def topology_picture(
    name: str, title: str, layout: Layout, description: str, data: Sheet
) -> Picture:
    return Picture(
        name=name,
        title=title,
        description=description,
        draw=_drawing(layout),
        data=data,
        wide=True,
    )


def _drawing(layout: Layout) -> Callable[[], Canvas]:
    return lambda: _draw(layout)


def _draw(layout: Layout) -> Canvas:
    width = max(_width(layout), LEAST_WIDTH)
    span = max((d.second - d.first for d in layout.direct), default=0)
    bottom = SWITCH_TOP + SWITCH_HEIGHT if layout.switched else GPU_TOP + GPU_HEIGHT
    height = max(bottom, GPU_TOP + GPU_HEIGHT + (ARC_DEPTH * span + 16 if span else 0)) + EDGE
    found = canvas(width, height)
    axes: Any = found.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    middles: list[float] = []
    left = (width - _width(layout)) / 2 + EDGE
    for group in layout.groups:
        wide = _group_width(group)
        _host(axes, group, left, wide)
        indent = (wide - len(group.gpus) * (GPU_WIDTH + GAP) + GAP) / 2
        for n, gpu in enumerate(group.gpus):
            x = left + indent + n * (GPU_WIDTH + GAP)
            _link(axes, x + GPU_WIDTH / 2, HOST_TOP + HOST_HEIGHT, GPU_TOP, gpu.down, gpu.up)
            _gpu(axes, gpu, x)
            middles.append(x + GPU_WIDTH / 2)
            if layout.switched:
                _switch_link(axes, gpu, x + GPU_WIDTH / 2)
        left += wide + GROUP_GAP
    if layout.switched and middles:
        start, end = middles[0] - GPU_WIDTH / 2, middles[-1] + GPU_WIDTH / 2
        _box(axes, start, SWITCH_TOP, end - start, SWITCH_HEIGHT, PEER_LINK.sentinel)
        _text(axes, (start + end) / 2, SWITCH_TOP + SWITCH_HEIGHT / 2, "NVLink switch", bold=True)
    for each in layout.direct:
        _arc(axes, middles[each.first], middles[each.second], each)
    return found


def _width(layout: Layout) -> float:
    groups = sum(_group_width(group) for group in layout.groups)
    return groups + GROUP_GAP * max(0, len(layout.groups) - 1) + 2 * EDGE


def _group_width(group: Group) -> float:
    count = max(len(group.gpus), 2)
    return count * GPU_WIDTH + (count - 1) * GAP


def _host(axes: Any, group: Group, left: float, width: float) -> None:
    _box(axes, left, HOST_TOP, width, HOST_HEIGHT, SOFT.sentinel, dashed=group.found)
    _text(axes, left + width / 2, HOST_TOP + 16, group.title, bold=True)
    for n, line in enumerate(group.lines[:2]):
        _text(axes, left + width / 2, HOST_TOP + 32.5 + 14 * n, line, soft=True)


def _gpu(axes: Any, gpu: GpuBox, left: float) -> None:
    _box(axes, left, GPU_TOP, GPU_WIDTH, GPU_HEIGHT, INK.sentinel)
    middle = left + GPU_WIDTH / 2
    _text(axes, middle, GPU_TOP + 15, gpu.name, bold=True)
    for n, line in enumerate(filter(None, (gpu.model, gpu.pci, gpu.within))):
        _text(axes, middle, GPU_TOP + 30 + 13.5 * n, line, soft=True, size=9)


def _link(axes: Any, x: float, top: float, bottom: float, down: str, up: str) -> None:
    """Both directions of a link, with their rates on it."""
    axes.plot([x, x], [top, bottom], color=HOST_LINK.sentinel, linewidth=2.2, zorder=1)
    _rates(axes, x, (top + bottom) / 2, down, up)


def _switch_link(axes: Any, gpu: GpuBox, x: float) -> None:
    top, bottom = GPU_TOP + GPU_HEIGHT, SWITCH_TOP
    axes.plot([x, x], [top, bottom], color=PEER_LINK.sentinel, linewidth=2.2, zorder=1)
    _rates(axes, x, (top + bottom) / 2, gpu.switch_out, gpu.switch_in)


def _rates(axes: Any, x: float, y: float, down: str, up: str) -> None:
    from matplotlib.patches import Rectangle

    told = [text for text in (f"↓ {down}" if down else "", f"↑ {up}" if up else "") if text]
    if not told:
        return
    height = 15.0 * len(told) + 4
    corner = (x - GPU_WIDTH / 2, y - height / 2)
    axes.add_patch(Rectangle(corner, GPU_WIDTH, height, facecolor=PAPER.sentinel, zorder=2))
    for n, text in enumerate(told):
        _text(axes, x, y + (n - (len(told) - 1) / 2) * 15, text)


def _arc(axes: Any, start: float, end: float, each: Direct) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    top = GPU_TOP + GPU_HEIGHT
    depth = ARC_DEPTH * (each.second - each.first)
    offset = 5.0 * (each.second - each.first)
    x = (start + offset, end - offset)
    vertices = [(x[0], top), (x[0], top + depth * 1.3), (x[1], top + depth * 1.3), (x[1], top)]
    path = Path(vertices, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    patch = PathPatch(path, facecolor="none", edgecolor=PEER_LINK.sentinel, linewidth=1.8, zorder=1)
    axes.add_patch(patch)
    if each.text:
        _text(axes, (start + end) / 2, top + depth * 0.975, each.text, backed=True, size=10)


def _box(
    axes: Any, x: float, y: float, width: float, height: float, edge: str, dashed: bool = False
) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=6"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=PANEL.sentinel,
                       edgecolor=edge, linewidth=1.2, zorder=2,
                       linestyle=(0, (4, 3)) if dashed else "-")
    )  # fmt: skip


def _text(
    axes: Any,
    x: float,
    y: float,
    text: str,
    *,
    bold: bool = False,
    soft: bool = False,
    backed: bool = False,
    size: float = 11,
) -> None:
    box = {"facecolor": PAPER.sentinel, "edgecolor": "none", "pad": 1.5} if backed else None
    axes.text(x, y, text, ha="center", va="center_baseline", fontsize=size, zorder=3,
              color=(SOFT if soft else INK).sentinel, fontweight="bold" if bold else "normal",
              bbox=box)  # fmt: skip


def lines_of(texts: Sequence[str]) -> tuple[str, ...]:
    """At most two, the rest counted."""
    if len(texts) <= 2:
        return tuple(texts)
    return (texts[0], f"and {len(texts) - 1} more")
