"""Transfers that start together, against the same transfers alone.

A workload is slowed if its span is longer than its slowest transfer alone takes, by the decision
that all pairs have (`waywiser.stats.pairwise`). By how much each of the transfers is slowed shows
which of them share something: they are grouped if their slowdowns lie together and apart from
others'.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

from waywiser.analysis.questions.curve_pairs import size_ratios
from waywiser.curves import BANDWIDTH_BYTES, Curve, Point, Subject, bystander_of
from waywiser.stats import THRESHOLD, Decision, Interval, PairGroup, SizeRatios, decide_groups
from waywiser.stats.method_choice import TOLERANCE
from waywiser.stats.pairwise import HEADLINE
from waywiser.words import Transfer, Value, Workload, grouped

Waiting = Literal["", "some wait", "one after another"]
"""What transfers that are queued behind one another do, though all were started at once."""

GAP = 1.15
"""Slowdowns further apart than this have different reasons."""


class MeasuredSet(Value, frozen=True):
    """One workload of several transfers, at the size that is reported, and each of them alone."""

    curve: Curve
    point: Point
    alone: tuple[Point, ...]
    """The point of each transfer alone, at its size or the nearest that was measured."""

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        return self.point.workload.transfers

    @property
    def is_duplex(self) -> bool:
        """Whether it is one path in both directions."""
        first, *rest = (transfer.path for transfer in self.transfers)
        return len(rest) == 1 and rest[0].is_back_of(first)

    @property
    def ratios(self) -> SizeRatios:
        """Its span against its slowest transfer alone, at its size."""
        expected = [
            (each, math.log(transfer.bytes / each.bytes))
            for each, transfer in zip(self.alone, self.transfers, strict=True)
        ]
        slowest, scale = max(expected, key=lambda each: math.log(each[0].seconds) + each[1])
        return size_ratios(self.point, slowest, scale)


class Together(MeasuredSet, frozen=True):
    """What was decided about such a workload."""

    decision: Decision
    """Its ratio is the time of its slowest transfer alone over its span."""

    @property
    def alone_rate(self) -> float:
        """What it would be were none slowed: the sum of what each reaches alone."""
        return sum(point.rate for point in self.alone)

    @property
    def share(self) -> float:
        """The share of that sum that is reached together."""
        return self.point.rate / self.alone_rate

    @property
    def share_interval(self) -> Interval | None:
        span = self.decision.interval
        if span is None:
            return None
        unslowed = self.share / self.decision.ratio
        return Interval(unslowed * span.low, unslowed * span.high)

    @property
    def rates(self) -> tuple[float, ...]:
        """Bytes per second of each transfer; its part of the whole where that was not timed."""
        timed = self.point.transfer_rates
        if len(timed) == len(self.transfers):
            return timed
        seconds = self.point.seconds
        return tuple(transfer.bytes / seconds for transfer in self.transfers)

    @property
    def slowdowns(self) -> tuple[float, ...]:
        """How many times as long each transfer takes as alone, from its own start."""
        return tuple(a.rate / rate for a, rate in zip(self.alone, self.rates, strict=True))

    @property
    def waiting(self) -> Waiting:
        """Whether transfers waited for others before they began, which their own times leave out:
        the longest is then clearly shorter than the span, in every block, and where they never
        overlap all of them add up to no more than it."""
        blocks = self.point.measured.used
        timed = [(each.transfers, each.median) for each in blocks if each.transfers]
        if not timed or any(max(own) > span * (1 - TOLERANCE) for own, span in timed):
            return ""
        apart = all(sum(own) <= span * (1 + TOLERANCE) for own, span in timed)
        return "one after another" if apart else "some wait"

    @property
    def slowest(self) -> float:
        """How many times as long as alone the slowest transfer takes; counted from the common
        start where some wait."""
        return max(*self.slowdowns, 1 / self.decision.ratio if self.waiting else 0.0)

    @property
    def is_slowed(self) -> bool:
        """Decided, or suspected if nothing replicates it."""
        different = self.decision.outcome == "different" and self.decision.slower
        return different or (self.decision.detectable is None and self.decision.suspected)

    @property
    def is_unslowed(self) -> bool:
        return self.decision.outcome == "equivalent" or (
            self.decision.outcome == "different" and not self.decision.slower
        )

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Positions of slowed transfers whose slowdowns lie together, the slowest group first."""
        slowed = [n for n, times in enumerate(self.slowdowns) if times > 1 + THRESHOLD]
        slowed.sort(key=lambda n: -self.slowdowns[n])
        found: list[list[int]] = []
        for n in slowed:
            if found and self.slowdowns[found[-1][-1]] <= GAP * self.slowdowns[n]:
                found[-1].append(n)
            else:
                found.append([n])
        return tuple(tuple(sorted(group)) for group in found)

    def carried(self, group: Sequence[int]) -> tuple[float, Interval | None]:
        """Bytes per second that a group of its transfers moves together, with as wide an interval
        as the whole has."""
        whole = self.point.measured.rate
        if len(group) == len(self.transfers) and whole is not None:
            return whole.value, whole.interval
        seconds = max(self.transfers[n].bytes / self.rates[n] for n in group)
        rate = sum(self.transfers[n].bytes for n in group) / seconds
        if whole is None or whole.interval is None:
            return rate, None
        times = rate / whole.value
        return rate, Interval(whole.interval.low * times, whole.interval.high * times)


def found_together(subject: Subject) -> tuple[list[Together], list[Curve]]:
    """(workloads at sizes that have a bandwidth, those whose transfers were not measured alone)."""
    candidates, unknown = [], []
    for curve in subject.curves:
        transfers = curve.workload.copies
        if len(transfers) < 2 or any(place.kind == "file" for place in curve.workload.places):
            continue
        if bystander_of(curve.workload, subject.machine.traits) is not None:
            continue  # what it takes is a cost of the copy beside it
        if not curve.workload.rated_bytes:
            continue  # no bandwidth to share: not every byte of a range is touched
        if found := _candidate(subject, curve):
            candidates.append(found)
        elif curve.measured[-1].bytes >= BANDWIDTH_BYTES:
            unknown.append(curve)
    return _decided(candidates), unknown


def _candidate(subject: Subject, curve: Curve) -> MeasuredSet | None:
    """The candidate at the largest size at which each transfer has a bandwidth and was measured
    alone."""
    # of a set that was measured at small sizes alone, as into one shared buffer, these must do
    largest = min(transfer.bytes for transfer in curve.measured[-1].workload.transfers)
    for point in reversed(curve.measured):
        transfers = point.workload.transfers
        if min(transfer.bytes for transfer in transfers) < min(BANDWIDTH_BYTES, largest):
            continue
        alone = [_alone(subject, point.workload, transfer) for transfer in transfers]
        known = tuple(each for each in alone if each is not None)
        if len(known) == len(transfers):
            return MeasuredSet(curve, point, known)
    return None


def _alone(subject: Subject, workload: Workload, transfer: Transfer) -> Point | None:
    """The transfer alone at its size, else at the nearest that has a bandwidth too."""
    curve = subject.curve(Workload((transfer,), cache=workload.cache).curve)
    if curve is None:
        return None
    if exact := curve.at(transfer.bytes):
        return exact
    large = [point for point in curve.measured if point.bytes >= BANDWIDTH_BYTES]
    if transfer.bytes < BANDWIDTH_BYTES or not large:
        return None
    return min(large, key=lambda point: abs(math.log(point.bytes / transfer.bytes)))


def _decided(candidates: Sequence[MeasuredSet]) -> list[Together]:
    """Sets that the machine's symmetry makes equivalent are one group. What a set does not show by
    itself, the mean of its group may show."""
    groups = grouped((each.curve.representative, each) for each in candidates)
    compared = [
        PairGroup([{HEADLINE: [each.ratios]} for each in members], _family(members[0]))
        for members in groups.values()
    ]
    decisions: dict[str, Decision] = {}
    for members, found in zip(groups.values(), decide_groups(compared), strict=True):
        mean = found.mean[HEADLINE].decision
        for each, pair in zip(members, found.pairs, strict=True):
            own = pair[HEADLINE].decision
            lent = own.outcome == "no change found" and mean.outcome == "different"
            same = own.slower == mean.slower
            decisions[each.curve.text] = mean if lent and same else own
    return [
        Together(each.curve, each.point, each.alone, decisions[each.curve.text])
        for each in candidates
    ]


def _family(each: MeasuredSet) -> Hashable:
    """Workloads with the same variance between processes: by one executor between the same kinds
    of memory, one path in both directions or a set, from buffers of their own or a shared one."""
    paths = [transfer.path for transfer in each.transfers]
    kinds = frozenset(memory.kind for path in paths for memory in path.ends)
    return paths[0].executor, kinds, each.is_duplex, each.point.workload.shared
