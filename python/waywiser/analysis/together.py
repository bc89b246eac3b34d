"""Transfers that start together, against the same transfers alone.

A workload is not slowed where its span is that of its slowest transfer alone; whether it is longer
is tested as everywhere (`waywiser.stats.equivalence`), with the scatter of blocks pooled over
workloads of one sort and Holm's correction over all of them. Of other tools' summaries, which
have no interval, only what no scatter explains is told (`BY_FAR`). By how much each of the
transfers is slowed tells which of them share something: they are grouped where their slowdowns lie
together and apart from others'.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from waywiser.analysis.related import ALPHA, BY_FAR, LEAST_SCATTER, RATE_BYTES, logs
from waywiser.analysis.subject import Curve, Point, Subject
from waywiser.stats.between import Between
from waywiser.stats.equivalence import MARGIN, Comparison, compare, scatter_of
from waywiser.stats.estimate import Estimate
from waywiser.stats.multiplicity import holm
from waywiser.stats.order import Interval
from waywiser.words import Transfer, Value, Workload

SOME = 0.05
"""Of the span: with less left over, transfers fill it."""

Waiting = Literal["", "some wait", "one after another"]
"""What transfers that are queued behind one another do, though all were started at once."""

GAP = 1.15
"""Slowdowns further apart than this have different reasons."""


class Together(Value, frozen=True):
    """One workload of several transfers, at the size that is told of it."""

    curve: Curve
    point: Point
    alone: tuple[Point, ...]
    """Of each transfer, at its size or the nearest that was measured."""
    comparison: Comparison
    """Of its span to that of its slowest transfer alone."""

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        return self.point.workload.transfers

    @property
    def rate(self) -> float:
        """Bytes per second of all, from the common start to the last finish."""
        return self.point.rate

    @property
    def alone_rate(self) -> float:
        """What it would be were none slowed: the sum of what each reaches alone."""
        return sum(point.rate for point in self.alone)

    @property
    def share(self) -> float:
        """Of that sum that is reached together."""
        return self.rate / self.alone_rate

    @property
    def share_interval(self) -> Interval | None:
        span = self.comparison.interval
        if span is None:
            return None
        unslowed = self.share * self.comparison.ratio
        return Interval(unslowed / span.high, unslowed / span.low)

    @property
    def rates(self) -> tuple[float, ...]:
        """Bytes per second of each transfer; its part of the whole where that was not timed."""
        told = self.point.line.transfer_rates
        if len(told) == len(self.transfers):
            return told
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
        blocks = self.point.estimate.blocks
        told = [(each.transfers, each.median) for each in blocks if each.transfers]
        if not told or any(max(own) > span * (1 - SOME) for own, span in told):
            return ""
        apart = all(sum(own) <= span * (1 + SOME) for own, span in told)
        return "one after another" if apart else "some wait"

    @property
    def slowest(self) -> float:
        """How many times as long as alone the slowest transfer takes; counted from the common
        start where some wait."""
        return max(*self.slowdowns, self.comparison.ratio if self.waiting else 0.0)

    @property
    def is_slowed(self) -> bool:
        return self.comparison.verdict == "more"

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Positions of slowed transfers whose slowdowns lie together, the slowest group first."""
        slowed = [n for n, times in enumerate(self.slowdowns) if times > 1 + MARGIN]
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
        whole = self.point.estimate.rate
        if len(group) == len(self.transfers) and whole is not None:
            return whole.value, whole.interval
        seconds = max(self.transfers[n].bytes / self.rates[n] for n in group)
        rate = sum(self.transfers[n].bytes for n in group) / seconds
        if whole is None or whole.interval is None:
            return rate, None
        times = rate / whole.value
        return rate, Interval(whole.interval.low * times, whole.interval.high * times)


class _Candidate(NamedTuple):
    curve: Curve
    point: Point
    alone: tuple[Point, ...]
    slowest: Estimate
    """Of the transfer that takes longest alone, at its size here."""


def found_together(subject: Subject) -> tuple[list[Together], list[Curve]]:
    """(workloads at sizes that tell of a rate, those whose transfers were not measured alone)."""
    candidates, unknown = [], []
    for curve in subject.curves:
        transfers = curve.workload.transfers
        if len(transfers) < 2 or any(_is_file(each) for each in transfers):
            continue
        if not curve.workload.rated_bytes:
            continue  # no rate to share: not every byte of a range is touched
        found = _candidate(subject, curve)
        if found is not None:
            candidates.append(found)
        elif curve.points[-1].bytes >= RATE_BYTES:
            unknown.append(curve)
    return list(_compared(candidates)), unknown


def _is_file(transfer: Transfer) -> bool:
    ends = transfer.path.places
    return any(place.kind == "file" for place in ends)


def _candidate(subject: Subject, curve: Curve) -> _Candidate | None:
    """At the largest size of which each transfer tells of a rate and was measured alone."""
    for point in reversed(curve.points):
        transfers = point.workload.transfers
        if min(transfer.bytes for transfer in transfers) < min(RATE_BYTES, _largest(curve)):
            continue
        alone = [_alone(subject, point.workload, transfer) for transfer in transfers]
        known = tuple(each for each in alone if each is not None)
        if len(known) == len(transfers):
            expected = [
                _scaled(each.estimate, transfer.bytes / each.bytes)
                for each, transfer in zip(known, transfers, strict=True)
            ]
            slowest = max(expected, key=lambda estimate: estimate.median)
            return _Candidate(curve, point, known, slowest)
    return None


def _largest(curve: Curve) -> int:
    """The smallest transfer of the largest size: of a set that was measured at small sizes alone,
    as into one shared buffer, these must do."""
    return min(transfer.bytes for transfer in curve.points[-1].workload.transfers)


def _alone(subject: Subject, workload: Workload, transfer: Transfer) -> Point | None:
    """The transfer by itself at its size, else at the nearest that tells as much of a rate."""
    curve = subject.curve(Workload((transfer,), cache=workload.cache).curve)
    if curve is None:
        return None
    if exact := curve.at(transfer.bytes):
        return exact
    telling = [point for point in curve.points if point.bytes >= RATE_BYTES]
    if transfer.bytes < RATE_BYTES or not telling:
        return None
    return min(telling, key=lambda point: abs(math.log(point.bytes / transfer.bytes)))


def _scaled(estimate: Estimate, times: float) -> Estimate:
    """As it would be of ``times`` as many bytes at the same rate."""
    if times == 1:
        return estimate
    blocks = tuple(
        msgspec.structs.replace(
            block,
            median=block.median * times,
            interval=Interval(block.interval.low * times, block.interval.high * times)
            if block.interval
            else None,
        )
        for block in estimate.blocks
    )
    return msgspec.structs.replace(estimate, median=estimate.median * times, blocks=blocks)


def _compared(candidates: Sequence[_Candidate]) -> Iterator[Together]:
    families: dict[Hashable, list[_Candidate]] = {}
    for each in candidates:
        families.setdefault(_family(each), []).append(each)
    scatter = {family: _scatter(members) for family, members in families.items()}
    found = [
        compare(each.point.estimate, each.slowest, MARGIN, scatter[_family(each)])
        for each in candidates
    ]
    tested = [n for n, each in enumerate(found) if each.p_differ is not None]
    adjusted = holm([p for n in tested if (p := found[n].p_differ) is not None])
    for n, p in zip(tested, adjusted, strict=True):
        if p > ALPHA and found[n].verdict in ("more", "less"):
            found[n] = msgspec.structs.replace(found[n], verdict="unclear")
    for each, comparison in zip(candidates, found, strict=True):
        yield Together(each.curve, each.point, each.alone, _by_far(comparison))


def _by_far(comparison: Comparison) -> Comparison:
    """Of medians alone."""
    if comparison.how != "medians alone" or comparison.effect <= BY_FAR["noisy"]:
        return comparison
    return msgspec.structs.replace(comparison, verdict="more")


def _family(each: _Candidate) -> Hashable:
    """Workloads whose blocks ought to scatter alike: by one executor between the same sorts of
    memory, one path both ways or a set, from buffers of their own or a shared one."""
    paths = [transfer.path for transfer in each.point.workload.transfers]
    kinds = frozenset(memory.kind for path in paths for memory in (path.source, path.destination))
    both_ways = len(paths) == 2 and paths[1] == paths[0].opposite
    return paths[0].executor, kinds, both_ways, each.point.workload.shared


def _scatter(candidates: Iterable[_Candidate]) -> Between | None:
    points = [point for each in candidates for point in (each.point, *each.alone)]
    distinct = {point.line.identity: point for point in points}
    return scatter_of((logs(point) for point in distinct.values()), LEAST_SCATTER)
