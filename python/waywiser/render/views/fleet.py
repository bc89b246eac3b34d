"""A fleet in a few lines: the counts, the nodes that something is wrong with, and what could not be
read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from waywiser.analysis.comparison.comparison_text import loss
from waywiser.analysis.comparison.fleet import (
    HOST_REASONS,
    Fleet,
    HardwareClass,
    HostVerdict,
)
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.analysis.comparison.slow_paths import UsualPath
from waywiser.curves import percent
from waywiser.curves.headline import GROUPS
from waywiser.curves.texts import named
from waywiser.render.parts import Block, Words, tone_of
from waywiser.words import by_wording, count, grouped, single_line

LESS = 0.005
"""How much smaller a loss must be to be named as well as another."""


def fleet_parts(found: Fleet) -> Iterator[Block]:
    """The worst hosts first."""
    yield Words(_headline(found), "lead")
    for each in found.classes:
        too_few = "" if each.assessed else f" (not determined: fewer hosts than {FEWEST_HOSTS})"
        yield Words(f"class: {each.name}: {count(each.hosts, 'host')}{too_few}")
        if found_from := detectable_text(each):
            yield Words(found_from, "note", indent=4)
    yield from _own_findings(found)
    ill = found.of("bad", "suspect")
    for host in ill:
        yield from _host(host)
    for host in found.hosts:
        if host.last_change and host not in ill:
            yield Words(f"last change: {host.host}: {host.last_change}")
    noted = [host for host in found.hosts if host.notes and host not in ill]
    for line, _ in by_wording([f"{host.host}: {'; '.join(host.notes)}" for host in noted]):
        yield Words(f"note: {line}")
    for file, why in found.unreadable.items():
        yield Words(f"not read: {single_line(file)}: {why}")


def _own_findings(found: Fleet) -> Iterator[Words]:
    """What the profiles of hosts that are fine say by themselves, each link once."""
    links: dict[str, list[str]] = {}
    for host in _fine_with_finding(found):
        for finding in host.own_findings:
            link, _, by = finding.partition(": ")
            links.setdefault(link, []).append(f"{host.host} ({by})" if by else host.host)
    for link, hosts in links.items():
        profiles = "its own profile" if len(hosts) == 1 else "their own profiles"
        said = f"fine beside the others, but by {profiles} {link}: {named(hosts)}"
        yield Words(said, "lead", "warning")


def _fine_with_finding(found: Fleet) -> list[HostVerdict]:
    return [host for host in found.of("fine", "not determined") if host.own_findings]


def by_themselves(found: Fleet) -> str:
    """``; the profiles of 2 hosts name a slow link by themselves``; empty if none does."""
    number = len(_fine_with_finding(found))
    if not number:
        return ""
    if number == 1:
        return "; the profile of 1 host names a slow link by itself"
    return f"; the profiles of {number} hosts name a slow link by themselves"


def notes_of(host: HostVerdict) -> tuple[str, ...]:
    """The notes of a host, with what its profile says by itself."""
    own = (f"its own profile says: {each}" for each in host.own_findings)
    return (*own, *host.notes)


def counts_text(found: Fleet) -> str:
    """``1 bad, 7 fine``; empty without hosts."""
    counts = [(len(found.of(status)), status) for status in HOST_REASONS]
    return ", ".join(f"{number} {status}" for number, status in counts if number)


def detectable_text(each: HardwareClass) -> str:
    """``smallest loss of one host that is found: 3.4 % of H2D, D2H; 21 % of host-to-all``: what
    could be missed on a host that is fine, and where it is less if the host's equivalent paths have
    lost nothing; empty for a class that is not assessed."""
    known = [path for path in each.paths if path.detectable]
    whole = _by_group((path, path.detectable) for path in known)
    alone = _by_group((p, min(p.detectable or 1.0, p.detectable_beside or 1.0)) for p in known)
    if not whole:
        return "which loss of a host would be found is not known" if each.assessed else ""
    text = f"smallest loss of one host that is found: {_texts(whole)}"
    if len(known) < len(each.paths):
        text += f"; of {len(each.paths) - len(known)} of {count(len(each.paths), 'path')} not known"
    less = {name: each for name, each in alone.items() if each < whole[name] - LESS}
    return f"{text}; of one of several equal GPUs alone: {_texts(less)}" if less else text


def _by_group(losses: Iterable[tuple[UsualPath, float | None]]) -> dict[str, float]:
    """The largest loss of each group of headline paths, in their order; latencies apart, in
    time."""
    found = grouped(
        (
            f"{path.group or 'other paths'}{' latency' if path.is_time else ''}",
            loss(share, of_time=path.is_time),
        )
        for path, share in losses
        if share
    )
    order = [f"{name}{more}" for name in (*GROUPS, "other paths") for more in ("", " latency")]
    return {name: max(found[name]) for name in order if name in found}


def _texts(losses: Mapping[str, float]) -> str:
    names = grouped((percent(share), name) for name, share in losses.items())
    return "; ".join(f"{share} of {', '.join(each)}" for share, each in names.items())


def _headline(found: Fleet) -> str:
    unread = f"; {count(len(found.unreadable), 'file')} not read" if found.unreadable else ""
    if not found.hosts:
        return f"no host{unread}"
    hosts = count(len(found.hosts), "host")
    return f"{counts_text(found)} of {hosts}{by_themselves(found)}{unread}"


def _host(host: HostVerdict) -> Iterator[Block]:
    files = "" if len(host.files) == 1 else f" ({len(host.files)} surveys)"
    yield Words(f"{host.host}{files}", tone=tone_of(host.status), label=host.status, indent=8)
    for fault in host.faults:
        yield Words(fault.title, indent=4)
        if fault.below:
            yield Words(fault.below, indent=6)
        if fault.devices:
            yield Words(f"on {', '.join(map(str, fault.devices))}", "note", indent=6)
        if fault.again and fault.severity != "error":
            yield Words(f"measure again: {fault.again}", indent=6)
        if fault.remedy:
            yield Words(f"to do: {fault.remedy}", indent=6)
    if host.last_change:
        yield Words(f"last change: {host.last_change}", indent=4)
    for note in notes_of(host):
        yield Words(f"note: {note}", indent=4)
