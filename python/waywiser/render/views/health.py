"""A check in a terminal: the verdict, a line for each reference, then what they found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from waywiser.analysis.health.health_check import HealthCheck, HostHealth, ReferenceResult
from waywiser.render.parts import (
    Block,
    Section,
    Sheet,
    SheetCell,
    SheetColumn,
    Words,
    tone_of,
)
from waywiser.render.views.fleet import fleet_parts
from waywiser.render.views.history import history_parts
from waywiser.render.views.normal import normal_parts
from waywiser.words import STATUSES, Status, count

MOST_HOSTS = 20
"""Hosts that are listed by name, the worst first."""

REFERENCE_COLUMNS = (
    SheetColumn("reference"),
    SheetColumn("status"),
    SheetColumn("what it says", folds=True),
)

HOST_COLUMNS = (
    SheetColumn("host"),
    SheetColumn("status"),
    SheetColumn("by"),
    SheetColumn("what it says", folds=True),
)


def health_parts(
    found: HealthCheck,
    details: Iterable[Block] = (),
    *,
    everything: bool = False,
    seen: Mapping[str, str] = {},
) -> Iterator[Block | Section]:
    """The verdict first. ``details`` are what the baseline of one host shows, ``seen`` the known
    causes that its profile shows."""
    yield Words(str(found), "lead")
    if len(found.hosts) == 1:
        yield reference_sheet(found.hosts[0])
        yield from remedies(found.hosts[0])
    elif bad := [host for host in found.hosts if host.status != "ok"]:
        yield host_sheet(bad[:MOST_HOSTS])
        if bad[MOST_HOSTS:]:
            yield Words(f"and {count(len(bad) - MOST_HOSTS, 'more host')}", "note")
    if below := tuple(details):
        yield Section("", "Beside its baseline", below)
    if found.peers is not None and found.peers.hosts:
        yield Section("", "Beside nodes of its kind", tuple(fleet_parts(found.peers)))
    if found.nights is not None and _has_nights(found, everything=everything):
        parts = tuple(history_parts(found.nights, everything=everything))
        yield Section("", "Over its nights", parts)
    if found.other_machines and (everything or _is_below(found)):
        (host,) = found.hosts
        parts = tuple(_flat(normal_parts(
            host.files[0], found.other_machines, everything=everything, seen=seen)))  # fmt: skip
        yield Section("", "Beside other people's machines", parts)


def reference_sheet(host: HostHealth) -> Sheet:
    """A line for each reference of one host, the best first."""
    rows = [
        (each.reference, SheetCell(each.status, tone=tone_of(each.status)), _said(each))
        for each in host.results
    ]
    return Sheet.of("", REFERENCE_COLUMNS, rows)


def _said(result: ReferenceResult) -> str:
    """The statement, and that it does not count if it would accuse."""
    if not result.cleared_by or STATUSES[result.status] < Status.UNDECIDED:
        return result.statement
    return f"{result.statement}; it does not count, since {result.cleared_by} found nothing wrong"


def remedies(host: HostHealth) -> Iterator[Words]:
    """What to do: about what is wrong, else how to have a better reference."""
    texts = [each.remedy for each in host.results if each.is_wrong]
    if host.status == "inconclusive" and not any(texts):
        texts = [each.remedy for each in host.results if not each.compared]
    for text in dict.fromkeys(filter(None, texts)):
        yield Words(f"to do: {text}", indent=2)


def host_sheet(hosts: Sequence[HostHealth]) -> Sheet:
    """A line for each host."""
    rows = [
        (each.host, SheetCell(each.status, tone=tone_of(each.status)), each.reference,
         each.statement)
        for each in hosts
    ]  # fmt: skip
    return Sheet.of("", HOST_COLUMNS, rows).without_empty_columns()


def _has_nights(found: HealthCheck, *, everything: bool) -> bool:
    """Whether nights say anything: of one host only if a path can be followed."""
    nights = found.nights
    assert nights is not None
    followed = any(path.status != "too few nights" for path in nights.paths)
    return bool(nights.unreadable) or followed or everything or found.peers is not None


def _is_below(found: HealthCheck) -> bool:
    return any(path.verdict == "below" for path in found.other_machines)


def _flat(parts: Iterable[Block | Section]) -> Iterator[Block]:
    """The blocks of parts, with the titles of their sections as words."""
    for part in parts:
        if not isinstance(part, Section):
            yield part
            continue
        if part.title:
            yield Words(part.title)
        yield from part.blocks
