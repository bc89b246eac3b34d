"""Equivalent paths, each against the others of its group.

A group is what the machine's symmetry makes equivalent (`waywiser.curves.classes`). At each size
and in each process a path is compared with the median of the others. A path that is slower than the
others is excluded when the rest are compared again, so that it makes no other look fast, nor the
others scatter. The scatter is that of other links: both directions of one link may be slow."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from waywiser.analysis.questions.curve_pairs import (
    REGIMES,
    MeasuredPair,
    PairResult,
    logs,
    shift_of,
    within,
)
from waywiser.analysis.questions.pair_answers import signed
from waywiser.curves import Curve, Kind, Regime, Subject, size_ranges
from waywiser.curves.kinds import usual
from waywiser.stats import (
    FALSE_LOSSES,
    Decision,
    PairGroup,
    SizeRatios,
    TestOutcome,
    decide_groups,
    median,
)
from waywiser.words import Path, Place, Value, grouped

LINK_REGIMES: tuple[Regime, ...] = ("bandwidth", "medium")
"""Regimes in which a difference is one of the link: below, it is one of what starts a copy."""


class PeerResult(Value, frozen=True):
    """One path against its equivalent paths."""

    kind: Kind
    curve: Curve
    others: int
    regimes: dict[Regime, PairResult]
    """The second of each pair is one of the others in the middle."""
    medians: dict[int, float]
    """The median seconds of the others, by size."""

    @property
    def path(self) -> Path:
        """The path of its only transfer."""
        return self.curve.first_transfer.path

    @property
    def different(self) -> PairResult | None:
        """The regime that shows a difference of the link, bandwidth first; None without any."""
        found = (each for regime in LINK_REGIMES if (each := self.regimes.get(regime)))
        return next((each for each in found if each.outcome == "different"), None)

    @property
    def outcome(self) -> TestOutcome:
        """The verdict of the link."""
        found = self.different or self.regimes.get("bandwidth")
        return found.outcome if found else "no change found"

    @property
    def decision(self) -> Decision:
        """What shows a difference; else that of bandwidth, or of the largest regime it has."""
        if self.different is not None:
            return self.different.evidence[0]
        return next(self.regimes[r].decision for r in REGIMES if r in self.regimes)

    @property
    def is_slow(self) -> bool:
        return self.different is not None and self.decision.slower

    @property
    def is_fast(self) -> bool:
        return self.different is not None and not self.decision.slower

    @property
    def sizes_that_differ(self) -> str:
        """``32 MiB to 64 MiB``; empty if a whole regime differs."""
        found = self.different
        if found is None or found.is_whole:
            return ""
        sizes = [each.bytes for each in found.different]
        return size_ranges(sizes, [each.bytes for each in found.sizes])

    @property
    def effect_text(self) -> str:
        """``−46 % at 64 MiB``: its bandwidth against that of the others."""
        at = f" at {self.sizes_that_differ}" if self.sizes_that_differ else ""
        return f"{signed(self.decision, 'bandwidth')}{at}"


def loosest(peers: Iterable[PeerResult]) -> PeerResult:
    """Whose decision could have missed most."""
    return max(peers, key=lambda each: each.decision.detectable or 1.0)


def peer_groups(subject: Subject) -> list[list[PeerResult]]:
    """Each group of two and more usual paths, all decided together; no files, and no paths between
    a GPU and nodes of which none is known to be the nearer one."""
    unknown = gpus_of_unknown_locality(subject)
    groups = grouped(
        (curve.representative, (curve, kind))
        for curve, kind in usual(subject)
        if kind.group not in ("file", "between ranks")
        and not (kind.group == "host-GPU" and unknown & set(curve.first_transfer.path.places))
    )
    several = [found for found in groups.values() if len(found) > 1]
    made = [_members(found, set()) for found in several]
    nothing: list[set[str]] = [set() for _ in made]
    first = _decided(made, nothing)
    slow = [{each.curve.text for each in found if each.is_slow} for found in first]
    if any(slow):
        again = zip(several, made, slow, strict=True)
        remade = [_members(found, out) if out else old for found, old, out in again]
        first = _decided(remade, slow)
    return [found for found in first if len(found) > 1]


def gpus_of_unknown_locality(subject: Subject) -> frozenset[Place]:
    """The GPUs with paths from or to several NUMA nodes of which neither the topology nor what a
    survey measured shows the nearer one."""
    machine = subject.machine
    if len(machine.numa) < 2 or (subject.overview.sides and machine.is_described):
        return frozenset()
    nodes: dict[Place, set[Place]] = {}
    for curve in subject.curves:
        transfer = curve.transfer
        if transfer is None:
            continue
        places = transfer.path.places
        for gpu, node in (places, places[::-1]):
            if gpu.kind == "gpu" and node.kind == "numa":
                nodes.setdefault(gpu, set()).add(node)
    known = {Place("gpu", gpu.index) for gpu in machine.gpus if gpu.numa >= 0}
    return frozenset(gpu for gpu, own in nodes.items() if len(own) > 1 and gpu not in known)


_Members = list[tuple[Kind, MeasuredPair, dict[int, float]]]
"""Each path of a group, and the median seconds of the others by size."""


def _decided(made: Sequence[_Members], slow: Sequence[set[str]]) -> list[list[PeerResult]]:
    compared = [
        PairGroup(
            [pair.ratios for _, pair, _ in members],
            _family(members),
            deviations=True,
            links=[frozenset(pair.a.first_transfer.path.places) for _, pair, _ in members],
            odd=[at for at, (_, pair, _) in enumerate(members) if pair.a.text in known],
        )
        for members, known in zip(made, slow, strict=True)
    ]
    return [
        [
            PeerResult(kind, pair.a, len(members) - 1, pair.results(own), medians)
            for (kind, pair, medians), own in zip(members, found.pairs, strict=True)
        ]
        for members, found in zip(made, decide_groups(compared, FALSE_LOSSES), strict=True)
    ]


def _family(members: _Members) -> Hashable:
    """Kinds with the same variance between processes: both directions, from the same memory of
    any sort."""
    if not members:
        return None
    kind = members[0][0]
    return kind.group, kind.executor, kind.scatters_as, kind.link


def _members(group: Sequence[tuple[Curve, Kind]], slow: set[str]) -> _Members:
    known = {(curve.text, p.bytes): (p, logs(p)) for curve, _ in group for p in curve.measured}
    found = []
    for curve, kind in group:
        others = [other for other, _ in group if other is not curve]
        valid = [other for other in others if other.text not in slow] or others
        pair, medians = MeasuredPair(curve, valid[0], {}, {}), {}
        for point in curve.measured:
            size = point.bytes
            peers = [known[other.text, size] for other in valid if (other.text, size) in known]
            deviations = _deviations(known[curve.text, size][1], [own for _, own in peers])
            if deviations:
                ordered = sorted((peer for peer, _ in peers), key=lambda peer: peer.seconds)
                medians[size] = median([peer.seconds for peer in ordered])
                everything = logs(point, outliers=True)
                shift = shift_of(_deviations(everything, [own for _, own in peers]))
                ratios = SizeRatios(size, deviations, within(point), shift)
                pair.add(point, ordered[len(ordered) // 2], ratios)
        if pair.points:
            found.append((kind, pair, medians))
    return found


def _deviations(
    own: Mapping[int, float], others: Sequence[Mapping[int, float]]
) -> dict[int, float]:
    """Deviations by process: from the median of the others in that process. If none was measured in
    the same process, from the median of all their processes."""
    found = {
        process: value - median(centre)
        for process, value in own.items()
        if (centre := [each[process] for each in others if process in each])
    }
    if found or not others:
        return found
    everything = [value for each in others for value in each.values()]
    return {process: value - median(everything) for process, value in own.items()}
