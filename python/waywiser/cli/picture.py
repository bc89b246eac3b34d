"""A machine in the terminal: packages, NUMA nodes, caches, cores; GPUs, links, peaks and peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from waywiser.cli.printing import plain_console
from waywiser.machine.machine import Gpu, Machine, NumaNode, Package
from waywiser.machine.peaks import peaks
from waywiser.machine.system_files import format_list
from waywiser.words import format_bytes


def print_machine(machine: Machine, console: Console | None = None) -> None:
    """The whole picture, to standard output unless another console is given."""
    console = console or plain_console()
    console.print(_title(machine))
    for package in machine.packages:
        console.print(_package(machine, package))
    console.print()
    if machine.gpus:
        _print_gpus(machine, console)
    else:
        console.print(Text(f"no GPUs: {machine.gpu_reason}"))
    for note in machine.notes:
        console.print(Text("note: ", style="yellow").append(note, style="default"))


def _title(machine: Machine) -> Text:
    driver = f"driver {machine.driver} (CUDA {machine.cuda_driver})" if machine.driver else ""
    virtual = f"virtual: {machine.virtual}" if machine.virtual else ""
    rest = [part for part in (machine.architecture, virtual, driver) if part]
    return Text(machine.hostname, style="bold").append(" · ".join(["", *rest]), style="default")


def _package(machine: Machine, package: Package) -> Tree:
    cores = f"{package.cores} cores" if package.cores else ""
    cpus = f"{package.cpus} CPUs" if package.cpus else "CPUs unknown"
    known = ", ".join(filter(None, (package.model, cores, cpus)))
    tree = Tree(Text(f"package {package.index}", style="bold").append(f"  {known}", "default"))
    for node in machine.numa:
        if node.package == package.index:
            branch = tree.add(
                Text(f"numa:{node.index}", style="bold").append(_node(node), "default")
            )
            for line in _below_node(machine, node):
                branch.add(Text(line))
    return tree


def _node(node: NumaNode) -> str:
    """Memory and CPUs; what is not known, as of an imported profile, is called unknown."""
    memory = f"{node.memory_bytes / 2**30:.1f} GiB" if node.memory_bytes else "memory unknown"
    none = "no CPUs" if node.memory_bytes else "CPUs unknown"
    cpus = f"{len(node.cpus)} CPUs {format_list(node.cpus)}" if node.cpus else none
    return f"  {memory}, {cpus}"


def _below_node(machine: Machine, node: NumaNode) -> Iterator[str]:
    caches: dict[tuple[int, int, int], int] = {}
    for cache in machine.caches:
        if set(cache.cpus) <= set(node.cpus):
            key = (cache.level, cache.bytes, len(cache.cpus))
            caches[key] = caches.get(key, 0) + 1
    for (level, size, cpus), count in sorted(caches.items(), reverse=True):
        shared = "each CPU its own" if cpus == 1 else f"each shared by {cpus} CPUs"
        yield f"{count} × L{level} {format_bytes(size)}, {shared}"
    local = tuple(gpu.index for gpu in machine.gpus if gpu.numa == node.index)
    if local:
        yield f"local to gpu:{format_list(local)}"


def _print_gpus(machine: Machine, console: Console) -> None:
    for name, gpus in _grouped(machine.gpus, _model).items():
        console.print(Text(f"{len(gpus)} × {name}", style="bold"))
    console.print(_gpu_table(machine))
    console.print()
    console.print(_peak_table(machine))
    console.print()
    if len(machine.gpus) > 1:
        for text in _peer_lines(machine.gpus):
            console.print(Text(text))
    for describe in (_modes, _clocks, _trouble):
        for text, gpus in _grouped(machine.gpus, describe).items():
            if text:
                console.print(Text(f"{_names(gpus)}: {text}"))


def _grouped(gpus: Iterable[Gpu], text: Callable[[Gpu], str]) -> dict[str, list[Gpu]]:
    """GPUs by what is shown of them, so that eight alike take one line."""
    groups: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        groups.setdefault(text(gpu), []).append(gpu)
    return groups


def _names(gpus: Iterable[Gpu]) -> str:
    return f"gpu:{format_list(tuple(gpu.index for gpu in gpus))}"


def _model(gpu: Gpu) -> str:
    parts = [gpu.name]
    if gpu.memory_bytes:
        parts.append(f"{gpu.memory_bytes / 2**30:.1f} GiB")
    if gpu.compute:
        parts.append(f"compute {gpu.compute}")
    return ", ".join(parts)


def _gpu_table(machine: Machine) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("  GPU", "PCI address", "near", "PCIe now", "at most", "NVLink lanes"):
        table.add_column(heading, no_wrap=heading != "NVLink lanes", overflow="fold")
    for gpu in machine.gpus:
        link = gpu.pcie
        now = f"{link.gb_per_s_now:.1f} GB/s" if link.gb_per_s_now else ""
        table.add_row(
            f"  gpu:{gpu.index}",
            gpu.pci,
            f"numa:{gpu.numa}" if gpu.numa >= 0 else "unknown",
            _generation(link.generation_now, link.width_now) or now or "unknown",
            _generation(link.generation_max, link.width_max) or "unknown",
            _nvlinks(gpu),
        )
    return table


def _nvlinks(gpu: Gpu) -> str:
    """``4 each to gpu:1-3, 2 to cpu``; ``none`` only if the source reports all links."""
    to_gpus: dict[int, list[int]] = {}
    parts = []
    for link in gpu.nvlinks:
        kind, _, number = link.to.partition(":")
        if kind == "gpu":
            to_gpus.setdefault(link.lanes, []).append(int(number))
        else:
            parts.append(f"{link.lanes} to {link.to}")
    for lanes, others in to_gpus.items():
        each = " each" if len(others) > 1 else ""
        parts.append(f"{lanes}{each} to gpu:{format_list(tuple(others))}")
    return ", ".join(parts) or ("none" if gpu.links_known else "unknown")


def _generation(generation: int, width: int) -> str:
    return f"{generation} x{width}" if generation and width else ""


def _peak_table(machine: Machine) -> Table:
    """The distinct peaks, each with the kind of way it belongs to."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  at most, one way", no_wrap=True)
    table.add_column("", overflow="fold")
    seen: dict[tuple[str, str], None] = {}
    for peak in peaks(machine):
        ends = peak.source.partition(":")[0], peak.destination.partition(":")[0]
        if peak.source == peak.destination:
            way = "within a GPU"
        elif ends == ("gpu", "gpu"):
            way = "GPU to GPU"
        else:
            way = "host and GPU"
        seen[way, peak.made_of] = None
    for way, made_of in seen:
        table.add_row(f"  {way}", made_of)
    return table


def _peer_lines(gpus: tuple[Gpu, ...]) -> Iterator[str]:
    """The peer matrix in one line where all pairs are alike, else as a matrix of letters."""
    marks = {gpu.index: [_mark(gpu, other) for other in gpus] for gpu in gpus}
    kinds = {mark for row in marks.values() for mark in row} - {"·"}
    absent = "none" if all(gpu.links_known for gpu in gpus) else "unknown"
    legend = {"N": "over NVLink", "P": "over PCIe", "?": "over an unknown link", "-": absent}
    if len(kinds) == 1:
        yield f"peer access between all pairs of GPUs: {legend[kinds.pop()]}"
        return
    signs = ", ".join(f"{mark} {text}" for mark, text in legend.items() if mark in kinds)
    yield f"peer access from row to column ({signs}):"
    width = len(str(gpus[-1].index)) + 1
    yield " " * 8 + "".join(f"{gpu.index:>{width}}" for gpu in gpus)
    for index, row in marks.items():
        yield f"  {f'gpu:{index}':<6}" + "".join(f"{mark:>{width}}" for mark in row)


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


def _modes(gpu: Gpu) -> str:
    modes = (("ECC", gpu.ecc), ("MIG", gpu.mig), ("persistence mode", gpu.persistence))
    parts = [f"{name} {value}" for name, value in modes if value]
    if gpu.pageable_access:
        parts.append("reads pageable memory itself")
    return ", ".join(parts)


def _clocks(gpu: Gpu) -> str:
    if not gpu.clock_sm_max_mhz:
        return ""
    if not gpu.clock_sm_mhz:  # a capture made of a data sheet
        at_most = f"SM {gpu.clock_sm_max_mhz} MHz, memory {gpu.clock_memory_max_mhz} MHz"
        return f"clocks at most: {at_most}"
    return (
        f"clocks now and at most: SM {gpu.clock_sm_mhz} of {gpu.clock_sm_max_mhz} MHz, "
        f"memory {gpu.clock_memory_mhz} of {gpu.clock_memory_max_mhz} MHz"
    )


def _trouble(gpu: Gpu) -> str:
    parts = [f"held down by {reason}" for reason in gpu.throttle]
    parts += [f"in use by {process}" for process in gpu.processes]
    return "; ".join(parts)
