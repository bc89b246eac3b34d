"""A verdict about a cluster in words: the answer, how sure it is, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.cluster.verdict_values import (
    BAD_REASONS,
    NODE_REASONS,
    ClusterVerdict,
)
from waywiser.curves import Finding
from waywiser.stats import Interval
from waywiser.words import ClusterPlace, RailDirection, Reason, Severity, compress_hosts, count

MOST_ANSWERS = 3
"""Findings that the answer names."""

MOST_CHARACTERS = 160
"""Characters of each."""

MOST_UNSEEN = 0.15
"""A run that finds only what is slower than this has not shown that nothing is."""

UNSEEN_SWITCHES = (
    "groups are not given (--groups): a slow switch, or slow links between switches, may be missed "
    "or found as slow nodes or pairs"
)

SEVERITIES: dict[str, Severity] = {
    "failed node": "error",
    "slow node": "error",
    "slow group": "error",
    "failed pair": "error",
    "slow pair": "error",
    "collective failed": "error",
    "slow crossing": "warning",
    "slow rail": "warning",
    "collective slow": "warning",
    "below interface rate": "warning",
    "not over interface": "warning",
    "new errors": "info",
    "errors counted": "info",
}
"""The kinds of findings, by their ``id``.

``slow group``: nodes that are fast among themselves and slow to all others, so that they share
something slow. ``slow crossing``: tests between groups take much longer than inside them; neither
of two groups can be blamed, and no node is named. ``slow rail``: a rail is slower than the others
on every node; no node is named. ``below interface rate``: a rail reaches less than 70 % of its
interface's rate. ``not over interface``: the bytes of a test did not cross the interface. ``new
errors``: an interface counted errors during the survey; ``errors counted``: before it. These
explain other findings, and are no verdict by themselves."""

REMEDIES: dict[str, str] = {
    "failed node": "look at the kernel's log of the node and at its last action; keep it off jobs "
    "until a survey with --retry passes",
    "slow node": "keep the node off jobs (waywiser cluster show FOLDER --exclude); compare its "
    "cable, link rate, error counters, PCIe link and firmware settings with a good node's",
    "slow group": "look at what these nodes share before any of them: their switch, its up-links, "
    "their power and cooling",
    "failed pair": "look at the route between the two: each of them passes with others",
    "slow pair": "look at the route between the two, as a static route or one up-link: each of "
    "them is fast with others",
    "slow crossing": "look at the links between these groups: their rate, their error counters, "
    "and whether routes use all of them; of two groups, neither can be blamed",
    "slow rail": "compare the interface of this rail with those of the others: its link rate, its "
    "PCIe link, its switch; it is slow on every node",
    "collective failed": "the nodes pass in pairs: run the survey again without half of those "
    "named, and look at the library's log of the others",
    "collective slow": "see whether each rank has a CPU of its own, and how many messages cross an "
    "up-link at once: by the times of pairs it should be faster",
    "below interface rate": "see whether messages use the interface, whether its link has its full "
    "rate, and how wide its PCIe link is; if all nodes are below, look at the MTU and the switches",
    "not over interface": "choose the interface in the settings of the MPI library "
    "(UCX_NET_DEVICES if it uses UCX) and run the survey again: the times are of another path",
    "new errors": "reseat or replace the cable and the transceiver of the interface, then see "
    "whether the counters still grow",
    "errors counted": "see whether the counters still grow; reseat or replace the cable",
}

NCCL_REMEDIES: dict[str, str] = {
    "collective slow": "see how often the rings and trees of NCCL cross groups (it lists them with "
    "NCCL_DEBUG=INFO): by the times of pairs it should be faster",
    "not over interface": "choose the interface (NCCL_SOCKET_IFNAME, NCCL_IB_HCA) and run the "
    "survey again: the times are of another path",
}
"""What replaces them if messages were sent by NCCL."""

STANDING_REMEDIES: dict[Reason, str] = {
    "failed": "see in the kernel's log of the node whether its agent was killed or the node went "
    "down; then resume with --retry",
    "stuck": "a process of the node survives its kill: restart the node",
    "not reached": "see whether the node is up and can reach the coordinator's address and port; "
    "then resume with --retry",
    "excluded": "see the reason; if Waywiser differs, install the same on all nodes; "
    "then resume with --retry",
    "pair": "survey with a third node: with two, neither can be blamed",
    "not decided": "resume the survey",
}


def cluster_finding(
    kind: str,
    nodes: tuple[str, ...],
    text: str,
    ratio: tuple[float, float, float] = (0.0, 0.0, 0.0),
    tests: int = 0,
    evidence: tuple[str, ...] = (),
    *,
    rail: int = -1,
    interface: str = "",
    direction: RailDirection = "both",
) -> Finding:
    """Returns a finding of one of the kinds of `SEVERITIES`. ``ratio`` is the time as a multiple of
    the usual time of the cluster, or of ``below interface rate`` and ``not over interface`` the
    share reached, with its 95 % interval; 0 if there is none."""
    middle, low, high = ratio
    return Finding(
        id=kind,
        severity=SEVERITIES[kind],
        statement=text,
        effect=middle - 1 if middle else None,
        interval=Interval(low - 1, high - 1) if high else None,
        remedy=REMEDIES[kind],
        evidence=evidence,
        tests=tests,
        where=ClusterPlace(nodes, rail, interface, direction),
    )


def ratio_of(finding: Finding) -> float:
    """The ratio of `cluster_finding`; 0 if there is none."""
    return 0.0 if finding.effect is None else 1 + finding.effect


def severity_of(verdict: ClusterVerdict) -> Severity:
    """How grave the verdict is: ``error`` if a node, a pair or a group should not be used so."""
    found = {each.severity for each in verdict.findings}
    if "error" in found or any(each.is_bad for each in verdict.nodes):
        return "error"
    is_open = (
        not verdict.complete
        or not is_sharp(verdict)
        or any(each.verdict in ("pair", "not decided") or not each.tests for each in verdict.nodes)
    )
    return "warning" if "warning" in found or is_open or not verdict.nodes else "info"


def has_finding(verdict: ClusterVerdict) -> bool:
    """Whether anything is wrong, of whatever severity above ``info``."""
    return any(each.severity != "info" for each in verdict.findings) or any(
        each.is_bad for each in verdict.nodes
    )


def answer(verdict: ClusterVerdict) -> str:
    """What is slow or hangs, and which pairs were tested, in one line: ``n3 is 12 % slow to every
    node, sending, on rail 2; all 28 pairs of the other 8 nodes were tested``."""
    grave = [each.text for each in verdict.findings if each.severity != "info"]
    grave += _unfounded(verdict)
    if grave:
        more = len(grave) - MOST_ANSWERS
        shown = [*map(_shortened, grave[:MOST_ANSWERS])]
        shown += [f"and {count(more, 'more finding')}"] if more > 0 else []
        return "; ".join([*shown, coverage_text(verdict)])
    if not any(each.tests for each in verdict.nodes):
        return f"nothing is known: no test between nodes has finished; {coverage_text(verdict)}"
    if pair := verdict.of("pair"):
        return (
            f"{' and '.join(pair)} pass; with two nodes, neither can be compared with others; "
            f"{coverage_text(verdict)}"
        )
    if verdict.complete and (open_ := verdict.of("not decided")):
        return (
            f"not decided: {compress_hosts(open_)} may be slow, or the times scatter too much; "
            f"{coverage_text(verdict)}"
        )
    if verdict.complete and not is_sharp(verdict):
        return f"not decided: {detectable_text(verdict)}; {coverage_text(verdict)}"
    tested = len(verdict.of("ok"))
    least = f" by {100 * (verdict.smallest_found - 1):.1f} % or more" if is_sharp(verdict) else ""
    passed = f"none of {count(tested, 'tested node')} hangs or is slow{least}"
    if len(verdict.groups) > 1:
        groups = len(verdict.groups)
        passed += (
            f"; none of {groups} groups is slow to the others"
            if groups > 2
            else ("; crossing between 2 groups is not slow")
        )
    passed = f"{passed}; {coverage_text(verdict)}"
    return passed if verdict.complete else f"until now {passed}"


def coverage_text(verdict: ClusterVerdict) -> str:
    """Which pairs were tested, and what would have been missed: a slow pair with which probability,
    and a slow switch if the run does not know the groups."""
    unseen = UNSEEN_SWITCHES if verdict.coverage.may_cross_unseen else ""
    return "; ".join(filter(None, (_pairs_text(verdict), unseen)))


def _pairs_text(verdict: ClusterVerdict) -> str:
    coverage = verdict.coverage
    found = {each.id for each in verdict.findings}
    rest = len(verdict.nodes) - coverage.nodes
    nodes = f" of {'the other ' if rest else ''}{count(coverage.nodes, 'node')}"
    if len(verdict.nodes) == 2 and verdict.of("pair"):
        return "they were tested with one another alone"
    if not coverage.pairs or not coverage.tested:
        return f"no pair{nodes if coverage.pairs else ''} was tested"
    if coverage.tested == coverage.pairs:
        which = "the only pair" if coverage.pairs == 1 else f"all {coverage.pairs:,} pairs"
        were = "was" if coverage.pairs == 1 else "were"
        single = "no further" if found & {"slow pair", "failed pair"} else "no"
        least = f" by {100 * (coverage.ratio - 1):.1f} % or more" if coverage.ratio > 1 else ""
        is_known = verdict.complete and is_sharp(verdict) and not verdict.of("pair")
        none = f", and {single} pair is slow{least} or fails" if is_known else ""
        return f"{which}{nodes} {were} tested{none}"
    share = coverage.share
    return (
        f"{_share(share)} of the pairs{nodes} {'was' if coverage.tested == 1 else 'were'} tested "
        f"({coverage.tested:,} of {coverage.pairs:,}); a single slow pair would have been missed "
        f"with {_share(1 - share)}"
    )


def _share(share: float) -> str:
    """``31 %``, ``0.7 %``, ``99.96 %``: never 0 or 100 for what is not."""
    for digits in range(5):
        text = f"{100 * share:.{digits if digits or 0.1 <= share <= 0.9 else 1}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text} %"
    return "less than 0.0001 %" if share < 0.5 else "more than 99.9999 %"


def is_sharp(verdict: ClusterVerdict) -> bool:
    """Whether the run would have found what is slow by `MOST_UNSEEN`."""
    return 1 < verdict.smallest_found <= 1 + MOST_UNSEEN


def counts_text(verdict: ClusterVerdict) -> str:
    """``1 slow, 1 not reached, 30 ok of 32 nodes``."""
    counts = [(len(verdict.of(each)), each) for each in NODE_REASONS]
    words = {"pair": "in a pair"}
    parts = ", ".join(
        f"{number} {words.get(standing, standing)}" for number, standing in counts if number
    )
    nodes = count(len(verdict.nodes), "node")
    return f"{parts} of {nodes}" if parts else "no nodes"


def measured_text(finding: Finding) -> str:
    """``1.12 × the usual time (1.10–1.14 with 95 %), 8 tests``; empty if nothing was timed."""
    tests = count(finding.tests, "test") if finding.tests else ""
    ratio = ratio_of(finding)
    if not ratio:
        return tests
    if finding.id in ("below interface rate", "not over interface"):
        of_what = "rate" if finding.id == "below interface rate" else "bytes"
        return _joined(f"{ratio:.0%} of the {of_what}", tests)
    span = ""
    if finding.interval is not None:
        low, high = finding.interval.low, finding.interval.high
        span = f" ({1 + low:.2f}–{1 + high:.2f} with 95 %)"
    usual = "predicted" if finding.id == "collective slow" else "usual"
    return _joined(f"{ratio:.2f} × the {usual} time{span}", tests)


def detectable_text(verdict: ClusterVerdict) -> str:
    """What a healthy answer could hide; or that it has too few tests."""
    smallest = verdict.smallest_found
    if smallest <= 1:
        return "the run has too few tests to say which slowness it would find"
    least = f"{100 * (smallest - 1):.1f} %"
    if not is_sharp(verdict):
        return (
            f"the times scatter so much that only a node which is {least} slow is found with 95 % "
            "probability"
        )
    return f"smallest slowness of one node that this run finds with 95 % probability: {least}"


def reference_text(verdict: ClusterVerdict) -> str:
    """What shows slowness that all nodes have, or that nothing does."""
    known = {each.rail for each in verdict.rails if each.interface_bytes_per_second > 0}
    references = [
        "the rates of their interfaces" if known else "",
        "their other rails" if len(verdict.usual_seconds) > 1 else "",
        "tests inside groups" if len(verdict.groups) > 1 else "",
    ]
    named = [each for each in references if each]
    if not named:
        return (
            "slowness that all nodes have in common would not be seen: no interface states its "
            "rate, and there are no other rails or groups to compare"
        )
    return f"slowness that all nodes have in common is compared with {' and with '.join(named)}"


def _unfounded(verdict: ClusterVerdict) -> list[str]:
    """What is wrong with nodes that no finding names."""
    named = {node for each in verdict.findings for node in each.nodes}
    found = []
    for standing in BAD_REASONS:
        is_explained = named if standing in ("slow", "failed") else set()
        nodes = [each for each in verdict.of(standing) if each not in is_explained]
        if nodes:
            found.append(f"{compress_hosts(nodes)} {'is' if len(nodes) == 1 else 'are'} {standing}")
    return found


def _shortened(text: str) -> str:
    """A failure may quote all that a library has printed."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1].rstrip()}…"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def finding_remedy(kind: str, transport: str) -> str:
    """What to do about a finding of a run with this transport."""
    own = NCCL_REMEDIES.get(kind) if transport == "nccl" else None
    return own or REMEDIES[kind]


def standing_remedy(standing: Reason, verdict: ClusterVerdict) -> str:
    """What to do about a node with this verdict, of which there is no finding."""
    if standing == "not decided" and verdict.complete:
        return "survey again while nothing else uses the nodes and the network"
    return STANDING_REMEDIES.get(standing, "")


def one_line_of(nodes: Sequence[str], reason: str) -> str:
    """``n[4-5]: not reached: it did not join in 60 s``."""
    hosts = compress_hosts(nodes)
    return f"{hosts}: {reason}" if reason else hosts
