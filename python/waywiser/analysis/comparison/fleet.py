"""Which nodes of a fleet differ from nodes of equal hardware, by which device, and how surely.

No golden node is needed. What one survey shows is a suspicion. It is a verdict when another survey
of the same host shows it again, or where it was seen directly: a GPU that is not there, a link that
runs below its width.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

import msgspec

from waywiser.analysis.comparison.comparison_text import ran_below, unfinished
from waywiser.analysis.comparison.copies import without_copies
from waywiser.analysis.comparison.differences import simulated
from waywiser.analysis.comparison.errors_counted import errors_of
from waywiser.analysis.comparison.hardware import EqualHosts, equal_hosts
from waywiser.analysis.comparison.node import LoadedLink, Node, device_of, gpus_of
from waywiser.analysis.comparison.one_sided import NOT_MEASURED
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.analysis.comparison.slow_paths import PathTimes, SlowPath, UsualPath
from waywiser.curves.answer import Device, device_at
from waywiser.curves.name import name_of
from waywiser.machine.machine import Gpu
from waywiser.profile.health import health_report
from waywiser.profile.series_summary import SeriesSummary
from waywiser.stats.decision import THRESHOLD
from waywiser.words import Operation, Place, Value, Workload, format_bytes
from waywiser.words.grouping import grouped
from waywiser.words.records import Failure
from waywiser.words.titles import divide

SCHEMA = 2
"""The schema of the JSON form."""

Status = Literal["bad", "suspect", "not determined", "fine"]

WORST_FIRST: tuple[Status, ...] = get_args(Status)

MOST_PATTERNS = 4
"""Paths that a command for measuring again names: the slowest."""


class Fault(Value, frozen=True):
    """One thing that is wrong with a host, by what was seen."""

    kind: Literal["missing GPU", "link", "slow", "health", "missing path"]
    statement: str
    devices: tuple[Device, ...] = ()
    paths: tuple[SlowPath, ...] = ()
    """Single transfers first, the slowest first."""
    verdict: bool = False
    """Seen directly, or again; else it is a suspicion."""
    again: str = ""
    """The command that measures it again, on that host."""
    detail: str = ""
    """What the statement has no room for: it is a title."""

    def __post_init__(self) -> None:
        divide(self)


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
    assessed: bool
    """False if there are too few to say who is not like the others."""
    paths: tuple[UsualPath, ...] = ()


class Fleet(Value, frozen=True):
    """All nodes, the bad ones first."""

    schema: int
    threshold: float
    hosts: tuple[HostVerdict, ...]
    classes: tuple[HardwareClass, ...]
    unreadable: dict[str, str] = msgspec.field(default_factory=dict)
    """File -> why it could not be read, or was skipped."""

    def of(self, *statuses: Status) -> tuple[HostVerdict, ...]:
        return tuple(host for host in self.hosts if host.status in statuses)


def assess_fleet(
    nodes: Sequence[Node],
    threshold: float = THRESHOLD,
    unreadable: dict[str, str] | None = None,
) -> Fleet:
    """Assesses any number of nodes and classes. Profiles of one host are surveys of it, in the
    order in which they were made; a copy of a file is not another survey."""
    own, copies = without_copies(nodes)
    skipped = {copy: f"a copy of {original}" for copy, original in copies}
    hosts: list[HostVerdict] = []
    classes: list[HardwareClass] = []
    for equal in equal_hosts(own):
        times = PathTimes(equal)
        number, assessed = len(equal.hosts), len(equal.hosts) >= FEWEST_HOSTS
        classes.append(HardwareClass(equal.name, number, equal.gpus, assessed, times.described()))
        found = times.slow(threshold)
        common, usual = _common_links(equal), times.usual
        for name, surveys in equal.hosts.items():
            hosts.append(_assessed(equal, name, surveys, found.get(name, []), common, usual))
    hosts.sort(key=lambda host: (WORST_FIRST.index(host.status), _worst(host), host.host))
    return Fleet(SCHEMA, threshold, tuple(hosts), tuple(classes), {**(unreadable or {}), **skipped})


def _assessed(
    equal: EqualHosts,
    name: str,
    surveys: Sequence[Node],
    slow: Sequence[SlowPath],
    common: set[str],
    usual: set[str],
) -> HostVerdict:
    node = surveys[-1]
    faults = [
        *_missing_gpus(equal, node, node.match.missing),
        *_slow_links(surveys, common),
        *_slow_devices(node, slow),
        *_failing_paths(surveys, usual),
        *_bad_health(surveys),
    ]
    status: Status = "fine"
    if any(fault.verdict for fault in faults):
        status = "bad"
    elif faults:
        status = "suspect"
    elif len(equal.hosts) < FEWEST_HOSTS:
        status = "not determined"
    return HostVerdict(
        host=name,
        status=status,
        files=tuple(each.called for each in surveys),
        hardware=equal.name,
        faults=tuple(faults),
        notes=tuple(_notes(surveys)),
    )


def _notes(surveys: Sequence[Node]) -> Iterator[str]:
    for node in surveys:
        if node.machine.simulated:
            yield simulated(node)
        if node.unfinished:
            yield unfinished(node.called)
    if minor := errors_of(surveys[-1])[1]:
        yield f"counted while it ran: {', '.join(minor)}"


def _worst(host: HostVerdict) -> float:
    return min((path.ratio for fault in host.faults for path in fault.paths), default=0.0)


def _missing_gpus(equal: EqualHosts, node: Node, missing: Sequence[Gpu]) -> Iterator[Fault]:
    """``missing`` are those of a whole host that this one has not. Other tools' results may be of
    some of the GPUs: that is no verdict."""
    here = len(node.machine.gpus)
    if here >= equal.gpus:
        return
    known = {gpu.pci for gpu in node.machine.gpus}
    devices = tuple(
        Device(f"gpu:{gpu.index}", "", gpu.pci) for gpu in missing if gpu.pci not in known
    )
    where = f": none at {', '.join(d.pci or d.place for d in devices)}" if devices else ""
    reason = f" ({node.machine.gpu_reason})" if node.machine.gpu_reason else ""
    statement = f"{here} of {equal.gpus} GPUs{where}{reason}"
    if node.is_of_results:
        yield Fault("missing GPU", f"its results name {statement}", devices)
    else:
        yield Fault("missing GPU", statement, devices, verdict=True, again="waywiser topology")


def _common_links(equal: EqualHosts) -> set[str]:
    """What most hosts say of their links is what the class is, and no fault of any."""
    hosts: Counter[str] = Counter()
    for surveys in equal.hosts.values():
        hosts.update({below for _, below in _links_below(surveys)})
    return {text for text, count in hosts.items() if 2 * count > len(equal.hosts)}


def _slow_links(surveys: Sequence[Node], common: set[str]) -> Iterator[Fault]:
    for gpu, below in _links_below(surveys):
        if below and below not in common:
            device = device_of(gpu)
            yield Fault("link", ran_below(device.place, below), (device,), verdict=True)


def _links_below(surveys: Sequence[Node]) -> Iterator[tuple[Gpu, str]]:
    """Yields each GPU of the last survey with what its link ran below its best, in the last survey
    that has loaded it: not each one loads all links."""
    last = surveys[-1]
    links: dict[int, LoadedLink] = {}
    for survey in surveys:
        links.update({survey.match.numbers[gpu]: link for gpu, link in survey.links.items()})
    for gpu in last.machine.gpus:
        yield gpu, links.get(last.match.numbers[gpu.index], LoadedLink()).below(gpu)


def _slow_devices(node: Node, slow: Sequence[SlowPath]) -> Iterator[Fault]:
    """The fewest devices that are on all slow paths, the one on most of them first."""
    left = [(path, _gpus_on(path)) for path in slow]
    while left:
        counts = Counter(gpu for _, gpus in left for gpu in gpus)
        if not counts:
            yield _slow_fault(node, None, [path for path, _ in left])
            return
        # Of GPUs on as many paths it is the one on the slowest, which the list begins with.
        ((worst, _),) = counts.most_common(1)
        yield _slow_fault(node, worst, [path for path, gpus in left if worst in gpus])
        left = [(path, gpus) for path, gpus in left if worst not in gpus]


def _gpus_on(path: SlowPath) -> list[int]:
    if " by " not in path.curve:
        return sorted(gpus_of(Workload(operation=Operation.parse(path.curve))))
    return sorted(gpus_of(Workload.parse(path.curve)))


def _slow_fault(node: Node, gpu: int | None, paths: Sequence[SlowPath]) -> Fault:
    paths = sorted(paths, key=lambda path: (path.curve.count(";"), path.ratio))
    worst = paths[0]
    device = device_at(Place("gpu", gpu), node.machine) if gpu is not None else None
    about = f"{device.place}: " if device else ""
    others = len(paths) - 1
    more = f", and so {'is' if others == 1 else 'are'} {others} more" if others else ""
    statement = f"{about}{worst.name} is {1 - worst.ratio:.1%} slower than its peers{more}"
    return Fault(
        "slow",
        statement,
        (device,) if device else (),
        tuple(paths),
        verdict=any(path.confirmed for path in paths),
        again=_survey_again(node, [path.name for path in paths], {path.bytes for path in paths}),
    )


def _survey_again(node: Node, names: Sequence[str], sizes: Iterable[int]) -> str:
    """The command that measures some paths again, in two fresh processes; empty for other tools'
    results, which no survey repeats."""
    if node.tools:
        return ""
    only = " ".join(f"--only {shlex.quote(name)}" for name in names[:MOST_PATTERNS])
    chosen = ",".join(format_bytes(size).replace(" ", "") for size in sorted(set(sizes)) if size)
    named = f" --sizes {chosen}" if chosen else ""
    return f"waywiser survey {only}{named} -o {shlex.quote(f'{node.name}-again.wwp')}"


def _failing_paths(surveys: Sequence[Node], usual: set[str]) -> Iterator[Fault]:
    """Paths of ``usual``, which most hosts of the class measure, that failed at every size in the
    last survey that tried them."""
    tried: dict[str, list[SeriesSummary]] = {}
    for survey in surveys:
        own = ((s.curve, s) for s in survey.matched_series if s.blocks or _failure_of(s))
        tried.update(grouped(own))
    failed = [
        (f"{reason.kind}: {reason.reason}", name_of(surveys[-1].own_numbers(series[0].workload)))
        for curve, series in tried.items()
        if curve in usual
        and not any(each.blocks for each in series)
        and (reason := _failure_of(series[0]))
    ]
    for text, names in sorted(grouped(failed).items()):
        names.sort()
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        again = _survey_again(surveys[-1], names, ())
        yield Fault("missing path", f"{names[0]}{more} failed: {text}", again=again)


def _failure_of(series: SeriesSummary) -> Failure | None:
    """The first one that is a property of the path."""
    return next((each for each in series.failures if each.kind not in NOT_MEASURED), None)


def _bad_health(surveys: Sequence[Node]) -> Iterator[Fault]:
    """Errors that any survey counted, and what stands in the last one."""
    last = surveys[-1]
    grave, _ = errors_of(last)
    for survey in surveys[:-1]:
        report = health_report(survey.health)
        standing = report.standing if report else ()
        earlier = (text for text in errors_of(survey)[0] if text not in standing)
        grave += [f"{text} in {survey.called}" for text in earlier]
    if grave:
        named = {text.split()[0] for text in grave}
        devices = tuple(map(device_of, last.machine.gpus))
        on = tuple(device for device in devices if device.place in named)
        yield Fault("health", ", ".join(grave), on)
