"""What is wrong with one host of a fleet, by device, and how sure that is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from waywiser.analysis.answer import Device
from waywiser.comparison.errors_counted import counted, devices_in
from waywiser.comparison.fleet_table import SlowPath
from waywiser.comparison.hardware import Twins
from waywiser.comparison.node import Node, gpus_of
from waywiser.plan.name import name_of
from waywiser.topology.machine import Gpu
from waywiser.words import Operation, Place, Value, Workload, format_bytes

MOST_PATTERNS = 4
"""Paths that a command for measuring again names: the slowest."""


class Fault(Value, frozen=True):
    """One thing that is wrong with a host, as far as was seen."""

    kind: Literal["missing GPU", "link", "slow", "health", "missing path"]
    statement: str
    devices: tuple[Device, ...] = ()
    paths: tuple[SlowPath, ...] = ()
    """Single transfers first, the slowest first."""
    verdict: bool = False
    """Seen directly, or again; else it is a suspicion."""
    again: str = ""
    """The command that measures it again, on that host."""


def missing_gpus(twins: Twins, node: Node, missing: Sequence[Gpu]) -> Iterator[Fault]:
    """``missing`` are those of a whole host that this one has not."""
    here = len(node.machine.gpus)
    if here >= twins.gpus:
        return
    known = {gpu.pci for gpu in node.machine.gpus}
    devices = tuple(
        Device(f"gpu:{gpu.index}", "", gpu.pci) for gpu in missing if gpu.pci not in known
    )
    where = f": none at {', '.join(d.pci or d.place for d in devices)}" if devices else ""
    reason = f" ({node.machine.gpu_reason})" if node.machine.gpu_reason else ""
    statement = f"{here} of {twins.gpus} GPUs{where}{reason}"
    yield Fault("missing GPU", statement, devices, verdict=True, again="waywiser topology")


def common_links(twins: Twins) -> set[str]:
    """What most hosts say of their links is what the class is, and no fault of any."""
    told: dict[str, int] = {}
    for surveys in twins.hosts.values():
        node = surveys[-1]
        for text in {link.below(gpu) for gpu in node.machine.gpus
                     if (link := node.links.get(gpu.index))}:  # fmt: skip
            told[text] = told.get(text, 0) + 1
    return {text for text, count in told.items() if 2 * count > len(twins.hosts)}


def slow_links(node: Node, common: set[str]) -> Iterator[Fault]:
    for gpu in node.machine.gpus:
        below = node.links[gpu.index].below(gpu) if gpu.index in node.links else ""
        if below and below not in common:
            device = Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)
            yield Fault(
                "link", f"{device.place} ran at {below} under load", (device,), verdict=True
            )


def slow_devices(node: Node, slow: Sequence[SlowPath]) -> Iterator[Fault]:
    """The fewest devices that are on all slow paths, the one on most of them first."""
    left = [(path, _gpus_on(path)) for path in slow]
    while left:
        counts: dict[int, int] = {}
        for _, gpus in left:
            for gpu in gpus:
                counts[gpu] = counts.get(gpu, 0) + 1
        if not counts:
            yield _slow_fault(node, None, [path for path, _ in left])
            return
        # of GPUs on as many paths, the one on the slowest: the list begins with it
        order = [gpu for _, gpus in left for gpu in gpus]
        worst = max(counts, key=lambda gpu: (counts[gpu], -order.index(gpu)))
        yield _slow_fault(node, worst, [path for path, gpus in left if worst in gpus])
        left = [(path, gpus) for path, gpus in left if worst not in gpus]


def _gpus_on(path: SlowPath) -> list[int]:
    if " by " not in path.curve:
        return sorted(gpus_of(Workload(operation=Operation.parse(path.curve))))
    return sorted(gpus_of(Workload.parse(path.curve)))


def _slow_fault(node: Node, gpu: int | None, paths: Sequence[SlowPath]) -> Fault:
    paths = sorted(paths, key=lambda path: (path.curve.count(";"), path.ratio))
    worst = paths[0]
    device = node.device(Place("gpu", gpu)) if gpu is not None else None
    about = f"{device.place}: " if device else ""
    others = len(paths) - 1
    more = f", and so {'is' if others == 1 else 'are'} {others} more" if others else ""
    statement = f"{about}{worst.name} is {1 - worst.ratio:.1%} slower than its twins{more}"
    return Fault(
        "slow",
        statement,
        (device,) if device else (),
        tuple(paths),
        verdict=any(path.confirmed for path in paths),
        again=survey_again(
            node.name, [path.name for path in paths], {path.bytes for path in paths}
        ),
    )


def survey_again(host: str, names: Sequence[str], sizes: Iterable[int]) -> str:
    """The command that measures some paths again, in two fresh processes."""
    only = " ".join(f"--only {shlex.quote(name)}" for name in names[:MOST_PATTERNS])
    chosen = ",".join(format_bytes(size).replace(" ", "") for size in sorted(set(sizes)) if size)
    named = f" --sizes {chosen}" if chosen else ""
    return f"waywiser survey {only}{named} -o {shlex.quote(f'{host}-again.wwp')}"


def failing_paths(node: Node, usual: set[str]) -> Iterator[Fault]:
    """Paths of ``usual``, which most twins measure, that fail here at every size."""
    measured = {series.curve for series in node.series if series.blocks}
    failed: dict[str, list[str]] = {}
    for series in node.series:
        reasons = [f"{f.kind}: {f.reason}" for f in series.failures if f.kind != "skipped"]
        if reasons and series.curve in usual - measured:
            failed.setdefault(reasons[0], []).append(name_of(series.workload))
    for reason, found in failed.items():
        names = list(dict.fromkeys(found))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        again = survey_again(node.name, names, ())
        yield Fault("missing path", f"{names[0]}{more} failed: {reason}", again=again)


def bad_health(node: Node) -> Iterator[Fault]:
    told = tuple(each.what for each in counted(node) if each.grave)
    if told:
        yield Fault("health", ", ".join(told), devices_in(node, told))
