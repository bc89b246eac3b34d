"""A cluster in a few lines: the answer, what is wrong with which nodes and what to do, then groups,
rails and pairs."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.cluster.summary import ClusterSummary
from waywiser.analysis.cluster.texts import (
    counts_text,
    detectable_text,
    measured_text,
    one_line_of,
    reference_text,
    standing_remedy,
)
from waywiser.analysis.cluster.verdict_values import (
    NODE_REASONS,
    ClusterVerdict,
    CollectiveResult,
    NodeVerdict,
    PairTime,
)
from waywiser.curves import Finding
from waywiser.profile.cluster_folder import PROFILES
from waywiser.render.parts import SEVERITIES as SIGNS
from waywiser.render.parts import Block, Section, Sheet, Words, numbers
from waywiser.words import (
    compress_hosts,
    count,
    format_bytes,
    format_rate,
    format_time,
    grouped,
    severity_of,
)

MOST_PAIRS = 5
"""Slowest pairs that are listed; ``--json`` has all."""

MOST_GROUPS = 16
"""Groups that are listed: those that are slowest to others."""

MOST_NODES = 10_000
"""Nodes, and so groups, of a survey."""

MOST_FINDINGS = 20
"""Findings that are listed in full."""

SOURCES = {
    "file": "from --groups",
    "slurm": "from Slurm's topology",
    "times": "found from times",
}

MEMORIES = {"gpu": "memories of GPUs", "host": "memories of hosts"}


def cluster_parts(found: ClusterSummary, folder: str) -> Iterator[Block | Section]:
    """The answer first. ``folder`` is for the command that resumes."""
    verdict = found.verdict
    tone = "good" if found.severity == "info" else found.severity
    yield Words(found.answer, "lead", tone)
    for each in found.versions:
        yield Words(f"versions differ: {each.text}", tone="warning")
    failed = f", {found.failed_tests} failed" if found.failed_tests else ""
    yield Words(f"{counts_text(verdict)}; {tests_text(found)}{failed}")
    yield Words(detectable_text(verdict))
    if any(each.tests for each in verdict.nodes):
        yield Words(reference_text(verdict))
    if not verdict.complete:
        resume = f"waywiser cluster survey -o {folder} --resume"
        yield Words(f"the survey is not complete; to go on: {resume}", tone="warning")
    if found.profiles:
        path = f"{folder}/{PROFILES}"
        nodes = count(found.profiles, "node")
        yield Words(
            f"{path} has the profiles of {nodes}; to compare them: waywiser check {path}", "note"
        )
    yield from _findings(verdict)
    yield from _other_nodes(verdict)
    yield from _sections(verdict)


def tests_text(found: ClusterSummary) -> str:
    """``480 tests over mpi, between memories of GPUs``."""
    over = f" over {found.transport}" if found.transport else ""
    between = f", between {MEMORIES[found.memory]}" if found.memory else ""
    return f"{count(found.tests, 'test')}{over}{between}"


def _findings(verdict: ClusterVerdict) -> Iterator[Block]:
    shown, counted = main_findings(verdict)
    for finding in shown[:MOST_FINDINGS]:
        yield from _finding(finding)
    more = len(shown) - MOST_FINDINGS
    if more > 0:
        yield Words(f"and {count(more, 'more finding')}; --json has all", "note")
    if counted:
        yield Words(counted, tone="info", label=SIGNS["info"][0], indent=2)


def main_findings(verdict: ClusterVerdict) -> tuple[list[Finding], str]:
    """The findings without the counters of nodes that nothing else is found of, and one line about
    those: counters that are old are on most nodes, and alone they mean little."""
    others = {n for f in verdict.findings if f.id != "errors counted" for n in f.nodes}
    shown: list[Finding] = []
    names: list[str] = []
    for finding in verdict.findings:
        if finding.id != "errors counted" or others.intersection(finding.nodes):
            shown.append(finding)
        else:
            names += finding.nodes
    if not names:
        return shown, ""
    nodes = compress_hosts(names)
    return shown, f"{nodes} counted errors of interfaces since their drivers were loaded"


def _finding(finding: Finding) -> Iterator[Block]:
    severity = finding.severity
    yield Words(finding.text, tone=severity, label=SIGNS[severity][0], indent=2)
    for line in finding.evidence or filter(None, [measured_text(finding)]):
        if line not in finding.text:
            yield Words(line, indent=4)
    yield Words(f"to do: {finding.remedy}", indent=4)


def _other_nodes(verdict: ClusterVerdict) -> Iterator[Block]:
    """Nodes of which no finding says what is wrong, those with one reason together."""
    others = unexplained(verdict)
    by_reason = grouped(((each.verdict, each.reason), each.node) for each in others)
    for standing in NODE_REASONS:
        reasons = {why: nodes for (its, why), nodes in by_reason.items() if its == standing}
        for reason, nodes in reasons.items():
            severity = severity_of(standing)
            about = f"{standing}: {reason}" if reason else standing
            line = one_line_of(nodes, about)
            yield Words(line, tone=severity, label=SIGNS[severity][0], indent=2)
        if reasons and (remedy := standing_remedy(standing, verdict)):
            yield Words(f"to do: {remedy}", indent=4)


def unexplained(verdict: ClusterVerdict) -> list[NodeVerdict]:
    """The nodes that are not ok and whose verdict no finding explains: a finding names a slow or
    failed node, and others that were part of a test."""
    named = {node for each in verdict.findings for node in each.nodes}
    return [
        each
        for each in verdict.nodes
        if each.verdict != "ok" and not (each.verdict in ("slow", "failed") and each.node in named)
    ]


def _sections(verdict: ClusterVerdict) -> Iterator[Section]:
    pairs = ("pairs", "Slowest pairs", _pairs(verdict))
    for anchor, title, sheet in (*result_sheets(verdict, MOST_GROUPS), pairs):
        if sheet is not None:
            yield Section(anchor, title, (sheet,))


def result_sheets(
    verdict: ClusterVerdict, groups: int = MOST_NODES
) -> Iterator[tuple[str, str, Sheet]]:
    """Anchor, title and table of rails, groups and collectives, of those that there are; of more
    ``groups`` than so many those that are slowest to others."""
    for anchor, title, sheet in (
        ("rails", "Rails", _rails(verdict)),
        ("groups", "Groups", _groups(verdict, groups)),
        ("together", "Good nodes together", _collectives(verdict)),
    ):
        if sheet is not None:
            yield anchor, title, sheet


def _rails(verdict: ClusterVerdict) -> Sheet | None:
    rows = []
    for rail, seconds in sorted(verdict.usual_seconds.items()):
        rates = [each for each in verdict.rails if each.rail == rail]
        shares = sorted(each.share for each in rates if each.share)
        names = sorted({each.interface for each in rates if each.interface})
        smallest = [each.ratio for each in verdict.detectable if each.rail == rail]
        rows.append((
            rail,
            ", ".join(names[:2]) + (", …" if len(names) > 2 else ""),
            format_time(seconds),
            format_rate(verdict.bytes / seconds) if seconds else "",
            f"{shares[len(shares) // 2]:.0%}" if shares else "",
            f"{max(smallest) - 1:.1%}" if smallest and min(smallest) > 1 else "",
        ))  # fmt: skip
    if not rows:
        return None
    columns = numbers("usual time", "GB/s", "of the interface", "smallest slowness found")
    message = f"One message has {format_bytes(verdict.bytes)}." if verdict.bytes else ""
    sheet = Sheet.of("", (*numbers("rail"), "interface", *columns), rows, message)
    return sheet.without_empty_columns()


def _groups(verdict: ClusterVerdict, most: int) -> Sheet | None:
    if len(verdict.groups) < 2:
        return None
    shown = list(verdict.groups)
    if len(shown) > most:
        shown = sorted(shown, key=lambda each: -each.ratio)[:most]
    rows = [
        (
            each.name,
            compress_hosts(each.nodes),
            len(each.nodes),
            f"{each.ratio:.2f} ×" if each.ratio else "",
        )
        for each in shown
    ]
    columns = ("group", "nodes", *numbers("count", "time to other groups"))
    source = SOURCES.get(verdict.groups_from, "")
    left = len(verdict.groups) - len(shown)
    notes = (f"Groups {source}." if source else "", f"{left} more are not shown." if left else "")
    return Sheet.of("", columns, rows, " ".join(filter(None, notes)))


def _pairs(verdict: ClusterVerdict) -> Sheet | None:
    """Each pair once, with its slowest rail."""
    by_pair: dict[tuple[str, str], PairTime] = {}
    for each in sorted(verdict.pairs, key=lambda each: -each.ratio):
        by_pair.setdefault((each.sender, each.receiver), each)
    slowest = list(by_pair.values())[:MOST_PAIRS]
    if not slowest:
        return None
    columns = ("sender", "receiver", *numbers("rail", "time", "beside usual", "tests"))
    return Sheet.of("", columns, map(_pair, slowest))


def _pair(pair: PairTime) -> tuple[object, ...]:
    time, ratio = format_time(pair.seconds), f"{pair.ratio:.2f} ×"
    return pair.sender, pair.receiver, pair.rail, time, ratio, pair.tests


def _collectives(verdict: ClusterVerdict) -> Sheet | None:
    if not verdict.collectives:
        return None
    columns = ("nodes", *numbers("count", "time", "predicted"), "failed")
    return Sheet.of("", columns, map(_collective, verdict.collectives)).without_empty_columns()


def _collective(each: CollectiveResult) -> tuple[object, ...]:
    time = format_time(each.seconds) if each.seconds else ""
    predicted = format_time(each.predicted_seconds) if each.predicted_seconds else ""
    return compress_hosts(each.nodes), len(each.nodes), time, predicted, each.failed
