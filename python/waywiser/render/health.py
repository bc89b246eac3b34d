"""The answer of a check as a page: the verdict, each reference, then what they found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from waywiser.analysis.health.health_check import HealthCheck
from waywiser.render.document import made_now
from waywiser.render.fleet import fleet_document
from waywiser.render.history import history_document
from waywiser.render.parts import Assessment, Block, Document, Section, Words
from waywiser.render.views.health import host_sheet, reference_sheet, remedies
from waywiser.render.views.normal import path_sheet
from waywiser.words import count, severity_of

MOST_HOSTS = 1000
"""Most hosts in the table."""

STATEMENTS = {
    "failed": "This is not healthy.",
    "inconclusive": "It is not decided whether this is healthy.",
    "ok": "Nothing is wrong by the references below.",
}


def health_page(found: HealthCheck, details: Sequence[Block] = ()) -> Document:
    """``details`` are what the baseline of one host shows."""
    chapters = [Section("status", "Status", tuple(_status(found)))]
    if details:
        chapters.append(Section("baseline", "Beside its baseline", tuple(details)))
    for part, name in ((_of_peers(found), "peers"), (_of_nights(found), "nights")):
        chapters += [_apart(section, name) for section in part]
    if found.other_machines:
        sheet = path_sheet(found.other_machines)
        chapters.append(Section("others", "Beside other people's machines", (sheet,)))
    hosts = count(len(found.hosts), "host")
    title = found.hosts[0].host if len(found.hosts) == 1 else hosts
    return Document(
        title=f"Check of {title}",
        subtitle=(_subtitle(found),),
        sections=tuple(chapters),
        made=made_now(),
    )


def _subtitle(found: HealthCheck) -> str:
    known = found.peers or found.nights
    threshold = known.threshold if known is not None else None
    if found.baseline is not None:
        threshold = found.baseline.comparison.threshold
    return "" if threshold is None else f"a difference counts from {threshold:.0%} on"


def _status(found: HealthCheck) -> Iterator[Block]:
    yield Assessment(severity_of(found.status), STATEMENTS[found.status], str(found))
    if len(found.hosts) == 1:
        yield reference_sheet(found.hosts[0])
        yield from remedies(found.hosts[0])
    elif found.hosts:
        yield host_sheet(found.hosts[:MOST_HOSTS])
        if more := len(found.hosts[MOST_HOSTS:]):
            yield Words(f"{count(more, 'more host')} are not shown.", "note")


def _of_peers(found: HealthCheck) -> tuple[Section, ...]:
    return fleet_document(found.peers).sections if found.peers is not None else ()


def _of_nights(found: HealthCheck) -> tuple[Section, ...]:
    return history_document(found.nights).sections if found.nights is not None else ()


def _apart(section: Section, name: str) -> Section:
    """The section with an anchor and a title that no other part has."""
    titles = {"peers": "Beside nodes of their kind", "nights": "Over their nights"}
    title = titles[name] if section.anchor == "status" else section.title
    return replace(section, anchor=f"{name}-{section.anchor}", title=title)
