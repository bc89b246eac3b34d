"""The verdict about each node of a cluster, from finished tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from waywiser.analysis.cluster.collectives import collective_results, is_bad
from waywiser.analysis.cluster.confirmed import open_suspects
from waywiser.analysis.cluster.detectable import detectable_rails
from waywiser.analysis.cluster.error_counters import error_findings, with_new_errors
from waywiser.analysis.cluster.finding_parts import span_text
from waywiser.analysis.cluster.losses import NO_FAULT
from waywiser.analysis.cluster.pair_coverage import pair_coverage
from waywiser.analysis.cluster.pair_outcomes import failed_pairs
from waywiser.analysis.cluster.procedure import next_round
from waywiser.analysis.cluster.ragged_rows import rows_of
from waywiser.analysis.cluster.rail_rates import interface_findings, rail_rates
from waywiser.analysis.cluster.shared_findings import shared_findings
from waywiser.analysis.cluster.slow_findings import group_list, slow_findings
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.texts import cluster_finding, finding_remedy
from waywiser.analysis.cluster.verdict_values import (
    ClusterVerdict,
    CollectiveResult,
    NodeVerdict,
    PairTime,
)
from waywiser.curves import Finding
from waywiser.words import ClusterNode, ClusterPlan, FinishedTest, Reason, rank

MATRIX_NODES = 64
"""Above so many nodes, only pairs that stand out are listed."""

ORDER: tuple[str, ...] = (
    *("failed node", "slow group", "slow node", "failed pair", "slow pair", "collective failed"),
    *(
        "slow crossing",
        "slow rail",
        "collective slow",
        "not over interface",
        "below interface rate",
        "new errors",
    ),
    "errors counted",
)


def verdict(
    nodes: Sequence[ClusterNode], plan: ClusterPlan, finished: Sequence[FinishedTest]
) -> ClusterVerdict:
    """Returns what the finished tests show, however many they are."""
    state = ClusterState(nodes, plan, finished)
    findings = _findings(state)
    usual = _usual_seconds(state)
    complete = next_round(nodes, plan, finished) is None
    return ClusterVerdict(
        nodes=tuple(_node_verdicts(state, findings, complete)),
        findings=tuple(findings),
        groups=group_list(state),
        groups_from=plan.groups_from or ("times" if state.rounds.has_groups else ""),
        pairs=tuple(_pair_times(state)),
        rails=rail_rates(state),
        collectives=tuple(collective_results(state)),
        errors_counted={
            node.name: counted
            for node in state.nodes
            if (counted := {name: n for name, n in node.counters.items() if n > 0})
        },
        detectable=detectable_rails(state),
        coverage=pair_coverage(state),
        usual_seconds=usual,
        bytes=plan.bytes,
        suspects=tuple(state.names[n] for n in np.flatnonzero(state.rounds.is_suspect)),
        complete=complete,
    )


def _findings(state: ClusterState) -> list[Finding]:
    """All findings, the gravest kinds first."""
    found = [
        *_failed_nodes(state),
        *slow_findings(state),
        *shared_findings(state),
        *_failed_pairs(state),
        *_collectives(state),
        *interface_findings(state),
        *error_findings(state.nodes),
    ]
    known = [
        replace(each, remedy=finding_remedy(each.id, state.plan.transport))
        for each in with_new_errors(found, state.nodes)
    ]
    return sorted(known, key=lambda each: ORDER.index(each.id))


def _node_verdicts(
    state: ClusterState, findings: Sequence[Finding], complete: bool
) -> list[NodeVerdict]:
    own: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        for name in finding.nodes:
            own[name].append(finding)
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for each in state.finished:
        if each.failed is not None and each.failed.failure.kind in NO_FAULT:
            continue
        (failed if each.failed is not None else passed).update(each.test.nodes)
    suspected = {state.names[n] for n in open_suspects(state)}
    verdicts = []
    for node in state.nodes:
        standing, reason = _standing(state, node, own[node.name], suspected, complete)
        verdicts.append(
            NodeVerdict(
                node.name,
                standing,
                reason,
                tuple(own[node.name]),
                passed[node.name],
                failed[node.name],
            )
        )
    return sorted(verdicts, key=lambda each: rank(each.verdict))


def _standing(
    state: ClusterState,
    node: ClusterNode,
    findings: Sequence[Finding],
    suspected: set[str],
    complete: bool,
) -> tuple[Reason, str]:
    if node.state == "not reached" or node.state == "excluded" or node.state == "stuck":
        return node.state, node.reason
    by_kind = {each.id: each for each in reversed(findings)}
    if failure := by_kind.get("failed node"):
        return "failed", failure.text
    if node.state == "lost":
        return "failed", node.reason or "its connection ended"
    if slow := by_kind.get("slow group") or by_kind.get("slow node"):
        return "slow", slow.text
    index = state.index[node.name]
    if not state.rounds.tested[index]:
        return "not decided", "no test of it that compares nodes is finished"
    if int(state.rounds.tested.sum()) == 2:
        return "pair", "it was compared with one other node only: neither can be blamed"
    if not state.rounds.compared[index]:
        return "not decided", "there is no test between two other nodes to compare its tests with"
    if node.name in suspected:
        if complete:
            return "not decided", "it is a suspect, and too few good nodes are left to compare with"
        return "not decided", "it stands out, and its tests alone are not finished"
    return "ok", ""


def _failed_nodes(state: ClusterState) -> Iterator[Finding]:
    passed = state.all_tests.count_of_nodes(len(state.names)).tolist()
    for n, tests in sorted(state.losses.of_node.items()):
        name = state.names[n]
        total = len(tests) + passed[n]
        evidence = tuple(dict.fromkeys(_failure_text(each) for each in tests))
        text = f"{len(tests)} of {total} tests of {name} failed: {evidence[0]}"
        yield cluster_finding("failed node", (name,), text, tests=len(tests), evidence=evidence)


def _failure_text(test: FinishedTest) -> str:
    """``wrong-bytes: 3 of 64 KiB differ, rank 2, in send``."""
    if test.failed is None:
        return ""
    rank = f"rank {test.failed.rank}" if test.failed.rank >= 0 else ""
    doing = f"last action: {test.failed.doing}" if test.failed.doing else ""
    failure = test.failed.failure
    reason = f"{failure.kind}: {failure.reason}" if failure.reason else failure.kind
    return ", ".join(each for each in (reason, rank, doing) if each)


def _failed_pairs(state: ClusterState) -> Iterator[Finding]:
    for a, b in failed_pairs(state):
        if a in state.losses.of_node or b in state.losses.of_node:
            continue
        tests = state.losses.of_pair[a, b]
        names = state.names[a], state.names[b]
        evidence = tuple(dict.fromkeys(_failure_text(each) for each in tests))
        text = f"{names[0]} <-> {names[1]} failed {len(tests)} times: {evidence[0]}"
        yield cluster_finding("failed pair", names, text, tests=len(tests), evidence=evidence)


def _collectives(state: ClusterState) -> Iterator[Finding]:
    """Only the smallest sets that are bad: those of which no bad part is known."""
    results = collective_results(state)
    bad = [each for each in results if is_bad(each)]
    for each in bad:
        if any(set(other.nodes) < set(each.nodes) for other in bad):
            continue
        yield _collective_finding(state, each)


def _collective_finding(state: ClusterState, result: CollectiveResult) -> Finding:
    names = span_text(state, result.nodes)
    if result.failed:
        text = f"the collective of {names} failed: {result.failed}"
        return cluster_finding("collective failed", result.nodes, text, tests=1)
    ratio = result.seconds / result.predicted_seconds
    text = f"the collective of {names} takes {ratio:.1f} times what its pairs predict"
    return cluster_finding("collective slow", result.nodes, text, (ratio, 0.0, 0.0), 1)


def _usual_seconds(state: ClusterState) -> dict[int, float]:
    """The times that those of pairs are multiples of."""
    if not len(state.rounds.undisturbed):
        return {}
    inside, _ = state.rounds.usual
    usual = np.exp(inside).tolist()
    return {rail: seconds for rail, seconds in enumerate(usual) if np.isfinite(seconds)}


def _pair_times(state: ClusterState) -> Iterator[PairTime]:
    """Yields the medians of pairs, in the order of nodes."""
    tests = state.rounds.undisturbed
    if not len(tests):
        return
    names, limit = state.names, state.rounds.pair_limit
    beside = state.rounds.beside_usual(tests, with_groups=True)
    turned = (tests.a > tests.b)[:, None, None]
    low, high = np.minimum(tests.a, tests.b), np.maximum(tests.a, tests.b)
    pairs, place = np.unique(low * len(names) + high, return_inverse=True)
    own, other = (
        rows_of(place, np.where(turned, y[:, :, ::-1], y), len(pairs)) for y in (tests.y, beside.y)
    )
    times, ratios, counts = own.quantile(0.5), other.quantile(0.5), own.count(~np.isnan(own.y))
    shown = (counts > 0) & ((ratios > limit[None, :, None]) | (len(names) <= MATRIX_NODES))
    seconds, beside_usual = np.exp(times).tolist(), np.exp(ratios).tolist()
    for n, rail, way in np.argwhere(shown).tolist():
        pair = divmod(int(pairs[n]), len(names))
        yield PairTime(
            names[pair[way]],
            names[pair[1 - way]],
            rail,
            seconds[n][rail][way],
            beside_usual[n][rail][way],
            int(counts[n, rail, way]),
        )
