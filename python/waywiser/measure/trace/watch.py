"""Watches a program that runs: bytes over the links of its GPUs, its pages and its threads by NUMA
node. It changes nothing, and needs no debugger: files of ``/proc`` and counters of NVML."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from waywiser.machine import Gpu, LinkCounters, Machine
from waywiser.profile import TraceError
from waywiser.profile.traffic import PacketOverhead
from waywiser.words import Value

READ_SECONDS = 0.02
"""Between two readings: the counter of PCIe has 32 bits, which 55 GB/s pass in 0.08 s."""

_DEVICE = re.compile(r"/dev/nvidia(\d+)$")


class GpuLinkTraffic(Value, frozen=True):
    """Bytes per second over the links of a GPU, of all programs together. Counts of PCIe have the
    headers and requests of packets."""

    gpu: int
    numa: int
    """The GPU's NUMA node; -1 if it is not known."""
    pcie_to: float | None
    """To the GPU; None if the driver does not count it."""
    pcie_from: float | None
    nvlink_to: float | None
    nvlink_from: float | None
    why_not: str = ""
    h2d: float | None = None
    """Bytes of copies to the GPU that make such counts; None if no survey has seen how much is
    counted for a byte."""
    d2h: float | None = None


class WatchedProgram(Value, frozen=True):
    """A program that runs, for some seconds."""

    pid: int
    command: str
    seconds: float
    gpus: tuple[GpuLinkTraffic, ...]
    pages: Mapping[int, int]
    """Bytes of the program's memory by NUMA node."""
    threads: Mapping[int, int]
    """Threads by the NUMA node of the CPU that they last ran on; -1 for CPUs of no known node."""
    notes: tuple[str, ...] = ()


def watch(pid: int, seconds: float, machine: Machine, root: Path = Path("/proc")) -> WatchedProgram:
    """Watches a process for some seconds. Raises `TraceError`: there is no such process, or it
    belongs to another user."""
    folder = root / str(pid)
    command = _command(folder, pid)
    gpus = [gpu for gpu in machine.gpus if gpu.index in _gpus_of(folder, machine)]
    started = time.monotonic()
    traffic, notes = _traffic(gpus, seconds, folder)
    elapsed = time.monotonic() - started
    pages, why = _pages(folder)
    if not gpus:
        notes = [*notes, "it has no GPU open, by its files in /proc"]
    return WatchedProgram(
        pid, command, elapsed, tuple(traffic), pages, _threads(folder, machine),
        (*notes, *why),
    )  # fmt: skip


def with_copies(found: WatchedProgram, overheads: Mapping[int, PacketOverhead]) -> WatchedProgram:
    """The same with the bytes of copies, by what a survey of this machine saw of its packets."""
    gpus = []
    for gpu in found.gpus:
        overhead = overheads.get(gpu.gpu)
        if overhead is not None and gpu.pcie_to is not None and gpu.pcie_from is not None:
            to, back = overhead.copied(gpu.pcie_to, gpu.pcie_from)
            gpu = replace(gpu, h2d=to, d2h=back)
        gpus.append(gpu)
    return replace(found, gpus=tuple(gpus))


def _command(folder: Path, pid: int) -> str:
    try:
        words = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except FileNotFoundError:
        raise TraceError(f"there is no process {pid}", remedy="see ps, or nvidia-smi") from None
    except OSError as error:
        raise TraceError(
            f"process {pid} cannot be read: {error.strerror}", remedy="watch it as its user"
        ) from error
    return b" ".join(words).decode(errors="replace") or (folder / "comm").read_text().strip()


def _gpus_of(folder: Path, machine: Machine) -> set[int]:
    """The GPUs whose device files the process has open. The numbers of these files are in the order
    of PCI addresses, as those of a machine are."""
    found: set[int] = set()
    try:
        for name in os.listdir(folder / "fd"):
            try:
                if matched := _DEVICE.match(os.readlink(folder / "fd" / name)):
                    found.add(int(matched[1]))
            except OSError:
                continue  # it was closed meanwhile
    except PermissionError:
        raise TraceError(
            f"process {folder.name} belongs to another user", remedy="watch it as its user"
        ) from None
    except FileNotFoundError:
        raise TraceError(f"process {folder.name} has ended") from None
    return found


def _traffic(
    gpus: Sequence[Gpu], seconds: float, folder: Path
) -> tuple[list[GpuLinkTraffic], list[str]]:
    """Counts until the time is over, or the process ends."""
    notes: list[str] = []
    totals: dict[int, list[float]] = {gpu.index: [0.0] * 4 for gpu in gpus}
    known: dict[int, list[bool]] = {gpu.index: [True] * 4 for gpu in gpus}
    end = time.monotonic() + seconds
    with LinkCounters(gpus) as counters:
        indices = [gpu.index for gpu in gpus]
        before, begun = counters.read(indices), time.monotonic()
        while (now := time.monotonic()) < end:
            if not folder.exists():
                notes.append(f"it ended after {now - begun:.1f} s")
                break
            time.sleep(min(READ_SECONDS, max(end - now, 0.0)))
            after = counters.read(indices)
            for index in indices:
                _add(counters, index, before, after, totals[index], known[index])
            before = after
        elapsed = max(time.monotonic() - begun, 1e-9)
        why = {gpu.index: "; ".join(counters.reasons(gpu.index)) for gpu in gpus}
    found = []
    for gpu in gpus:
        counted = zip(totals[gpu.index], known[gpu.index], strict=True)
        to, back, link_to, link_back = [
            total / elapsed if sure else None for total, sure in counted
        ]
        reason = why[gpu.index]
        found.append(GpuLinkTraffic(gpu.index, gpu.numa, to, back, link_to, link_back, reason))
    return found, notes


def _add(
    counters: LinkCounters,
    index: int,
    before: Mapping[int, object],
    after: Mapping[int, object],
    totals: list[float],
    known: list[bool],
) -> None:
    if index not in before or index not in after:
        known[:] = [False] * 4
        return
    moved = counters.between(index, before[index], after[index])  # type: ignore[arg-type]
    nvlink = [
        None if links is None else sum(links.values())
        for links in (moved.nvlink_rx, moved.nvlink_tx)
    ]
    for n, count in enumerate((moved.pcie_rx, moved.pcie_tx, *nvlink)):
        if count is None:
            known[n] = False
        else:
            totals[n] += count


def _pages(folder: Path) -> tuple[dict[int, int], list[str]]:
    """Bytes of memory by NUMA node, by ``numa_maps``."""
    try:
        text = (folder / "numa_maps").read_text()
    except OSError as error:
        return {}, [f"its pages by NUMA node are not known: numa_maps: {error.strerror}"]
    found: dict[int, int] = {}
    for line in text.splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        size = int(words.get("kernelpagesize_kB", "4")) << 10
        for name, number in words.items():
            if re.fullmatch(r"N\d+", name) and number.isdigit():
                node = int(name[1:])
                found[node] = found.get(node, 0) + int(number) * size
    return dict(sorted(found.items())), []


def _threads(folder: Path, machine: Machine) -> dict[int, int]:
    """Threads by the NUMA node of the CPU that each last ran on."""
    nodes = {cpu: node.index for node in machine.numa for cpu in node.cpus}
    found: dict[int, int] = {}
    for cpu in _last_cpus(folder):
        node = nodes.get(cpu, -1)
        found[node] = found.get(node, 0) + 1
    return dict(sorted(found.items()))


def _last_cpus(folder: Path) -> Iterator[int]:
    try:
        threads = sorted((folder / "task").iterdir())
    except OSError:
        return
    for thread in threads:
        try:
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            yield int(fields[36])
        except (OSError, IndexError, ValueError):
            continue
