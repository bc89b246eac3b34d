"""Which nodes of a fleet differ from nodes of equal hardware, by which device, and how surely.

No golden node is needed. What one survey shows is a suspicion. It is a verdict when another survey
of the same host shows it again, or where it was seen directly: a GPU that is not there, a link that
runs below its width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from waywiser.analysis.comparison.comparison_text import unfinished
from waywiser.analysis.comparison.differences import loaded, untimed
from waywiser.analysis.comparison.fleet_faults import (
    bad_health,
    common_links,
    failing_paths,
    missing_gpus,
    slow_devices,
    slow_links,
)
from waywiser.analysis.comparison.hardware import EqualHosts, equal_hosts
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.analysis.comparison.slow_paths import OtherHostSizes, PathTimes, SlowPath, UsualPath
from waywiser.curves import Finding, Subject, regime_of, without_copies
from waywiser.profile import errors_of
from waywiser.stats import THRESHOLD
from waywiser.words import Reason, Value, count, format_bytes, rank

SCHEMA = 3
"""The schema of the JSON form."""

HOST_REASONS: tuple[Reason, ...] = ("bad", "suspect", "not determined", "fine")


class HostVerdict(Value, frozen=True):
    host: str
    status: Reason
    files: tuple[str, ...]
    hardware: str
    faults: tuple[Finding, ...] = ()
    """An ``error`` was measured directly, or measured again; a ``warning`` is a suspicion."""
    slow_paths: tuple[SlowPath, ...] = ()
    notes: tuple[str, ...] = ()
    own_findings: tuple[str, ...] = ()
    """What its last profile says of its links by itself, without other hosts."""
    last_change: str = ""
    """The last change over its nights, ``H2D gpu:3: 5.1 % slower since 2026-11-12``; empty if
    there is none, or if its surveys are too few to follow it."""


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

    def of(self, *reasons: Reason) -> tuple[HostVerdict, ...]:
        return tuple(host for host in self.hosts if host.status in reasons)

    def only(self, file: str) -> Fleet:
        """The same of the host that has this survey, and of its class."""
        own = tuple(each for each in self.hosts if file in each.files)
        kinds = {each.hardware for each in own}
        classes = tuple(each for each in self.classes if each.name in kinds)
        return msgspec.structs.replace(self, hosts=own, classes=classes)


def assess_fleet(
    nodes: Sequence[Subject],
    threshold: float = THRESHOLD,
    unreadable: dict[str, str] | None = None,
    expected_gpus: int = 0,
) -> Fleet:
    """Assesses any number of nodes and classes. Profiles of one host are surveys of it, in the
    order in which they were made; a copy of a file is not another survey. A host with fewer GPUs
    than ``expected_gpus`` lacks some."""
    own, copies = without_copies(nodes)
    skipped = {copy: f"a copy of {original}" for copy, original in copies}
    hosts: list[HostVerdict] = []
    classes: list[HardwareClass] = []
    for equal in equal_hosts(own, expected_gpus):
        times = PathTimes(equal, threshold)
        number, assessed = len(equal.hosts), len(equal.hosts) >= FEWEST_HOSTS
        classes.append(HardwareClass(equal.name, number, equal.gpus, assessed, times.described()))
        found = times.slow()
        common, usual = common_links(equal), times.usual
        for name, surveys in equal.hosts.items():
            apart = times.other_sizes.get(name, ())
            slow = found.get(name, [])
            hosts.append(_assessed(equal, name, surveys, slow, common, usual, apart))
    hosts.sort(key=lambda host: (rank(host.status), _worst(host), host.host))
    return Fleet(SCHEMA, threshold, tuple(hosts), tuple(classes), {**(unreadable or {}), **skipped})


def _assessed(
    equal: EqualHosts,
    name: str,
    surveys: Sequence[Subject],
    slow: Sequence[SlowPath],
    common: set[str],
    usual: set[str],
    apart: Sequence[OtherHostSizes],
) -> HostVerdict:
    node = surveys[-1]
    faults = [
        *missing_gpus(equal, node, node.match.missing),
        *slow_links(surveys, common),
        *slow_devices(node, slow, usual),
        *failing_paths(surveys, usual),
        *bad_health(surveys),
    ]
    status: Reason = "fine"
    if any(fault.severity == "error" for fault in faults):
        status = "bad"
    elif faults:
        status = "suspect"
    elif len(equal.hosts) < FEWEST_HOSTS or _is_apart(surveys, apart):
        status = "not determined"
    return HostVerdict(
        host=name,
        status=status,
        files=tuple(each.called for each in surveys),
        hardware=equal.name,
        faults=tuple(faults),
        slow_paths=tuple(slow),
        notes=(*_notes(surveys), *_apart_notes(apart)),
        own_findings=node.own_findings,
    )


def _notes(surveys: Sequence[Subject]) -> Iterator[str]:
    how = {node.machine.untimed: node for node in surveys if node.machine.untimed}
    yield from map(untimed, how.values())
    for node in surveys:
        if text := loaded(node):
            yield text
        if node.unfinished:
            yield unfinished(node.called)
    if minor := errors_of(surveys[-1].health)[1]:
        yield f"counted while it ran: {', '.join(minor)}"


def _is_apart(surveys: Sequence[Subject], apart: Sequence[OtherHostSizes]) -> bool:
    """Whether no bandwidth of a host is compared, since other hosts have other sizes."""
    if not apart:
        return False
    curves = {each.curve for each in apart}
    own = {
        series.curve
        for node in surveys
        for series in node.matched_points
        if series.blocks and regime_of(series.workload) == "bandwidth"
    }
    return bool(own) and own <= curves


def _apart_notes(apart: Sequence[OtherHostSizes]) -> Iterator[str]:
    if apart:
        first = apart[0]
        has = "has" if len(apart) == 1 else "have"
        yield (
            f"{count(len(apart), 'path')} {has} no size in common with other hosts and "
            f"{'is' if len(apart) == 1 else 'are'} not compared: {first.curve} up to "
            f"{format_bytes(first.own)} here and {format_bytes(first.others)} there; "
            "measure the same sizes"
        )


def _worst(host: HostVerdict) -> float:
    return min((path.ratio for path in host.slow_paths), default=0.0)
