"""The picture of the machine with what its links carry, and all pairs of places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from waywiser.analysis.hidden import sentences
from waywiser.analysis.shown import SMALL_BYTES
from waywiser.report.chapters.each import each
from waywiser.report.entry import Entry
from waywiser.report.figures.matrix import Entered, matrix_picture
from waywiser.report.figures.topology import (
    Direct,
    GpuBox,
    GpuGroup,
    TopologyLayout,
    lines_of,
    topology_picture,
)
from waywiser.report.parts import (
    Block,
    Picture,
    Pictures,
    Section,
    Sheet,
    SheetCell,
    SheetRow,
    Words,
)
from waywiser.report.rates import Between, between_places, places
from waywiser.report.writing import spread
from waywiser.series.line import Line
from waywiser.topology.calls import call_text
from waywiser.topology.machine import Gpu, Machine, NumaNode
from waywiser.words import format_bytes
from waywiser.words.number_format import count, format_number, format_rate

_MAKER = re.compile(r"^(NVIDIA |GeForce |Tesla )+")

Measured = dict[tuple[str, str], Between]

LEAST_PLACES = 3
"""Places from which on a matrix says more than the table of headlines."""

SPREAD = 0.02
"""Rates within so much of each other are shown as one."""


def links(entries: Sequence[Entry]) -> Section:
    return each(entries, "links", "Topology and links", lambda entry: [*_links(entry)])


def _links(entry: Entry) -> Iterator[Block]:
    machine, measured = entry.subject.machine, between_places(entry)
    sides = entry.subject.overview.sides
    if sides is not None:
        for text in sentences(sides):
            yield Words(text[0].upper() + text[1:] + ".")
    pictures: list[Picture] = []
    if machine.gpus:
        pictures.append(_topology(entry, measured))
    if len(places(entry)) >= LEAST_PLACES and measured:
        pictures += _matrices(entry, measured)
    if pictures:
        yield Pictures(tuple(pictures))


def _topology(entry: Entry, measured: Measured) -> Picture:
    machine = entry.subject.machine
    groups = tuple(_groups(entry, measured))
    order = [gpu.name for group in groups for gpu in group.gpus]
    direct = tuple(_direct(machine, measured, order))
    switched = any(link.to == "switch" for gpu in machine.gpus for link in gpu.nvlinks)
    layout = TopologyLayout(groups, switched, direct)
    found = " Two groups of GPUs were found by measurement." if groups[0].found else ""
    at = _at(measured)
    description = (
        f"Host memory above, {count(len(machine.gpus), 'GPU')} below it"
        f"{', an NVLink switch under these' if switched else ''}; "
        f"rates of copies on each link in both directions{at}.{found}"
    )
    title = f"{entry.name}, with the rates measured on its links in GB/s{at}"
    return topology_picture(
        f"{entry.key}topology", title, layout, description, _table(entry, measured)
    )


def _at(measured: Measured) -> str:
    """Which sizes rates are of: ``, at 64 MiB``; empty if nothing was measured."""
    return f", at {_span(found.most.bytes for found in measured.values())}" if measured else ""


def _span(sizes: Iterable[int]) -> str:
    """``8 B``, ``8 B to 64 B``."""
    ordered = sorted(set(sizes))
    first, last = format_bytes(ordered[0]), format_bytes(ordered[-1])
    return first if first == last else f"{first} to {last}"


def _groups(entry: Entry, measured: Measured) -> Iterator[GpuGroup]:
    """Groups of GPUs by the sides that were found, else by the NUMA nodes that the system shows."""
    machine, sides = entry.subject.machine, entry.subject.overview.sides
    shown = {gpu.numa for gpu in machine.gpus}
    if sides is not None and len(sides.groups) > 1 and len(shown) == 1:
        for number, group in enumerate(sides.groups):
            gpus = [gpu for gpu in machine.gpus if gpu.index in group]
            title = f"side {'AB'[number]} of host memory"
            boxes = tuple(_box(gpu, machine, measured) for gpu in gpus)
            yield GpuGroup(title, ("found by measurement,", "the system shows none"), boxes, True)
        return
    by_node: dict[int, list[Gpu]] = {}
    for gpu in machine.gpus:
        by_node.setdefault(gpu.numa, []).append(gpu)
    unplaced = len(by_node) == 1
    for index, near in sorted(by_node.items()):
        nodes = [n for n in machine.numa if unplaced or n.index == index]
        title = ", ".join(f"numa:{n.index}" for n in nodes) or "host memory"
        boxes = tuple(_box(gpu, machine, measured) for gpu in near)
        yield GpuGroup(title, lines_of([text for n in nodes if (text := _node(n))]), boxes, False)


def _node(node: NumaNode) -> str:
    memory = f"{node.memory_bytes / 2**30:.0f} GiB" if node.memory_bytes else ""
    return ", ".join(filter(None, (memory, count(len(node.cpus), "CPU") if node.cpus else "")))


def _box(gpu: Gpu, machine: Machine, measured: Measured) -> GpuBox:
    name = f"gpu:{gpu.index}"
    hosts = [f"numa:{node.index}" for node in machine.numa]
    peers = [f"gpu:{other.index}" for other in machine.gpus if other.index != gpu.index]
    within = measured.get((name, name))
    return GpuBox(
        name=name,
        model=_MAKER.sub("", gpu.name)[:14],
        pci=gpu.pci,
        within=f"within {_gb(within)}" if within else "",
        down=_range([measured[key] for host in hosts if (key := (host, name)) in measured]),
        up=_range([measured[key] for host in hosts if (key := (name, host)) in measured]),
        switch_out=_range([measured[key] for peer in peers if (key := (name, peer)) in measured]),
        switch_in=_range([measured[key] for peer in peers if (key := (peer, name)) in measured]),
    )


def _direct(machine: Machine, measured: Measured, order: Sequence[str]) -> Iterator[Direct]:
    for gpu in machine.gpus:
        for link in gpu.nvlinks:
            ends = f"gpu:{gpu.index}", link.to
            if link.to not in order or order.index(ends[0]) > order.index(ends[1]):
                continue
            found = [measured[key] for key in (ends, ends[::-1]) if key in measured]
            yield Direct(order.index(ends[0]), order.index(ends[1]), _range(found))


def _range(found: Sequence[Between]) -> str:
    """``55.4``, or ``36.1–396`` if they differ."""
    if not found:
        return ""
    low, high = min(found, key=lambda b: b.rate), max(found, key=lambda b: b.rate)
    if low.rate >= high.rate * (1 - SPREAD):
        return _gb(high)
    return f"{_gb(low)}–{_gb(high)}"


def _gb(found: Between) -> str:
    return format_rate(found.rate, _digits(found.most))


def _digits(line: Line) -> float | None:
    """Half an interval, but three digits at most: a picture is to be looked at."""
    relative = line.estimate.relative if line.estimate else None
    return None if relative is None else max(relative, 0.005)


def _table(entry: Entry, measured: Measured) -> Sheet:
    """Every measured pair with its bound."""
    machine = entry.subject.machine
    order = {str(place): n for n, place in enumerate(places(entry))}
    known = sorted(measured.items(), key=lambda item: [order.get(end, -1) for end in item[0]])
    rows = []
    for (source, destination), found in known:
        most = found.most
        rows.append(
            SheetRow(
                (
                    SheetCell(
                        f"{source} → {destination}", link=entry.links.anchor(found.curve.text)
                    ),
                    _cell(most),
                    SheetCell(f"{most.of_bound:.0%}" if most.of_bound else "", number=True),
                    SheetCell(most.bound.made_of if most.bound else "not known"),
                    SheetCell(call_text(found.curve.workload.transfers, machine.traits)),
                )
            )
        )
    columns = ("from → to", "GB/s", "of the bound", "bound", "achieved by")
    return Sheet(
        "Rates on links",
        columns,
        tuple(rows),
        "At the largest size that all links of a kind have, with default settings where measured.",
    )


def _cell(line: Line) -> SheetCell:
    found = line.estimate
    if found is None or found.rate is None:
        return SheetCell("", number=True)
    text = format_rate(found.rate.value, found.relative)
    return SheetCell(text, note=spread(found.relative), number=True)


def _matrices(entry: Entry, measured: Measured) -> Iterator[Picture]:
    names = [str(place) for place in places(entry)]
    rates, times = {}, {}
    for key, found in measured.items():
        link = entry.links.anchor(found.curve.text)
        most, least = found.most.estimate, found.least.estimate
        if most is not None:
            note = spread(most.relative)
            rates[key] = Entered(found.rate, _gb(found), note, link)
        if least is not None and found.least.bytes <= SMALL_BYTES:
            few = None if least.relative is None else max(least.relative, 0.01)
            text = format_number(least.median * 1e6, few)
            note = spread(least.relative)
            times[key] = Entered(least.median, text, note, link)
    yield matrix_picture(
        f"{entry.key}matrix-rate", f"Bandwidth{_at(measured)}", "GB/s", names, rates
    )
    if times:
        title = (
            f"Latency of {_span(found.least.bytes for found in measured.values())}, queued copies"
        )
        yield matrix_picture(f"{entry.key}matrix-time", title, "µs", names, times)
