"""Which nodes of a fleet are not like their twins, and which device it is.

No golden node is needed. What one survey shows is a suspicion. It is a verdict when another survey
of the same host shows it again, or where it was seen directly: a GPU that is not there, a link that
runs below its width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from waywiser.comparison.copies import without_copies
from waywiser.comparison.errors_counted import counted
from waywiser.comparison.faults import (
    Fault,
    bad_health,
    common_links,
    failing_paths,
    missing_gpus,
    slow_devices,
    slow_links,
)
from waywiser.comparison.fleet_links import suspected
from waywiser.comparison.fleet_table import SlowPath, Table, UsualPath
from waywiser.comparison.hardware import Twins, twins_of
from waywiser.comparison.node import Node
from waywiser.comparison.outlying import FEWEST_HOSTS
from waywiser.stats.decision import THRESHOLD
from waywiser.words import Value

SCHEMA = 1
"""Of the JSON form."""

Status = Literal["bad", "suspect", "unjudged", "fine"]

WORST_FIRST: tuple[Status, ...] = ("bad", "suspect", "unjudged", "fine")


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
        table = Table(twins)
        hosts_of_class = len(twins.hosts)
        classes.append(
            HardwareClass(twins.name, hosts_of_class, twins.gpus,
                          hosts_of_class >= FEWEST_HOSTS, table.described())
        )  # fmt: skip
        found = suspected(table, threshold)
        common, usual = common_links(twins), table.usual
        for name, surveys in twins.hosts.items():
            hosts.append(_judged(twins, name, surveys, found.get(name, []), common, usual))
    hosts.sort(key=lambda host: (WORST_FIRST.index(host.status), _worst(host), host.host))
    return Fleet(
        SCHEMA, threshold, tuple(hosts), tuple(classes), {**(unreadable or {}), **left_out}
    )


def _judged(
    twins: Twins,
    name: str,
    surveys: Sequence[Node],
    slow: Sequence[SlowPath],
    common: set[str],
    usual: set[str],
) -> HostVerdict:
    node, matched = surveys[-1], twins.matched[name][-1]
    faults = [
        *missing_gpus(twins, node, matched.missing),
        *slow_links(node, common),
        *slow_devices(node, slow),
        *failing_paths(node, usual),
        *bad_health(node),
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
        files=tuple(each.file or each.name for each in surveys),
        hardware=twins.name,
        faults=tuple(faults),
        notes=tuple(_notes(surveys)),
    )


def _notes(surveys: Sequence[Node]) -> Iterator[str]:
    for node in surveys:
        if node.unfinished:
            yield f"{node.called} is unfinished: its survey still runs, or was stopped"
    minor = [each.what for each in counted(surveys[-1]) if not each.grave]
    if minor:
        yield f"counted while it ran: {', '.join(minor)}"


def _worst(host: HostVerdict) -> float:
    return min((path.ratio for fault in host.faults for path in fault.paths), default=0.0)
