"""A fleet in a few lines: the counts, the nodes that something is wrong with, and what could not be
read."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.comparison.fleet import WORST_FIRST, Fleet, HostVerdict, Status
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.report.parts import Block, Tone, Words
from waywiser.words.number_format import count

TONES: dict[Status, Tone] = {
    "bad": "error",
    "suspect": "warning",
    "not determined": "unknown",
    "fine": "good",
}


def fleet_parts(found: Fleet) -> Iterator[Block]:
    """The worst hosts first."""
    yield Words(_headline(found), "lead")
    for each in found.classes:
        too_few = "" if each.assessed else f" (not determined: fewer hosts than {FEWEST_HOSTS})"
        yield Words(f"class: {each.name}: {count(each.hosts, 'host')}{too_few}")
    ill = found.of("bad", "suspect")
    for host in ill:
        yield from _host(host)
    for host in found.hosts:
        if host.notes and host not in ill:
            yield Words(f"note: {host.host}: {'; '.join(host.notes)}")
    for file, why in found.unreadable.items():
        yield Words(f"not read: {file}: {why}")


def counts_text(found: Fleet) -> str:
    """``1 bad, 7 fine``; empty without hosts."""
    counts = [(len(found.of(status)), status) for status in WORST_FIRST]
    return ", ".join(f"{number} {status}" for number, status in counts if number)


def _headline(found: Fleet) -> str:
    unread = f"; {count(len(found.unreadable), 'file')} not read" if found.unreadable else ""
    if not found.hosts:
        return f"no host{unread}"
    return f"{counts_text(found)} of {count(len(found.hosts), 'host')}{unread}"


def _host(host: HostVerdict) -> Iterator[Block]:
    files = "" if len(host.files) == 1 else f" ({len(host.files)} surveys)"
    yield Words(f"{host.host}{files}", tone=TONES[host.status], label=host.status, indent=8)
    for fault in host.faults:
        yield Words(fault.statement, indent=4)
        if fault.detail:
            yield Words(fault.detail, indent=6)
        if fault.devices:
            yield Words(f"on {', '.join(map(str, fault.devices))}", "note", indent=6)
        if fault.again and not fault.verdict:
            yield Words(f"measure again: {fault.again}", indent=6)
    for note in host.notes:
        yield Words(f"note: {note}", indent=4)
