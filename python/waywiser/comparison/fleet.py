"""Which nodes of a fleet are not like their twins, which device it is, and how sure that is.

No golden node is needed. What one survey shows is a suspicion. It is a verdict when another survey
of the same host shows it again, or where it was seen directly: a GPU that is not there, a link that
runs below its width.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from waywiser.analysis.answer import Device
from waywiser.comparison.errors_counted import errors_of
from waywiser.comparison.hardware import Twins, twins_of
from waywiser.comparison.matching import Matched, without_copies
from waywiser.comparison.node import Node, device_of, gpus_of
from waywiser.comparison.outlying import FEWEST_HOSTS
from waywiser.comparison.slow_paths import PathTimes, SlowPath, UsualPath
from waywiser.plan.name import name_of
from waywiser.stats.decision import THRESHOLD
from waywiser.topology.machine import Gpu
from waywiser.words import Operation, Place, Value, Workload, format_bytes

SCHEMA = 1
"""Of the JSON form."""

Status = Literal["bad", "suspect", "unjudged", "fine"]

WORST_FIRST: tuple[Status, ...] = ("bad", "suspect", "unjudged", "fine")

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


class HostVerdict(Value, frozen=True):
    host: str
    status: Status
    files: tuple[str, ...]
    hardware: str
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


class HardwareClass(Value, frozen=True):
    name: str
    hosts: int
    gpus: int
    judged: bool
    """False where there are too few to say who is not like the others."""
    paths: tuple[UsualPath, ...] = ()


class Fleet(Value, frozen=True):
    """All nodes, the bad ones first."""

    schema: int
    threshold: float
    hosts: tuple[HostVerdict, ...]
    classes: tuple[HardwareClass, ...]
    unreadable: dict[str, str] = msgspec.field(default_factory=dict)
    """File -> why it could not be read, or was left out."""

    def of(self, *statuses: Status) -> tuple[HostVerdict, ...]:
        return tuple(host for host in self.hosts if host.status in statuses)


def judge_fleet(
    nodes: Sequence[Node],
    threshold: float = THRESHOLD,
    unreadable: dict[str, str] | None = None,
) -> Fleet:
    """Of any number of nodes and classes. Profiles of one host are surveys of it, in the order in
    which they were made; a copy of a file is none."""
    own, copies = without_copies(nodes)
    left_out = {copy: f"a copy of {original}" for copy, original in copies}
    hosts: list[HostVerdict] = []
    classes: list[HardwareClass] = []
    for twins in twins_of(own):
        times = PathTimes(twins)
        number, judged = len(twins.hosts), len(twins.hosts) >= FEWEST_HOSTS
        classes.append(HardwareClass(twins.name, number, twins.gpus, judged, times.described()))
        found = times.slow(threshold)
        common, usual = _common_links(twins), times.usual
        for name, surveys in twins.hosts.items():
            hosts.append(_judged(twins, name, surveys, found.get(name, []), common, usual))
    hosts.sort(key=lambda host: (WORST_FIRST.index(host.status), _worst(host), host.host))
    return Fleet(
        SCHEMA, threshold, tuple(hosts), tuple(classes), {**(unreadable or {}), **left_out}
    )


def _judged(
    twins: Twins,
    name: str,
    surveys: Sequence[Matched],
    slow: Sequence[SlowPath],
    common: set[str],
    usual: set[str],
) -> HostVerdict:
    node = surveys[-1].node
    faults = [
        *_missing_gpus(twins, node, surveys[-1].missing),
        *_slow_links(node, common),
        *_slow_devices(node, slow),
        *_failing_paths(node, usual),
        *_bad_health(node),
    ]
    status: Status = "fine"
    if any(fault.verdict for fault in faults):
        status = "bad"
    elif faults:
        status = "suspect"
    elif len(twins.hosts) < FEWEST_HOSTS:
        status = "unjudged"
    return HostVerdict(
        host=name,
        status=status,
        files=tuple(each.node.called for each in surveys),
        hardware=twins.name,
        faults=tuple(faults),
        notes=tuple(_notes([each.node for each in surveys])),
    )


def _notes(surveys: Sequence[Node]) -> Iterator[str]:
    for node in surveys:
        if node.unfinished:
            yield f"{node.called} is unfinished: its survey still runs, or was stopped"
    if minor := errors_of(surveys[-1])[1]:
        yield f"counted while it ran: {', '.join(minor)}"


def _worst(host: HostVerdict) -> float:
    return min((path.ratio for fault in host.faults for path in fault.paths), default=0.0)


def _missing_gpus(twins: Twins, node: Node, missing: Sequence[Gpu]) -> Iterator[Fault]:
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


def _common_links(twins: Twins) -> set[str]:
    """What most hosts say of their links is what the class is, and no fault of any."""
    told: dict[str, int] = {}
    for surveys in twins.hosts.values():
        node = surveys[-1].node
        for text in {node.slow_link(gpu) for gpu in node.machine.gpus}:
            told[text] = told.get(text, 0) + 1
    return {text for text, count in told.items() if 2 * count > len(twins.hosts)}


def _slow_links(node: Node, common: set[str]) -> Iterator[Fault]:
    for gpu in node.machine.gpus:
        below, device = node.slow_link(gpu), device_of(gpu)
        if below and below not in common:
            statement = f"{device.place} ran at {below} under load"
            yield Fault("link", statement, (device,), verdict=True)


def _slow_devices(node: Node, slow: Sequence[SlowPath]) -> Iterator[Fault]:
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
        again=_survey_again(
            node.name, [path.name for path in paths], {path.bytes for path in paths}
        ),
    )


def _survey_again(host: str, names: Sequence[str], sizes: Iterable[int]) -> str:
    """The command that measures some paths again, in two fresh processes."""
    only = " ".join(f"--only {shlex.quote(name)}" for name in names[:MOST_PATTERNS])
    chosen = ",".join(format_bytes(size).replace(" ", "") for size in sorted(set(sizes)) if size)
    named = f" --sizes {chosen}" if chosen else ""
    return f"waywiser survey {only}{named} -o {shlex.quote(f'{host}-again.wwp')}"


def _failing_paths(node: Node, usual: set[str]) -> Iterator[Fault]:
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
        again = _survey_again(node.name, names, ())
        yield Fault("missing path", f"{names[0]}{more} failed: {reason}", again=again)


def _bad_health(node: Node) -> Iterator[Fault]:
    grave, _ = errors_of(node)
    if grave:
        named = {text.split()[0] for text in grave}
        devices = tuple(map(device_of, node.machine.gpus))
        on = tuple(device for device in devices if device.place in named)
        yield Fault("health", ", ".join(grave), on)
