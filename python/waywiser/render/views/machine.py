"""A machine: packages, NUMA nodes, caches, cores; GPUs, links, peaks and peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from waywiser.machine import (
    LOST_REMEDY,
    Gpu,
    Machine,
    NumaNode,
    Package,
    format_list,
    lanes_text,
    lost_text,
)
from waywiser.machine.peaks import peaks
from waywiser.render.parts import Block, Outline, Section, Sheet, SheetColumn, Words, numbers
from waywiser.words import by_wording, count, format_bytes, format_rate, format_time, grouped


def machine_parts(machine: Machine) -> Iterator[Block | Section]:
    """The whole machine."""
    if lost := lost_text(machine):
        remedy = Words(LOST_REMEDY, indent=7)
        yield Section("", "", (Words(lost, label="error:", tone="error", indent=7), remedy))
    yield Section("", "", (_title(machine), *(_package(machine, p) for p in machine.packages)))
    if machine.gpus:
        yield from _gpus(machine.gpus)
        yield Section("", "", (_peaks(machine),))
        yield Section("", "", (*_peers(machine.gpus), *_states(machine.gpus), *_notes(machine)))
    else:
        none = Words(f"no GPUs: {machine.gpu_reason}")
        yield Section("", "", (none, *_notes(machine)))


def _title(machine: Machine) -> Words:
    driver = f"driver {machine.driver} (CUDA {machine.cuda_driver})" if machine.driver else ""
    virtual = f"virtual: {machine.virtual}" if machine.virtual else ""
    parts = (machine.hostname, machine.architecture, virtual, driver)
    return Words(" · ".join(filter(None, parts)), "lead")


def _package(machine: Machine, package: Package) -> Outline:
    cores = count(package.cores, "core") if package.cores else ""
    cpus = count(package.cpus, "CPU") if package.cpus else "CPUs unknown"
    nodes = (node for node in machine.numa if node.package == package.index)
    return Outline(
        f"package {package.index}",
        ", ".join(filter(None, (package.model, cores, cpus))),
        tuple(
            Outline(f"numa:{node.index}", _node(node), (*_below_node(machine, node),))
            for node in nodes
        ),
    )


def _node(node: NumaNode) -> str:
    """Memory and CPUs; what is not known, as of an imported profile, is called unknown."""
    memory = f"{node.memory_bytes / 2**30:.1f} GiB" if node.memory_bytes else "memory unknown"
    none = "no CPUs" if node.memory_bytes else "CPUs unknown"
    cpus = f"{count(len(node.cpus), 'CPU')} {format_list(node.cpus)}" if node.cpus else none
    return f"{memory}, {cpus}"


def _below_node(machine: Machine, node: NumaNode) -> Iterator[Outline]:
    caches = Counter(
        (cache.level, cache.bytes, len(cache.cpus))
        for cache in machine.caches
        if set(cache.cpus) <= set(node.cpus)
    )
    for (level, size, cpus), number in sorted(caches.items(), reverse=True):
        shared = "each CPU its own" if cpus == 1 else f"each shared by {cpus} CPUs"
        yield Outline("", f"{number} × L{level} {format_bytes(size)}, {shared}")
    for access in node.stated:
        rate = f"{format_rate(access.bytes_per_second)} GB/s" if access.bytes_per_second else ""
        latency = f"latency {format_time(access.seconds)}" if access.seconds else ""
        by = "its own CPUs" if access.by == node.index else f"the CPUs of numa:{access.by}"
        values = ", ".join(filter(None, (rate, latency)))
        yield Outline("", f"the firmware states {values} from {by}")
    local = tuple(gpu.index for gpu in machine.gpus if gpu.numa == node.index)
    if local:
        yield Outline("", f"local to gpu:{format_list(local)}")


def _gpus(gpus: tuple[Gpu, ...]) -> Iterator[Section]:
    alike = Counter(map(_model, gpus))
    models = (Words(f"{number} × {name}", "lead") for name, number in alike.items())
    columns = ("GPU", "PCI address", "near", "PCIe now", "at most")
    described = any(gpu.nvlinks or gpu.links_known for gpu in gpus)
    lanes = SheetColumn("NVLink lanes" if described else "other links", folds=True)
    yield Section("", "", (*models, Sheet.of("GPUs", (*columns, lanes), map(_row, gpus))))


def _row(gpu: Gpu) -> tuple[str, ...]:
    link = gpu.pcie
    now = f"{link.gb_per_s_now:.1f} GB/s" if link.gb_per_s_now else ""
    pcie = (
        generation_text(link.generation_now, link.width_now) or now or "unknown",
        generation_text(link.generation_max, link.width_max) or "unknown",
    )
    return (
        f"gpu:{gpu.index}",
        gpu.pci or "unknown",
        f"numa:{gpu.numa}" if gpu.numa >= 0 else "unknown",
        *(("not used", "not used") if gpu.on_module else pcie),
        _nvlinks(gpu),
    )


def _model(gpu: Gpu) -> str:
    parts = [gpu.name]
    if gpu.memory_bytes:
        parts.append(f"{gpu.memory_bytes / 2**30:.1f} GiB")
    if gpu.compute:
        parts.append(f"compute {gpu.compute}")
    return ", ".join(parts)


def _nvlinks(gpu: Gpu) -> str:
    """``4 each to gpu:1-3, 2 to cpu``; ``none`` only if the source reports all links."""
    to_gpus: dict[str, list[int]] = {}
    parts = []
    for link in gpu.nvlinks:
        kind, _, number = link.to.partition(":")
        lanes = str(link.lanes) if link.lanes else f"unknown number ({lanes_text((link,))})"
        if kind == "gpu":
            to_gpus.setdefault(lanes, []).append(int(number))
        else:
            parts.append(f"{lanes} {'C2C ' if link.kind == 'NVLink-C2C' else ''}to {link.to}")
    for lanes, others in to_gpus.items():
        each = " each" if len(others) > 1 else ""
        parts.append(f"{lanes}{each} to gpu:{format_list(tuple(others))}")
    known = gpu.links_known and not gpu.on_module
    return ", ".join(parts) or ("none" if known else "unknown")


def generation_text(generation: int, width: int) -> str:
    """``5 x16``; empty if it is not known."""
    return f"{generation} x{width}" if generation and width else ""


def _peaks(machine: Machine) -> Sheet:
    """The distinct peaks, each with the kind of path it belongs to."""
    seen: dict[tuple[str, str], None] = {}
    for peak in peaks(machine):
        ends = peak.source.partition(":")[0], peak.destination.partition(":")[0]
        path = "GPU to GPU" if ends == ("gpu", "gpu") else "host and GPU"
        if peak.source == peak.destination:
            path = "within a GPU"
        seen[path, peak.made_of] = None
    return Sheet.of("Peaks", ("at most, one way", SheetColumn("", folds=True)), seen)


def _peers(gpus: tuple[Gpu, ...]) -> Iterator[Block]:
    """The peer matrix in one line if all pairs are alike, else as a matrix of letters."""
    if len(gpus) < 2:
        return
    marks = {gpu.index: [_mark(gpu, other) for other in gpus] for gpu in gpus}
    kinds = {mark for row in marks.values() for mark in row} - {"·"}
    absent = "none" if all(gpu.links_known for gpu in gpus) else "unknown"
    legend = {"N": "over NVLink", "P": "over PCIe", "?": "over an unknown link", "-": absent}
    if len(kinds) == 1:
        yield Words(f"peer access between all pairs of GPUs: {legend[kinds.pop()]}")
        return
    signs = ", ".join(f"{mark} {text}" for mark, text in legend.items() if mark in kinds)
    title = f"peer access from row to column ({signs}):"
    columns = ("", *numbers(*(str(gpu.index) for gpu in gpus)))
    rows = ((f"gpu:{index}", *row) for index, row in marks.items())
    yield Words(title)
    yield Sheet.of("Peer access", columns, rows, is_matrix=True)


def _mark(gpu: Gpu, other: Gpu) -> str:
    if gpu.index == other.index:
        return "·"
    if other.index not in gpu.peers:
        return "-"
    ends = {link.to for link in gpu.nvlinks}
    switched = "switch" in ends and any(link.to == "switch" for link in other.nvlinks)
    if f"gpu:{other.index}" in ends or switched:
        return "N"
    return "P" if gpu.links_known and other.links_known else "?"


def _states(gpus: tuple[Gpu, ...]) -> Iterator[Words]:
    """GPUs of which the same is shown together, so that eight alike take one line."""
    for describe in (_modes, _clocks, _trouble):
        for text, same in grouped((describe(gpu), gpu.index) for gpu in gpus).items():
            if text:
                yield Words(f"gpu:{format_list(tuple(same))}: {text}")


def _modes(gpu: Gpu) -> str:
    modes = (("ECC", gpu.ecc), ("MIG", gpu.mig), ("persistence mode", gpu.persistence))
    parts = [f"{name} {value}" for name, value in modes if value]
    if gpu.pageable_access:
        parts.append("reads pageable memory itself")
    if gpu.on_module == "integrated":
        parts.append("uses the host's memory")
    return ", ".join(parts)


def _clocks(gpu: Gpu) -> str:
    if not gpu.clock_sm_max_mhz:
        return ""
    if not gpu.clock_sm_mhz:  # a capture made of a data sheet
        memory = f", memory {gpu.clock_memory_max_mhz} MHz" if gpu.clock_memory_max_mhz else ""
        return f"clocks at most: SM {gpu.clock_sm_max_mhz} MHz{memory}"
    sm = f"SM {gpu.clock_sm_mhz} of {gpu.clock_sm_max_mhz} MHz"
    if not gpu.clock_memory_max_mhz:
        return f"clocks now and at most: {sm}"
    memory = f"memory {gpu.clock_memory_mhz or 'unknown'} of {gpu.clock_memory_max_mhz} MHz"
    return f"clocks now and at most: {sm}, {memory}"


def _trouble(gpu: Gpu) -> str:
    parts = [f"held down by {reason}" for reason in gpu.throttle]
    parts += [f"in use by {process}" for process in gpu.processes]
    return "; ".join(parts)


def _notes(machine: Machine) -> Iterator[Words]:
    lines = (line for line, _ in by_wording(machine.notes))
    return (Words(line, label="note:", tone="warning", indent=6) for line in lines)
