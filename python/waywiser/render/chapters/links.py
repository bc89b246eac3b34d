"""The picture of the machine with the bandwidth of its links, and all pairs of places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from waywiser.analysis.questions.hidden import sentences
from waywiser.curves import Point, size_span
from waywiser.machine import Gpu, Machine, NumaNode, call_text, lanes_text
from waywiser.machine.bounds import nvlink_rate
from waywiser.render.chapters.each import each
from waywiser.render.entry import Entry
from waywiser.render.figures.matrix import matrix_picture
from waywiser.render.figures.topology import (
    Direct,
    GpuBox,
    GpuGroup,
    LinkLabel,
    TopologyLayout,
    draw_topology,
    lines_of,
)
from waywiser.render.parts import (
    Block,
    Picture,
    Pictures,
    Section,
    Sheet,
    SheetCell,
    Words,
    numbers,
)
from waywiser.render.rates import Between, between_places, places
from waywiser.render.views.machine import generation_text
from waywiser.render.views.pairs import entered, methods_note, rate_of, time_of
from waywiser.render.writing import spread
from waywiser.words import count, format_bytes, format_rate, grouped

_MAKER = re.compile(r"^(NVIDIA |GeForce |Tesla )+")

Measured = dict[tuple[str, str], Between]

LEAST_PLACES = 3
"""Places from which on a matrix says more than the table of headlines."""

SPREAD = 0.02
"""Bandwidths within so much of each other are shown as one."""


def links(entries: Sequence[Entry]) -> Section:
    return each(entries, "links", "Topology and links", lambda entry: [*_links(entry)])


def _links(entry: Entry) -> Iterator[Block]:
    machine = entry.subject.machine
    measured = between_places(entry.curves, machine.traits)
    sides = entry.subject.overview.sides
    if sides is not None:
        for text in sentences(sides):
            yield Words(text[0].upper() + text[1:] + ".")
    pictures: list[Picture] = []
    if machine.gpus:
        rated = {key: each for key, each in measured.items() if each.most is not None}
        pictures.append(_topology(entry, rated))
    if len(places(machine)) >= LEAST_PLACES and measured:
        pictures += _matrices(entry, measured)
    if pictures:
        yield Pictures(tuple(pictures))


def _topology(entry: Entry, measured: Measured) -> Picture:
    machine = entry.subject.machine
    groups = tuple(_groups(entry, measured))
    order = [gpu.name for group in groups for gpu in group.gpus]
    direct = tuple(_direct(machine, measured, order))
    boxes = [gpu for group in groups for gpu in group.gpus]
    switched = any(gpu.switch is not None for gpu in boxes)
    labels = [each.label for each in direct] + [gpu.host for gpu in boxes]
    labels += [gpu.switch for gpu in boxes if gpu.switch is not None]
    note = "Width of a line: bandwidth. Percent: of the bound."
    if len(machine.numa) > 1 and all(gpu.numa >= 0 for gpu in machine.gpus):
        note += " H2D and D2H: with the local NUMA node, if measured."
    if not all(label.bandwidth for label in labels):
        note += " Dashed: not measured."
    at = _at({key: found for key, found in measured.items() if "gpu" in "".join(key)})
    found = " Two groups of GPUs were found by measurement." if groups[0].found else ""
    description = (
        f"Host memory above, {count(len(machine.gpus), 'GPU')} below it"
        f"{', an NVLink switch under these' if switched else ''}; "
        f"bandwidth of copies on each link in both directions{at}.{found}"
    )
    return Picture(
        name=f"{entry.key}topology",
        title=f"{entry.name}: links and their bandwidth{at}",
        description=description,
        draw=partial(draw_topology, TopologyLayout(groups, direct, note)),
        data=_table(entry, measured) if measured else None,
        wide=True,
    )


def _at(measured: Measured) -> str:
    """Which sizes bandwidths are of: `` at 64 MiB``; empty if there is no bandwidth."""
    sizes = {found.most.bytes for found in measured.values() if found.most is not None}
    return f" at {size_span(min(sizes), max(sizes))}" if sizes else ""


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
    by_node = grouped((gpu.numa, gpu) for gpu in machine.gpus)
    unplaced = set(by_node) == {-1}
    for index, local in sorted(by_node.items()):
        nodes = [n for n in machine.numa if unplaced or n.index == index]
        title = ", ".join(f"numa:{n.index}" for n in nodes) or "host memory"
        boxes = tuple(_box(gpu, machine, measured) for gpu in local)
        yield GpuGroup(title, lines_of([text for n in nodes if (text := _node(n))]), boxes, False)


def _node(node: NumaNode) -> str:
    memory = f"{node.memory_bytes / 2**30:.0f} GiB" if node.memory_bytes else ""
    return ", ".join(filter(None, (memory, count(len(node.cpus), "CPU") if node.cpus else "")))


def _box(gpu: Gpu, machine: Machine, measured: Measured) -> GpuBox:
    name = f"gpu:{gpu.index}"
    local = [f"numa:{gpu.numa}"]
    hosts = [f"numa:{node.index}" for node in machine.numa]
    if not any({(host, name), (name, host)} & measured.keys() for host in local):
        local = hosts
    peers = [f"gpu:{other.index}" for other in machine.gpus if other.index != gpu.index]
    within = measured.get((name, name))
    model = _MAKER.sub("", gpu.name)[:14]
    copy = f"local copy {_gb(within)} GB/s" if within else ""
    to_switch = [link for link in gpu.nvlinks if link.to == "switch"]
    return GpuBox(
        name=name,
        details=tuple(filter(None, (model, gpu.pci, copy))),
        host=_label(
            _host_link(gpu),
            {
                "H2D": _known(measured, ((host, name) for host in local)),
                "D2H": _known(measured, ((name, host) for host in local)),
            },
        ),
        switch=_label(
            f"NVLink, {lanes_text(to_switch)}",
            {
                "out": _known(measured, ((name, peer) for peer in peers)),
                "in": _known(measured, ((peer, name) for peer in peers)),
            },
        )
        if to_switch
        else None,
    )


def _known(measured: Measured, keys: Iterable[tuple[str, str]]) -> list[Between]:
    return [measured[key] for key in keys if key in measured]


def _label(kind: str, directions: dict[str, list[Between]]) -> LinkLabel:
    lines = tuple(f"{word} {_range(found)}".strip() for word, found in directions.items() if found)
    rates = [each.rate / 1e9 for found in directions.values() for each in found]
    return LinkLabel(kind, lines, max(rates, default=0.0))


def _host_link(gpu: Gpu) -> str:
    """``PCIe 5 x16``, ``PCIe 1 x16 (max 5 x16)``; empty if nothing is known."""
    to_cpu = [link for link in gpu.nvlinks if link.to == "cpu"]
    if to_cpu:
        return f"{to_cpu[0].kind} to CPU, {lanes_text(to_cpu)}"
    if gpu.on_module:
        return "NVLink-C2C to CPU" if gpu.on_module == "coherent" else "the host's memory"
    link = gpu.pcie
    best = generation_text(link.generation_max, link.width_max)
    now = generation_text(link.generation_now, link.width_now)
    if now:
        return f"PCIe {now}" + (f" (max {best})" if best and best != now else "")
    if link.gb_per_s_now:
        return f"PCIe, {link.gb_per_s_now:.1f} GB/s"
    return f"PCIe, max {best}" if best else ""


def _direct(machine: Machine, measured: Measured, order: Sequence[str]) -> Iterator[Direct]:
    for gpu in machine.gpus:
        for link in gpu.nvlinks:
            ends = f"gpu:{gpu.index}", link.to
            if link.to not in order or order.index(ends[0]) > order.index(ends[1]):
                continue
            label = _label(lanes_text((link,)), {"": _known(measured, (ends, ends[::-1]))})
            yield Direct(order.index(ends[0]), order.index(ends[1]), label)


def _range(found: Sequence[Between]) -> str:
    """``55.4 GB/s, 88%``, or ``36.1–396 GB/s, 75–83%`` if they differ."""
    low, high = min(found, key=lambda b: b.rate), max(found, key=lambda b: b.rate)
    alike = low.rate >= high.rate * (1 - SPREAD)
    text = f"{_gb(high)} GB/s" if alike else f"{_gb(low)}–{_gb(high)} GB/s"
    shares = [share for each in found if each.most and (share := each.most.of_bound)]
    if len(shares) < len(found):
        return text
    if alike:
        return f"{text}, {_share(high)}"
    least, most = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return f"{text}, {most if least == most else f'{least[:-1]}–{most}'}"


def _share(found: Between) -> str:
    share = found.most.of_bound if found.most is not None else None
    return f"{share:.0%}" if share else ""


def _gb(found: Between) -> str:
    return format_rate(found.rate, _digits(found.most))


def _digits(point: Point | None) -> float | None:
    """Half an interval, but three digits at most: a picture is to be looked at."""
    relative = point.estimate.relative if point is not None and point.estimate else None
    return None if relative is None else max(relative, 0.005)


def _table(entry: Entry, measured: Measured) -> Sheet:
    """Every pair that has a bandwidth, with its bound."""
    machine = entry.subject.machine
    order = {str(place): n for n, place in enumerate(places(machine))}
    known = sorted(measured.items(), key=lambda item: [order.get(end, -1) for end in item[0]])
    alike = len({found.most.bytes for found in measured.values() if found.most is not None}) == 1
    rows = []
    for (source, destination), found in known:
        most = found.most
        if most is None:
            continue
        relative = most.estimate.relative if most.estimate else None
        path = f"{source} -> {destination}"
        cells = [
            SheetCell(path, link=entry.links.anchor(found.curve.text)),
            _kind_of_link(machine, source, destination),
            *(() if alike else (format_bytes(most.bytes),)),
            SheetCell(_gb(found), note=spread(relative)),
            _share(found),
            most.bound.made_of if most.bound else "not known",
            call_text(found.curve.workload.transfers, machine.traits),
        ]
        rows.append(cells)
    figures = numbers(*(() if alike else ("size",)), "GB/s", "of the bound")
    return Sheet.of(
        f"Bandwidth of links{_at(measured)}",
        ("from -> to", "link", *figures, "bound", "achieved by"),
        rows,
        "At the largest size that all links of a kind have, with default settings where measured.",
    )


def _kind_of_link(machine: Machine, source: str, destination: str) -> str:
    """The kind of link, as in the picture; empty within a device or without a direct link."""
    ends = {f"gpu:{gpu.index}": gpu for gpu in machine.gpus}
    gpus = [ends[end] for end in (source, destination) if end in ends]
    if len(gpus) == 1:
        return _host_link(gpus[0])
    if len(gpus) < 2 or source == destination:
        return ""
    links = [
        [link for link in gpu.nvlinks if link.to in ("switch", other)]
        for gpu, other in zip(gpus, (destination, source), strict=True)
    ]
    narrow = min(links, key=nvlink_rate)
    return f"NVLink, {lanes_text(narrow)}" if all(links) else ""


def _matrices(entry: Entry, measured: Measured) -> Iterator[Picture]:
    machine = entry.subject.machine
    names = list(map(str, places(machine)))
    rates = entered(machine, measured, rate_of, entry.links.anchor)
    times = entered(machine, measured, time_of, entry.links.anchor)
    by_cpus = dict.fromkeys(
        call_text(measured[key].curve.workload.transfers, machine.traits)
        for key in rates
        if "gpu" not in "".join(key)
    )
    if rates:
        title = f"Bandwidth{_at(measured)}"
        within = f"Within host memory: {'; '.join(by_cpus)}." if by_cpus else ""
        note = " ".join(filter(None, (within, methods_note(rates))))
        yield matrix_picture(f"{entry.key}matrix-bandwidth", title, "GB/s", names, rates, note)
    if times:
        sizes = [each.bytes for each in times.values()]
        title = f"Latency of {size_span(min(sizes), max(sizes))}"
        note = " ".join(filter(None, (_LATENCY, methods_note(times))))
        yield matrix_picture(f"{entry.key}matrix-latency", title, "µs", names, times, note)


_LATENCY = "Median time per copy while several wait; a program that waits for each takes longer."
