"""A fleet as a page: which nodes differ from their peers, the bad ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.comparison.comparison_text import loss
from waywiser.analysis.comparison.fleet import (
    HOST_REASONS,
    Fleet,
    HardwareClass,
    HostVerdict,
)
from waywiser.curves import Mark, capital, percent
from waywiser.render.document import made_now
from waywiser.render.parts import (
    Assessment,
    Block,
    Code,
    Document,
    Fold,
    Listing,
    Remark,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    Words,
    numbers,
)
from waywiser.render.views.fleet import (
    by_themselves,
    counts_text,
    detectable_text,
    notes_of,
)
from waywiser.words import (
    Reason,
    Severity,
    count,
    format_bytes,
    format_rate,
    format_time,
    severity_of,
)

ILL: tuple[Reason, ...] = ("bad", "suspect")

MOST_HOSTS = 1000
"""Most hosts in the table."""


def fleet_document(fleet: Fleet) -> Document:
    """The counts and the nodes first, then what is wrong with each, then the classes."""
    chapters = (
        _verdict(fleet),
        Section("nodes", "Nodes", (_nodes(fleet),)) if fleet.hosts else None,
        _wrong(fleet),
        Section("classes", "Classes of hardware", tuple(_classes(fleet.classes))),
        _unreadable(fleet),
    )
    hosts, classes = count(len(fleet.hosts), "host"), len(fleet.classes)
    return Document(
        title=f"Fleet of {hosts}",
        subtitle=(
            f"{count(classes, 'class') if classes == 1 else f'{classes} classes'} of hardware"
            f" · a difference counts from {fleet.threshold:.0%} on",
        ),
        sections=tuple(each for each in chapters if each and (each.blocks or each.sections)),
        made=made_now(),
    )


def _verdict(fleet: Fleet) -> Section:
    counts = {status: len(fleet.of(status)) for status in HOST_REASONS}
    worst: Reason = next((status for status in HOST_REASONS if counts[status]), "not determined")
    statement = {
        "bad": f"{count(counts['bad'], 'node')} should not be used before they are inspected.",
        "suspect": f"{count(counts['suspect'], 'node')} should be measured again.",
        "not determined": "There are too few peers to compare with.",
        "fine": f"No node differs from its peers{by_themselves(fleet)}.",
    }[worst]
    counted = counts_text(fleet) or "nothing could be read"
    blocks = (Assessment(severity_of(worst), statement, counted),)
    return Section("status", "Status", blocks)


def _nodes(fleet: Fleet) -> Sheet:
    """The class of a node is shown if there are several."""
    shown = fleet.hosts[:MOST_HOSTS]
    several = len(fleet.classes) > 1
    changes = any(host.last_change for host in shown)
    rows = []
    for n, host in enumerate(shown):
        first = host.faults[0].title if host.faults else "; ".join(host.own_findings)
        more = f"and {len(host.faults) - 1} more" if len(host.faults) > 1 else ""
        link = _anchor(n) if host.status in ILL else ""
        rows.append((
            SheetCell(host.host, link=link),
            SheetCell(host.status, _mark(host.status)),
            SheetCell(first, note=more),
            *((host.hardware,) if several else ()),
            *((host.last_change,) if changes else ()),
            len(host.files),
        ))  # fmt: skip
    left = len(fleet.hosts) - len(shown)
    caption = "× bad: seen directly, or in two surveys; ? suspect: one survey shows it."
    classes = ("class",) if several else ()
    last = ("last change",) if changes else ()
    return Sheet.of(
        "All nodes, the worst first",
        ("node", "status", "what is wrong", *classes, *last, *numbers("surveys")),
        rows,
        f"{caption} {left} more are not shown." if left else caption,
    )


def _mark(reason: Reason) -> Mark | Severity:
    return "" if reason == "not determined" else severity_of(reason)


def _anchor(number: int) -> str:
    return f"node-{number + 1}"


def _wrong(fleet: Fleet) -> Section:
    below = [
        Section(_anchor(n), f"{host.host}: {host.status}", tuple(_host(host)))
        for n, host in enumerate(fleet.hosts[:MOST_HOSTS])
        if host.status in ILL
    ]
    return Section("wrong", "What is wrong", (), tuple(below))


def _host(host: HostVerdict) -> Iterator[Block]:
    yield Remarks(tuple(map(Remark.of, host.faults)))
    again = dict.fromkeys(f.again for f in host.faults if f.again and f.severity != "error")
    if again:
        yield Words(f"To measure again, on {host.host}:")
        yield Code("\n".join(again), is_elsewhere=True)
    if notes := notes_of(host):
        yield Listing(notes)


def _classes(classes: Sequence[HardwareClass]) -> Iterator[Block]:
    for each in classes:
        too_few = "" if each.assessed else ", too few to compare"
        yield Words(f"{each.name}: {count(each.hosts, 'host')}{too_few}.")
        if found_from := detectable_text(each):
            yield Words(f"{capital(found_from)}.")
        if each.paths:
            yield Fold(f"What is usual there: {count(len(each.paths), 'path')}", (_usual(each),))


def _usual(each: HardwareClass) -> Sheet:
    rows = []
    for path in each.paths:
        figure = format_time(path.seconds, path.scale or 0.01)
        if path.bytes and path.seconds > 0:
            figure = f"{format_rate(path.bytes / path.seconds, path.scale or 0.01)} GB/s"
        at = f"at {format_bytes(path.bytes)}" if path.bytes else ""
        least = percent(loss(path.detectable, of_time=path.is_time)) if path.detectable else ""
        cells = path.name, path.regime, SheetCell(figure, note=at), f"{path.scale:.2%}", least
        rows.append((*cells, path.hosts))
    return Sheet.of(
        f"What is usual among {each.name}",
        (
            "path",
            "regime",
            *numbers("middle of the class", "from host to host", "smallest loss found", "hosts"),
        ),
        rows,
    )


def _unreadable(fleet: Fleet) -> Section | None:
    if not fleet.unreadable:
        return None
    points = tuple(f"{file}: {why}" for file, why in fleet.unreadable.items())
    return Section("unreadable", "Not read", (Listing(points),))
