"""A cluster as a page: the answer, what is wrong, all nodes, the matrix of each rail, groups, and
each node by itself."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from waywiser.analysis.cluster.summary import ClusterSummary
from waywiser.analysis.cluster.texts import (
    counts_text,
    detectable_text,
    measured_text,
    reference_text,
    standing_remedy,
)
from waywiser.analysis.cluster.verdict_values import (
    ClusterVerdict,
    NodeVerdict,
)
from waywiser.analysis.comparison.fleet import Fleet
from waywiser.curves import Finding, capital
from waywiser.profile import ClusterResult
from waywiser.profile.cluster_folder import PROFILES
from waywiser.render.document import made_now
from waywiser.render.figures.node_matrix import node_matrix
from waywiser.render.fleet import fleet_document
from waywiser.render.parts import (
    Assessment,
    Block,
    Code,
    Document,
    Listing,
    Pictures,
    Remark,
    RemarkEvidence,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    Words,
    numbers,
)
from waywiser.render.views.cluster import (
    main_findings,
    result_sheets,
    tests_text,
    unexplained,
)
from waywiser.words import count, grouped, natural_key, severity_of

MOST_NODES = 2000
"""Nodes of the table, the worst first."""


def cluster_document(found: ClusterSummary, result: ClusterResult, fleet: Fleet | None) -> Document:
    """The page. ``fleet`` compares the profiles of the nodes, if there are any."""
    verdict = found.verdict
    chapters = (
        Section("status", "Status", tuple(_status(found))),
        Section("wrong", "What is wrong", tuple(_wrong(verdict))),
        Section("nodes", "Nodes", (_nodes(verdict, result),)) if verdict.nodes else None,
        Section("pairs", "Pairs", tuple(_matrices(verdict))),
        *(Section(anchor, title, (sheet,)) for anchor, title, sheet in result_sheets(verdict)),
        _alone(fleet, result),
    )
    nodes = count(len(verdict.nodes), "node")
    return Document(
        title=f"Cluster of {nodes}",
        subtitle=(f"{tests_text(found)} · {'complete' if verdict.complete else 'not complete'}",),
        sections=tuple(each for each in chapters if each and (each.blocks or each.sections)),
        made=made_now(),
    )


def _status(found: ClusterSummary) -> Iterator[Block]:
    verdict = found.verdict
    yield Assessment(
        found.severity,
        f"{found.answer}.",
        counts_text(verdict),
        unknown=f"{capital(detectable_text(verdict))}. {capital(reference_text(verdict))}.",
    )
    if found.versions:
        yield Words("Versions differ:")
        yield Listing(tuple(each.text for each in found.versions))


def _wrong(verdict: ClusterVerdict) -> Iterator[Block]:
    shown, counted = main_findings(verdict)
    remarks = [_remark(each) for each in shown]
    remarks += (_standing_remark(each, verdict) for each in unexplained(verdict))
    if remarks:
        yield Remarks(tuple(remarks))
    if counted:
        yield Words(f"{counted}.", "note")


def _remark(finding: Finding) -> Remark:
    lines = dict.fromkeys((*finding.evidence, measured_text(finding)))
    return Remark.of(replace(finding, evidence=tuple(filter(None, lines))))


def _standing_remark(node: NodeVerdict, verdict: ClusterVerdict) -> Remark:
    return Remark(
        severity=severity_of(node.verdict),
        statement=f"{node.node}: {node.verdict}",
        remedy=standing_remedy(node.verdict, verdict),
        evidence=(RemarkEvidence(node.reason),) if node.reason else (),
    )


def _nodes(verdict: ClusterVerdict, result: ClusterResult) -> Sheet:
    by_name = {node.name: node for node in result.nodes}
    rows = []
    for each in verdict.nodes[:MOST_NODES]:
        node = by_name.get(each.node)
        rails = [rail.interface.name for rail in node.rails if rail.interface] if node else []
        profile = (
            f"{PROFILES}/{result.profiles[each.node].name}" if each.node in result.profiles else ""
        )
        rows.append((
            each.node,
            SheetCell(each.verdict, severity_of(each.verdict)),
            each.reason,
            each.tests,
            each.failed_tests or "",
            ", ".join(dict.fromkeys(rails)),
            profile,
        ))  # fmt: skip
    left = len(verdict.nodes) - MOST_NODES
    return Sheet.of(
        "All nodes, the worst first",
        ("node", "verdict", "reason", *numbers("tests", "failed"), "interfaces", "own profile"),
        rows,
        f"{left} more are not shown." if left > 0 else "",
    ).without_empty_columns()


def _matrices(verdict: ClusterVerdict) -> Iterator[Block]:
    nodes = sorted({n for p in verdict.pairs for n in (p.sender, p.receiver)}, key=natural_key)
    by_rail = grouped((pair.rail, pair) for pair in verdict.pairs)
    pictures = [node_matrix(rail, nodes, pairs) for rail, pairs in sorted(by_rail.items())]
    if pictures:
        yield Pictures(tuple(pictures))


def _alone(fleet: Fleet | None, result: ClusterResult) -> Section | None:
    """The nodes as their own checks show them."""
    if fleet is None or not result.profiles:
        return None
    profile = next(iter(result.profiles.values()))
    below = tuple(_below(each) for each in fleet_document(fleet).sections)
    blocks = (
        Words("Each node has surveyed itself. The page of one of these profiles:"),
        Code(f"waywiser report {profile}"),
    )
    return Section("alone", "Each node by itself", blocks, below)


def _below(section: Section) -> Section:
    """A section of the page of a fleet, with an anchor of its own."""
    return Section(f"alone-{section.anchor}", section.title, section.blocks, section.sections)
