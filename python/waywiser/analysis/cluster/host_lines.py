"""Hosts that jobs should or should not have, as lines for schedulers and launchers. Commands among
them are printed, and never run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from waywiser.analysis.cluster.texts import measured_text
from waywiser.analysis.cluster.verdict_values import (
    ClusterVerdict,
    NodeVerdict,
)
from waywiser.words import Reason, compress_hosts, grouped, is_host_name, natural_key, single_line

_DRAINED: tuple[Reason, ...] = ("failed", "stuck", "slow")
_LONGEST_REASON = 400
_PLAIN = str.maketrans({"–": "-", "—": "-", "−": "-", "×": "x", "µ": "u", "…": "...", "'": None,
                        '"': None, "\\": None, "`": None, "$": None})  # fmt: skip


def good_hosts(verdict: ClusterVerdict) -> Iterator[str]:
    """The nodes that jobs can have, one per line, as a hostfile."""
    return (each for each in sorted(verdict.good, key=natural_key) if is_host_name(each))


def excluded_hosts(verdict: ClusterVerdict) -> str:
    """The host list of the nodes that jobs should not have, for ``sbatch --exclude``; empty if all
    are good."""
    return compress_hosts(
        each.node for each in verdict.nodes if each.is_bad and is_host_name(each.node)
    )


def drain_lines(verdict: ClusterVerdict) -> Iterator[str]:
    """A line of ``scontrol`` for each reason, with the evidence as the reason. Nodes that share
    something slow are only a comment, as their switch comes first; so are nodes of which nothing
    was measured."""
    for reason, nodes in grouped(_drained(verdict)).items():
        yield (
            f"scontrol update NodeName={compress_hosts(nodes)} State=DRAIN "
            f"Reason={shlex.quote(reason)}"
        )
    for comment, nodes in grouped(_not_drained(verdict)).items():
        yield f"# not drained: {compress_hosts(nodes)}: {comment}"


def drain_reason(node: NodeVerdict) -> str:
    """``waywiser: n3 is 12 % slow to every node: 1.12 x the usual time (1.10-1.14), 8 tests``, in
    plain characters."""
    parts = [node.reason or node.verdict]
    parts += [measured_text(each) for each in node.findings[:1] if measured_text(each)]
    text = single_line(f"waywiser: {': '.join(parts)}").translate(_PLAIN)
    return text.encode("ascii", "replace").decode()[:_LONGEST_REASON]


def _drained(verdict: ClusterVerdict) -> Iterator[tuple[str, str]]:
    for node in verdict.nodes:
        if node.verdict in _DRAINED and not _why_not(node):
            yield drain_reason(node), node.node


def _not_drained(verdict: ClusterVerdict) -> Iterator[tuple[str, str]]:
    for node in verdict.nodes:
        if node.is_bad and (why := _why_not(node)):
            yield why, single_line(node.node)


def _why_not(node: NodeVerdict) -> str:
    if not is_host_name(node.node):
        return "its name is not a valid host name"
    if node.verdict not in _DRAINED:
        return f"{node.verdict}: nothing was measured"
    if _is_only_of_group(node):
        return "they share something slow; look at their switch first"
    return ""


def _is_only_of_group(node: NodeVerdict) -> bool:
    kinds = {each.id for each in node.findings}
    return "slow group" in kinds and not kinds & {"slow node", "failed node"}
