"""What a folder of a cluster says, at once: the answer first, for a terminal and for programs."""

from __future__ import annotations

from typing import Literal

from waywiser.analysis.cluster.texts import answer, severity_of
from waywiser.analysis.cluster.verdict_values import ClusterVerdict
from waywiser.analysis.cluster.version_differences import VersionDifference, version_differences
from waywiser.profile import ClusterResult
from waywiser.words import MessageMemory, Severity, Value


class ClusterSummary(Value, frozen=True):
    """A verdict with its answer."""

    answer: str
    severity: Severity
    verdict: ClusterVerdict
    versions: tuple[VersionDifference, ...] = ()
    """Programs of which nodes have several versions."""
    transport: str = ""
    memory: MessageMemory | Literal[""] = ""
    """``gpu`` or ``host``: between which memories messages are; empty if unknown."""
    tests: int = 0
    """Tests that have finished."""
    failed_tests: int = 0
    profiles: int = 0
    """Nodes that have surveyed themselves."""
    schema: int = 2
    """The version of the JSON form: 1 had no number, and other keys in findings."""


def summarise_cluster(result: ClusterResult, found: ClusterVerdict) -> ClusterSummary:
    """Summarises the results of a run, also while it goes on."""
    return ClusterSummary(
        answer=answer(found),
        severity=severity_of(found),
        verdict=found,
        versions=version_differences(result.nodes),
        transport=result.plan.transport,
        memory=result.plan.memory,
        tests=len(result.tests),
        failed_tests=sum(each.failed is not None for each in result.tests),
        profiles=len(result.profiles),
    )
