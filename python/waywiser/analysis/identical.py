"""Do equivalent paths perform equally?

Equivalent paths are those that the machine's symmetry maps onto one another, as far as the topology
shows it. Each is compared with the others of its group (`waywiser.analysis.peer_groups`): in the
bandwidth regime, and at every size, since a drop at few sizes hides in a median over sizes. Paths
that differ are reported by link, with every kind of transfer that shows it: one slow slot is one
finding.

The question and the form of the table are those of the thesis chapter on explicit transfers
(C. Pearson, M.S. thesis, 2018, "Differences between Identical Transfers").
"""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis import links, missing
from waywiser.analysis.answer import Answer, Cell, Table, ranked, table
from waywiser.analysis.pair_answers import MARKS, longer, signed
from waywiser.analysis.peer_groups import PeerResult, peer_groups
from waywiser.analysis.regimes import RATE_BYTES
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import NOT_DETERMINED, hidden_loss, size_ranges, undecided
from waywiser.stats.decision import THRESHOLD, Verdict
from waywiser.words import format_bytes

UNEVEN = 1 / 3
"""If more of a group are slow than this, nobody can say which of it is right."""


def answer(subject: Subject) -> Answer:
    """Per group of equivalent paths, whether they are equal, and which differ."""
    groups = peer_groups(subject)
    even = [peers for peers in groups if not is_uneven(peers)]
    findings = [
        *missing.findings(subject),
        *links.findings(subject, [each for peers in even for each in peers]),
        *links.uneven(subject, [peers for peers in groups if is_uneven(peers)]),
    ]
    return Answer(
        question="identical",
        title="Do equivalent paths perform equally?",
        summary=_summary(groups),
        findings=ranked(findings),
        tables=_table(groups),
        unanswered=tuple(
            undecided(
                (
                    (str(peers[0].kind), _loosest(peers).decision)
                    for peers in groups
                    if verdict_of(peers) == "no change found"
                ),
                ", with fewer than three paths",
            )
        ),
        judged=bool(groups),
    )


def is_uneven(peers: Sequence[PeerResult]) -> bool:
    """Whether a group falls apart; not if one GPU is at an end of all that are slow."""
    slow = [each for each in peers if each.is_slow]
    if len(slow) <= UNEVEN * len(peers) or len(peers) == 2:
        return False
    return links.common_gpu(slow) is None


def verdict_of(peers: Sequence[PeerResult]) -> Verdict:
    """Of a group: different if any path is; equivalent if all are."""
    verdicts = {each.verdict for each in peers}
    if "different" in verdicts:
        return "different"
    return "equivalent" if verdicts == {"equivalent"} else "no change found"


def _summary(groups: Sequence[Sequence[PeerResult]]) -> str:
    if not groups:
        return (
            "There is nothing to compare: no two paths should be equivalent, or none of them was "
            f"measured from {format_bytes(RATE_BYTES)} on."
        )
    paths = [each for peers in groups for each in peers]
    equal = sum(each.verdict == "equivalent" for each in paths)
    slow = sum(each.is_slow for each in paths)
    fast = sum(each.is_fast for each in paths)
    said = f"Of {len(paths)} paths in {len(groups)} groups, {equal} are equivalent within "
    said += f"{THRESHOLD:.0%}"
    if slow or fast:
        said += f"; slower: {slow or 'none'}, faster: {fast or 'none'}"
    rest = len(paths) - equal - slow - fast
    return (
        f"{said}; no difference found, but not shown to be equivalent: {rest}."
        if rest
        else f"{said}."
    )


def _loosest(peers: Sequence[PeerResult]) -> PeerResult:
    """Whose decision could have missed most."""
    return max(peers, key=lambda each: each.decision.detectable or 1.0)


def _table(groups: Sequence[Sequence[PeerResult]]) -> tuple[Table, ...]:
    return table(
        "Equivalent paths",
        ("transfer", "differ", "paths", "slowest", "fastest"),
        map(_row, groups),
        f"✓ some differ by more than {THRESHOLD:.0%}, × all equivalent within it, "
        f"{NOT_DETERMINED}; time against the median of the others at {format_bytes(RATE_BYTES)} "
        "and more, or at the sizes that differ.",
    )


def _row(peers: Sequence[PeerResult]) -> tuple[Cell, ...]:
    by_ratio = sorted(peers, key=lambda each: each.decision.ratio)
    return (
        Cell(str(peers[0].kind)),
        group_cell(peers),
        Cell(str(len(peers))),
        _extreme(by_ratio[0]),
        _extreme(by_ratio[-1]),
    )


def group_cell(peers: Sequence[PeerResult]) -> Cell:
    """The mark of a group, with how many differ and at which sizes, or what could be missed."""
    verdict = verdict_of(peers)
    if verdict == "different":
        differ = [each for each in peers if each.verdict == "different"]
        worst = max(differ, key=lambda each: abs(longer(each.decision)[0]))
        text = f"{signed(worst.decision)}{sizes_that_differ(worst)} ({len(differ)} of {len(peers)})"
        return Cell(text, MARKS[verdict], worst.curve.text)
    if verdict == "equivalent":
        return Cell("", MARKS[verdict], peers[0].curve.text)
    loosest = _loosest(peers)
    return Cell(hidden_loss(loosest.decision), MARKS[verdict], loosest.curve.text)


def sizes_that_differ(peer: PeerResult) -> str:
    """`` at 32 MiB to 64 MiB``; empty if a whole regime differs."""
    found = peer.different
    if found is None or found.is_whole or not found.different:
        return ""
    sizes = [each.bytes for each in found.different]
    return f" at {size_ranges(sizes, [each.bytes for each in found.sizes])}"


def _extreme(peer: PeerResult) -> Cell:
    return Cell(f"{links.ends(peer)} {signed(peer.decision)}", "", peer.curve.text)
