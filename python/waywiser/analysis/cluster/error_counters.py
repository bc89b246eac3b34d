"""Errors that interfaces counted: evidence beside other findings, and no verdict by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from waywiser.analysis.cluster.texts import cluster_finding, measured_text
from waywiser.curves import Finding
from waywiser.words import ClusterNode

_EXPLAINED: frozenset[str] = frozenset((
    *("slow node", "slow pair", "failed node", "failed pair"),
    *("below interface rate", "not over interface"),
))  # fmt: skip
"""Findings that a bad cable or port of one of their nodes may explain."""


def error_findings(nodes: Iterable[ClusterNode]) -> Iterator[Finding]:
    """Yields a finding for each node whose interfaces counted errors: during the survey, else
    before it."""
    for node in nodes:
        counted = _counts(node.counters)
        if new := _counts(node.new_errors):
            text = f"interfaces of {node.name} counted errors during the survey: {', '.join(new)}"
            before = f"since their drivers were loaded: {', '.join(counted)}"
            yield cluster_finding("new errors", (node.name,), text, evidence=(*new, before))
        elif counted:
            text = f"interfaces of {node.name} counted errors: {', '.join(counted)}"
            yield cluster_finding("errors counted", (node.name,), text, evidence=tuple(counted))


def with_new_errors(findings: Iterable[Finding], nodes: Sequence[ClusterNode]) -> Iterator[Finding]:
    """Yields the findings. Those that a bad link may explain have what the interfaces of their
    nodes counted during the survey as further evidence."""
    counted = {node.name: new for node in nodes if (new := _counts(node.new_errors))}
    for finding in findings:
        lines = [
            f"interfaces of {name} counted errors during the survey: {', '.join(counted[name])}"
            for name in finding.nodes
            if name in counted and finding.id in _EXPLAINED
        ]
        shown = finding.evidence or tuple(filter(None, [measured_text(finding)]))
        yield replace(finding, evidence=(*shown, *lines)) if lines else finding


def _counts(counters: Mapping[str, int]) -> list[str]:
    return [f"{name}: {number}" for name, number in counters.items() if number > 0]
