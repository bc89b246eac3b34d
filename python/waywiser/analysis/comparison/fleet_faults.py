"""What is wrong with one node of a fleet, by device: GPUs that are not there, links below their
width, slow paths, paths that fail, errors that were counted.

A slow path accuses hardware only if a copy engine or a kernel moves its bytes over a link of the
machine. Page faults, operations and messages are slow for other reasons.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from waywiser.analysis.comparison.comparison_text import (
    ONE_SIDED,
    SEVERAL,
    are_between_ranks,
    look_for,
    ran_below,
)
from waywiser.analysis.comparison.differences import loaded
from waywiser.analysis.comparison.fleet_texts import all_by_peers, by_peers, chance_text
from waywiser.analysis.comparison.hardware import EqualHosts
from waywiser.analysis.comparison.slow_paths import SlowPath
from waywiser.curves import (
    Device,
    Exhibit,
    Finding,
    LoadedLink,
    Point,
    Subject,
    device_of,
    gpus_of,
    kind_of,
    name_of,
)
from waywiser.curves.answer import device_at
from waywiser.machine import Gpu, launch_options, lost_text
from waywiser.profile import errors_of, health_report
from waywiser.words import NOT_MEASURED, Failure, Operation, Place, Workload, format_bytes, grouped

MOST_PATTERNS = 4
"""Paths that a command for measuring again names: the slowest."""


MOST_PATHS = 6
"""Paths listed as the evidence of a fault; its exhibits are all."""

COMPARE = (
    "compare its slot, riser, link state (nvidia-smi -q, amd-smi) and firmware settings with a "
    "peer's"
)
REMEDIES: dict[str, str] = {
    "missing GPU": "see whether the bus still has it (lspci, the kernel's log); reseat it",
    "link": f"reseat the card; {COMPARE}",
    "slow": COMPARE,
    "slow method": "compare its driver, libraries, settings and other work with a peer's",
    "health": "look at the kernel's log and nvidia-smi -q before trusting these GPUs",
    "missing path": "waywiser show has the reason; measure it again",
}
"""What to do by kind of fault, if it is no mere suspicion: that is measured again. ``slow`` shows a
link or a memory, ``slow method`` does not."""


def _fault(
    kind: str,
    statement: str,
    devices: tuple[Device, ...] = (),
    *,
    is_sure: bool = False,
    again: str = "",
) -> Finding:
    """What is wrong with a host. ``is_sure`` if it was measured directly, or measured again; else
    it is a suspicion. ``again`` is the command that measures it again, on that host."""
    return Finding(
        id=kind,
        severity="error" if is_sure else "warning",
        statement=statement,
        devices=devices,
        remedy=REMEDIES[kind] if is_sure or not again else "",
        again=again,
    )


def missing_gpus(equal: EqualHosts, node: Subject, missing: Sequence[Gpu]) -> Iterator[Finding]:
    """``missing`` are those of a whole host that this one has not. Other tools' results may be of
    some of the GPUs: that is no verdict."""
    here, silent = len(node.machine.gpus), node.machine.lost_gpus
    if lost := lost_text(node.machine):
        yield _fault("missing GPU", lost, is_sure=True, again="waywiser topology")
    if here + len(silent) >= equal.gpus:
        return
    known = {gpu.pci for gpu in node.machine.gpus}
    devices = tuple(
        Device(f"gpu:{gpu.index}", "", gpu.pci) for gpu in missing if gpu.pci not in known
    )
    where = f": none at {', '.join(d.pci or d.place for d in devices)}" if devices else ""
    reason = f" ({node.machine.gpu_reason})" if node.machine.gpu_reason else ""
    statement = f"{here} of {equal.gpus} GPUs{where}{reason}"
    if node.is_of_results:
        yield _fault("missing GPU", f"its results name {statement}", devices)
    else:
        yield _fault("missing GPU", statement, devices, is_sure=True, again="waywiser topology")


def common_links(equal: EqualHosts) -> set[str]:
    """Returns the findings about links that most hosts have: they belong to the class of hosts, and
    are no fault of one."""
    hosts: Counter[str] = Counter()
    for surveys in equal.hosts.values():
        hosts.update({below for _, below in _links_below(surveys)})
    return {text for text, count in hosts.items() if 2 * count > len(equal.hosts)}


def slow_links(surveys: Sequence[Subject], common: set[str]) -> Iterator[Finding]:
    for gpu, below in _links_below(surveys):
        if below and below not in common:
            device = device_of(gpu)
            yield _fault("link", ran_below(device.place, below), (device,), is_sure=True)


def _links_below(surveys: Sequence[Subject]) -> Iterator[tuple[Gpu, str]]:
    """Yields each GPU of the last survey with what its link ran below its best, in the last survey
    that has loaded it: not each one loads all links."""
    last = surveys[-1]
    links: dict[int, LoadedLink] = {}
    for survey in surveys:
        links.update({survey.match.numbers[gpu]: link for gpu, link in survey.links.items()})
    for gpu in last.machine.gpus:
        yield gpu, links.get(last.match.numbers[gpu.index], LoadedLink()).below(gpu)


def slow_devices(node: Subject, slow: Sequence[SlowPath], usual: set[str]) -> Iterator[Finding]:
    """The fewest devices that are on all slow paths, the one on most of them first. GPUs that are
    on the same slow paths, as those of a set are, are one fault; so is what nearly all of the
    ``usual`` paths show."""
    curves = {path.curve for path in slow}
    if len(curves) >= max(SEVERAL, ONE_SIDED * len(usual)):
        said = f"{len(curves)} of {len(usual)} paths {all_by_peers(slow)}"
        fault = _slow_fault(node, (), slow)
        common = f"{said}: {look_for(are_between_ranks(curves))}"
        yield msgspec.structs.replace(fault, statement=common)
        return
    left = [(path, _gpus_on(path)) for path in slow]
    while left:
        counts = Counter(gpu for _, gpus in left for gpu in gpus)
        # Of GPUs on as many paths it is the one on the slowest, which the list begins with.
        worst = max(counts, key=lambda gpu: counts[gpu], default=None)
        own = [(path, gpus) for path, gpus in left if worst is None or worst in gpus]
        shared = [gpu for gpu in counts if all(gpu in gpus for _, gpus in own)]
        yield _slow_fault(node, shared, [path for path, _ in own])
        left = [each for each in left if each not in own]


def _gpus_on(path: SlowPath) -> list[int]:
    return sorted(gpus_of(_workload(path)))


def _workload(path: SlowPath) -> Workload:
    if " by " not in path.curve:
        return Workload(operation=Operation.parse(path.curve))
    return Workload.parse(path.curve)


def _shows_hardware(path: SlowPath, node: Subject) -> bool:
    """Whether engines and kernels of a GPU alone move its bytes, over links that are known."""
    kinds = [kind_of(each, node.machine) for each in _workload(path).transfers]
    return bool(kinds) and all(kind.shows_hardware for kind in kinds)


def _slow_fault(node: Subject, gpus: Sequence[int], paths: Sequence[SlowPath]) -> Finding:
    paths = sorted(paths, key=lambda path: (path.curve.count(";"), path.ratio))
    worst = paths[0]
    devices = tuple(device_at(Place("gpu", gpu), node.machine) for gpu in sorted(gpus))
    about = f"{devices[0].place}: " if len(devices) == 1 else ""
    others = len(paths) - 1
    more = f", and so {'is' if others == 1 else 'are'} {others} more" if others else ""
    statement = f"{about}{worst.name} {by_peers(worst)}{more}"
    found = _fault(
        "slow" if any(_shows_hardware(path, node) for path in paths) else "slow method",
        statement,
        devices,
        is_sure=any(path.confirmed for path in paths) and not loaded(node),
        again=_survey_again(node, [path.name for path in paths], {path.bytes for path in paths}),
    )
    exhibits = tuple(Exhibit(path.curve, "ratio to peers", path.ratio, "ratio") for path in paths)
    lines = [*map(chance_text, paths[:MOST_PATHS])]
    lines += [f"and {len(paths) - MOST_PATHS} more"] if paths[MOST_PATHS:] else []
    effect = 1 - worst.ratio
    return msgspec.structs.replace(found, effect=effect, exhibits=exhibits, evidence=tuple(lines))


def _survey_again(node: Subject, names: Sequence[str], sizes: Iterable[int]) -> str:
    """The command that measures some paths again, in two fresh processes; empty for other tools'
    results and for simulated machines, which no survey repeats."""
    if node.tools or node.machine.simulated:
        return ""
    only = " ".join(f"--only {shlex.quote(name)}" for name in names[:MOST_PATTERNS])
    chosen = ",".join(format_bytes(size).replace(" ", "") for size in sorted(set(sizes)) if size)
    named = f" --sizes {chosen}" if chosen else ""
    words = ["waywiser", "survey", *launch_options(node.machine, node.environment)]
    return f"{shlex.join(words)} {only}{named} -o {shlex.quote(f'{node.name}-again.wwp')}"


def failing_paths(surveys: Sequence[Subject], usual: set[str]) -> Iterator[Finding]:
    """Paths of ``usual``, which most hosts of the class measure, that failed at every size in the
    last survey that tried them."""
    tried: dict[str, list[Point]] = {}
    for survey in surveys:
        own = ((s.curve, s) for s in survey.matched_points if s.blocks or _failure_of(s))
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
        yield _fault("missing path", f"{names[0]}{more} failed: {text}", again=again)


def _failure_of(series: Point) -> Failure | None:
    """The first one that is a property of the path."""
    return next((each for each in series.failures if each.kind not in NOT_MEASURED), None)


def bad_health(surveys: Sequence[Subject]) -> Iterator[Finding]:
    """Errors that any survey counted, and what stands in the last one."""
    last = surveys[-1]
    grave, _ = errors_of(last.health)
    for survey in surveys[:-1]:
        report = health_report(survey.health)
        standing = report.standing if report else ()
        earlier = (text for text in errors_of(survey.health)[0] if text not in standing)
        grave += [f"{text} in {survey.called}" for text in earlier]
    if grave:
        named = {text.split()[0] for text in grave}
        devices = tuple(map(device_of, last.machine.gpus))
        on = tuple(device for device in devices if device.place in named)
        yield _fault("health", ", ".join(grave), on)
