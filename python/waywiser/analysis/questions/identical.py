"""Link equivalence: do equivalent paths have equal bandwidth?

Equivalent paths are those that the symmetry of the machine, as the topology shows it, maps onto
each other. Each is compared with the others of its group
(`waywiser.analysis.questions.peer_groups`): in the bandwidth regime, and at every size, since a
drop at few sizes hides in a median over sizes. Paths that differ are reported by link, with every
kind of transfer that shows it: one slow slot is one finding. Only bytes that a copy engine or a
kernel moves over a link are evidence against it: if pageable copies or page faults of a GPU are
slow and its pinned or peer copies equal their peers, the link is not the reason.

The question and the form of the table are those of the thesis chapter on explicit transfers (C.
Pearson, M.S. thesis, 2018, "Differences between Identical Transfers").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.analysis.questions import missing
from waywiser.analysis.questions.gpu_links import gpu_link_table, gpu_links, links_text
from waywiser.analysis.questions.pair_answers import MARKS, finding, signed
from waywiser.analysis.questions.peer_groups import (
    PeerResult,
    gpus_of_unknown_locality,
    loosest,
    peer_groups,
)
from waywiser.analysis.questions.undecided import BROKEN
from waywiser.analysis.questions.undecided import undecided as undecided_paths
from waywiser.curves import (
    BANDWIDTH_BYTES,
    MOST_EXHIBITS,
    NOT_DETERMINED,
    Answer,
    Exhibit,
    Finding,
    Sheet,
    SheetCell,
    Subject,
    capital,
    hidden_loss,
    percent,
    ranked,
    size_span,
    table,
)
from waywiser.curves.texts import undecided
from waywiser.stats import THRESHOLD, TestOutcome
from waywiser.words import Place, Severity, count, format_bytes, grouped

EXPLAINING = ("slow link", "throttled")
"""Quality flags that are a reason for a link to be slow."""

STAGED = ("peer off", "no peer access", "through the host")
"""Kinds of connection of two GPUs without a link: bytes go through host memory."""


def answer(subject: Subject) -> Answer:
    """Per group of equivalent paths, whether they are equal, and which differ."""
    groups = peer_groups(subject)
    even = [peers for peers in groups if not is_uneven(peers)]
    findings = [
        *missing.findings(subject),
        *_of_links(subject, [each for peers in even for each in peers]),
        *undecided_paths(subject, even),
        *_of_uneven(subject, [peers for peers in groups if is_uneven(peers)]),
    ]
    return Answer(
        question="identical",
        title="Link equivalence: do equivalent paths have equal bandwidth?",
        summary=_summary(subject, groups),
        findings=ranked(findings),
        tables=(
            *gpu_link_table(subject, (each for peers in groups for each in peers)),
            *_table(groups),
        ),
        unanswered=(
            *filter(None, [_unknown_locality(subject)]),
            *undecided(
                (
                    (str(peers[0].kind), loosest(peers).decision)
                    for peers in groups
                    if outcome_of(peers) == "no change found"
                ),
                ", with fewer than three paths",
            ),
        ),
        answered=bool(groups),
    )


def is_uneven(peers: Sequence[PeerResult]) -> bool:
    """Whether so many of a group are slow that the right ones are not known; not if one GPU
    is at an end of all that are slow."""
    slow = [each for each in peers if each.is_slow]
    if len(slow) <= (1 - missing.MOST) * len(peers) or len(peers) == 2:
        return False
    return _common_gpu(slow) is None


def outcome_of(peers: Sequence[PeerResult]) -> TestOutcome:
    """The verdict of a group: different if any path is; equivalent if all are."""
    outcomes = {each.outcome for each in peers}
    if "different" in outcomes:
        return "different"
    return "equivalent" if outcomes == {"equivalent"} else "no change found"


def _summary(subject: Subject, groups: Sequence[Sequence[PeerResult]]) -> str:
    """First the links of GPUs to the host, then all paths."""
    unknown = _unknown_locality(subject)
    if not groups and unknown:
        return f"Not determined: {unknown}."
    if not groups:
        return (
            "Not determined: no two paths are equivalent by the topology, or none of them was "
            f"measured from {format_bytes(BANDWIDTH_BYTES)} on."
        )
    paths = [each for peers in groups for each in peers]
    equal = sum(each.outcome == "equivalent" for each in paths)
    slow = sum(each.is_slow for each in paths)
    fast = sum(each.is_fast and each.others > 1 for each in paths)
    links = links_text(gpu_links(subject.machine, paths))
    said = f"{capital(unknown)}. " if unknown else ""
    said += f"{links}. " if links else ""
    between = slow_between_gpus(groups)
    said += f"{capital(between)}. " if between else ""
    said += (
        f"Of {len(paths)} paths in {count(len(groups), 'group')}, "
        f"{f'{equal} are' if equal else 'none is shown to be'} equivalent within {THRESHOLD:.0%}"
    )
    if slow or fast:
        said += f"; slower: {slow or 'none'}, faster: {fast or 'none'}"
    open_ = [each.decision for each in paths if each.outcome == "no change found"]
    single = [each for each in open_ if each.detectable is None]
    if rest := len(open_) - len(single):
        said += f"; no difference found, but not shown to be equivalent: {rest}"
    if single:
        most = max(1 - min(each.ratio, 1 / each.ratio) for each in single)
        said += f"; not decidable, since nothing replicates their figures: {len(single)}, which "
        said += f"differ by up to {percent(most)}"
    return f"{said}."


def _unknown_locality(subject: Subject) -> str:
    """Why paths between GPUs and the host are not compared; empty if they are."""
    unknown = gpus_of_unknown_locality(subject)
    if not unknown:
        return ""
    give = (
        "give --topology"
        if not subject.machine.is_described
        else ("the system does not say which NUMA node is near each GPU")
    )
    return (
        f"locality unknown: {give}; the paths of {count(len(unknown), 'GPU')} from and to several "
        "NUMA nodes are not compared"
    )


def _table(groups: Sequence[Sequence[PeerResult]]) -> tuple[Sheet, ...]:
    return table(
        "Equivalent paths",
        ("transfer", "differ", "paths", "slowest", "fastest"),
        map(_row, groups),
        f"yes: some differ by more than {THRESHOLD:.0%}, no: all equivalent within it, "
        f"{NOT_DETERMINED}; bandwidth against the median of the others at "
        f"{format_bytes(BANDWIDTH_BYTES)} and more, or at the sizes that differ.",
    )


def _row(peers: Sequence[PeerResult]) -> tuple[SheetCell, ...]:
    by_ratio = sorted(peers, key=lambda each: each.decision.ratio)
    return (
        SheetCell(str(peers[0].kind)),
        group_cell(peers),
        SheetCell(str(len(peers))),
        _extreme(by_ratio[0]),
        _extreme(by_ratio[-1]),
    )


def group_cell(peers: Sequence[PeerResult]) -> SheetCell:
    """The mark of a group, with how many differ and at which sizes, or what could be missed."""
    outcome = outcome_of(peers)
    if outcome == "different":
        differ = [each for each in peers if each.outcome == "different"]
        worst = max(differ, key=lambda each: abs(math.log(each.decision.ratio)))
        text = f"{worst.effect_text} ({len(differ)} of {len(peers)})"
        return SheetCell(text, MARKS[outcome], worst.curve.text)
    if outcome == "equivalent":
        return SheetCell("", MARKS[outcome], peers[0].curve.text)
    open_ = loosest(peers)
    return SheetCell(hidden_loss(open_.decision), MARKS[outcome], open_.curve.text)


def _extreme(peer: PeerResult) -> SheetCell:
    return SheetCell(f"{_ends(peer)} {signed(peer.decision, 'bandwidth')}", "", peer.curve.text)


# Paths that differ, by link.


class SharedResource(NamedTuple):
    """Something that several kinds of transfer go through."""

    name: str
    """``gpu:3's link to the host``."""
    places: tuple[Place, ...]
    is_hardware: bool = True
    """A link or a memory, and not what software does with them."""
    is_link: bool = True
    """Not a memory, whose copies cross no link."""

    @property
    def check(self) -> str:
        """What to look at, of hardware."""
        if not self.is_hardware:
            return ""
        parts = "clocks, MIG mode, ECC errors and remapped rows"
        if self.is_link:
            parts = "slot, riser, cables, link state"
        return (
            f"compare its {parts} (nvidia-smi -q, amd-smi) and health counters with its "
            "equivalents'; "
        )


def _ends(peer: PeerResult) -> str:
    """``gpu:0``, ``gpu:0 -> gpu:1``: the places that distinguish it from its equivalents."""
    source, destination = peer.path.places
    return str(source) if source == destination else f"{source} -> {destination}"


def _of_links(subject: Subject, peers: Sequence[PeerResult]) -> Iterator[Finding]:
    """Slow links, then odd paths that are faster than the rest."""
    slow = [each for each in peers if each.is_slow]
    for link, members in grouped((_link(each, slow, peers), each) for each in slow).items():
        yield _slow(subject, link, members)
    fast = [each for each in peers if each.is_fast and each.others > 1]
    if fast:
        yield _fast(subject, fast)


def slow_between_gpus(groups: Sequence[Sequence[PeerResult]]) -> str:
    """``the link between gpu:1 and gpu:3 is slower than those of the other GPUs: −52 %``, with all
    that are; empty if none is."""
    peers = [each for found in groups if not is_uneven(found) for each in found]
    slow = [each for each in peers if each.is_slow and each.kind.group == "GPU-GPU"]
    links = grouped((_link(each, slow, peers), each) for each in slow)
    found = {link: members for link, members in links.items() if link.is_hardware}
    if not found:
        return ""
    worst = {
        link.name: min(members, key=lambda each: each.decision.ratio).effect_text
        for link, members in found.items()
    }
    if len(worst) == 1:
        ((name, effect),) = worst.items()
        return f"{name} is slower than those of the other GPUs: {effect}"
    listed = "; ".join(f"{name} {effect}" for name, effect in worst.items())
    return f"{len(worst)} links between GPUs are slower than the others: {listed}"


def _common_gpu(peers: Sequence[PeerResult]) -> int | None:
    """The GPU that is at an end of all of them; None if there is none."""
    own = ({place.index for place in _gpus(each)} for each in peers)
    return min(set.intersection(*own), default=None)


def _gpus(peer: PeerResult) -> list[Place]:
    return [place for place in peer.path.places if place.kind == "gpu"]


def _link(
    peer: PeerResult, slow: Sequence[PeerResult], peers: Sequence[PeerResult]
) -> SharedResource:
    source, destination = peer.path.places
    if peer.kind.group == "within a GPU":
        return SharedResource(f"{source}'s memory", (source,), is_link=False)
    if peer.kind.group == "host-GPU":
        gpu = _gpus(peer)[0]
        if _shows_link(peer, peers):
            return SharedResource(f"{gpu}'s link to the host", (gpu,))
        memory = peer.kind.source if source.kind == "numa" else peer.kind.destination
        return SharedResource(f"copies of {memory} memory with {gpu}", (gpu,), False)
    if peer.kind.link in STAGED:
        name = f"the path from {source} to {destination} through the host"
        return SharedResource(name, (source, destination), False)
    if peer.kind.group == "GPU-GPU" and not _shows_link(peer, peers):
        name = f"{peer.kind.executor} from {source} to {destination}"
        return SharedResource(name, (source, destination), False)
    if peer.kind.group == "GPU-GPU":
        for place in (source, destination):
            if _mostly(place, slow, peers):
                return SharedResource(f"{place}'s link to its peers", (place,))
        first, second = sorted((source, destination), key=lambda place: place.index)
        return SharedResource(f"the link between {first} and {second}", (first, second))
    places = tuple(dict.fromkeys((source, destination)))
    return SharedResource(f"the path from {source} to {destination}", places, peer.kind.is_quiet)


def _shows_link(peer: PeerResult, peers: Sequence[PeerResult]) -> bool:
    """Whether a slow path is evidence against its link. Only bytes that a copy engine or a kernel
    moves over it are: page faults and prefetches are slow for reasons of their own. If any such
    path over the same link in the same direction equals its peers, the link is not the reason."""
    over = [each for each in peers if each.kind.is_quiet and _link_of(each) == _link_of(peer)]
    equal = any(each.outcome == "equivalent" for each in over)
    return not equal and any(each.is_slow for each in over)


def _link_of(peer: PeerResult) -> tuple[object, ...]:
    """The link of a path and its direction: of one to the host the GPU, from whichever node."""
    source, destination = peer.path.places
    if peer.kind.group == "host-GPU":
        return (source if source.kind == "gpu" else "host",
                destination if destination.kind == "gpu" else "host")  # fmt: skip
    return source, destination, peer.kind.link


def _mostly(place: Place, slow: Sequence[PeerResult], peers: Sequence[PeerResult]) -> bool:
    """Whether most of the paths out of a GPU, or most into it, are slow: at least two."""

    def paths(found: Sequence[PeerResult], end: int) -> int:
        at = (each.kind for each in found if each.path.places[end] == place)
        return sum(kind.group == "GPU-GPU" and kind.link not in STAGED for kind in at)

    return any(paths(slow, end) >= max(2, paths(peers, end) / 2) for end in (0, 1))


def _slow(subject: Subject, link: SharedResource, members: Sequence[PeerResult]) -> Finding:
    # the smallest error; copies by a GPU alone first
    head = min(members, key=lambda each: (not each.kind.is_quiet, each.decision.deviation))
    assert head.different is not None
    effect = 1 - head.decision.ratio
    severity: Severity = "error" if effect >= BROKEN and head.different.is_whole else "warning"
    whom = "its equivalent" if head.others == 1 else f"its {head.others} equivalents"
    source, destination = head.path.places
    measured = head.different.sizes
    sizes = head.sizes_that_differ or size_span(measured[0].bytes, measured[-1].bytes)
    return finding(
        subject,
        head.different,
        "slow-link" if link.is_hardware else "slow-path",
        f"{link.name} {'is' if link.is_hardware or len(link.places) == 2 else 'are'} slow: "
        f"{head.kind} {{slower}} than {whom} ({source} to {destination}, "
        f"{sizes}){_others(members, head)}{_seen(members)}",
        link.check + subject.again("{slow}", "{fast}"),
        severity=severity if link.is_hardware else "info",
        devices=map(subject.device, link.places),
        shown=_exhibits(members),
    )


def _seen(members: Sequence[PeerResult]) -> str:
    """What was recorded of the GPU while it was measured that would explain it."""
    flags = [
        flag
        for each in members
        if each.different is not None
        for flag in each.different.evidence[1].a.measured.quality_flags
    ]
    found = {flag.what: 0 for flag in flags if flag.kind in EXPLAINING}
    return f"; {', '.join(found)}" if found else ""


def _others(members: Sequence[PeerResult], head: PeerResult) -> str:
    """What else shows it, by how much."""
    rest = [1 - each.decision.ratio for each in members if each is not head]
    if not rest:
        return ""
    least, most = percent(min(rest)), percent(max(rest))
    by = least if least == most else f"{least.removesuffix(' %')} to {most}"
    return f"; {len(rest)} more {'have' if len(rest) > 1 else 'has'} {by} less"


def _exhibits(members: Sequence[PeerResult]) -> Iterator[Exhibit]:
    for peer in sorted(members, key=lambda each: each.decision.ratio)[:MOST_EXHIBITS]:
        if peer.different is None:
            continue
        decision, at = peer.different.evidence
        own = at.a.exhibit(BANDWIDTH_BYTES)
        yield own
        longer_than_others = at.a.seconds / peer.medians[at.bytes]
        yield Exhibit(
            own.series,
            f"median {own.what} of its equivalents",
            own.value * longer_than_others if own.unit == "B/s" else own.value / longer_than_others,
            own.unit,
        )
        what = "bandwidth over that of its equivalents"
        yield Exhibit(at.a.text, what, decision.ratio, "ratio", decision.interval)


def _fast(subject: Subject, members: Sequence[PeerResult]) -> Finding:
    """One for all: a path that is faster than its equivalents breaks nothing."""
    head = max(members, key=lambda each: each.decision.ratio)
    assert head.different is not None
    listed = ", ".join(sorted({_ends(each) for each in members})[:MOST_EXHIBITS])
    return finding(
        subject,
        head.different,
        "fast-link",
        f"{len(members)} paths are faster than their equivalents, most of all {head.curve.text}: "
        f"the others have {{effect}} less bandwidth ({listed})",
        "find what is different: the paths may not be as equivalent as the topology shows",
        devices=subject.gpus(place for each in members for place in each.path.places),
        shown=_exhibits([head]),
    )


def _of_uneven(subject: Subject, groups: Sequence[Sequence[PeerResult]]) -> Iterator[Finding]:
    """Groups that fall apart, one finding for all of them."""
    if not groups:
        return
    head = max(groups, key=lambda peers: max(-each.decision.ratio for each in peers))
    slow = [each for each in head if each.is_slow]
    most = min(slow, key=lambda each: each.decision.ratio)
    assert most.different is not None
    gpus = subject.gpus(place for each in slow for place in each.path.places)
    sides = subject.overview.sides
    sets = [{f"gpu:{gpu}" for gpu in group} for group in sides.groups] if sides else []
    along = {gpu.place for gpu in gpus} in sets
    direct = any(peers[0].kind.is_quiet and peers[0].kind.link not in STAGED for peers in groups)
    why = "; they are one hidden side of the machine" if along else ""
    kinds = ", ".join(str(peers[0].kind) for peers in groups[:MOST_EXHIBITS])
    yield finding(
        subject,
        most.different,
        "uneven-paths",
        f"paths that should be equivalent fall into groups ({kinds}): {len(slow)} of {len(head)} "
        f"with up to {{effect}} less bandwidth, at "
        f"{', '.join(gpu.place for gpu in gpus) or _ends(most)}"
        f"{why}",
        "keep a GPU's buffers on its own side"
        if along
        else "the topology does not show all differences: check which switches, "
        "sockets or slots the groups share",
        severity="info" if along or not direct else "warning",
        devices=gpus,
        shown=_exhibits(slow),
    )
