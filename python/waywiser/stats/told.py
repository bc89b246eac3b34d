"""What the samples of a visit say, kept beside them, so that a large profile is told in seconds.

Samples are what was measured; this follows from them, and is kept with the number of the rules by
which it does. Where a file has none, or that of other rules, the samples are read and asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf, isfinite
from typing import NamedTuple

import msgspec

from waywiser.profile import Profile
from waywiser.records import Series, Visit
from waywiser.stats.block import BlockEstimate, estimate_block
from waywiser.stats.order import Interval
from waywiser.words import Value, Workload

RULES = 1
"""To be raised with every change of what `waywiser.stats.block.estimate_block` says of samples."""


class Told(Value, frozen=True):
    """What the samples of one visit say."""

    rules: int
    taken: int
    """Samples, void ones included."""
    block: BlockEstimate | None
    """None where none of them counts."""


class ToldSeries(NamedTuple):
    """A series whose visits need no samples any more."""

    series: Series
    told: Sequence[Told]
    """One per visit."""


def tell(visit: Visit) -> Told:
    """Of a visit with its samples."""
    return Told(RULES, len(visit.samples), estimate_block(visit))


def packed(told: Told) -> bytes:
    """As a profile keeps it: MessagePack."""
    return msgspec.msgpack.encode(told)


def told_of(series: Series) -> ToldSeries:
    """Of a series with its samples."""
    return ToldSeries(series, tuple(map(tell, series.visits)))


def told_in(profile: Profile, workloads: Iterable[Workload]) -> Iterator[ToldSeries]:
    """Of those workloads of a profile, in their order, a few in memory at a time; the visits come
    without samples. Raises `ProfileError` for a damaged file."""
    for workload, heads in profile.heads_of(workloads):
        visits, told = [], []
        for head in heads:
            visit, known = head.visit, _unpacked(head.told)
            if known is None:
                known = tell(msgspec.structs.replace(visit, samples=profile.samples_of(head)))
            visits.append(visit)
            told.append(known)
        yield ToldSeries(Series(workload, tuple(visits)), told)


_DECODER = msgspec.msgpack.Decoder(Told)


def _unpacked(told: object) -> Told | None:
    """None where it is not there, of other rules, or not what this program writes: anyone may
    have."""
    if not isinstance(told, bytes):
        return None
    try:
        known = _DECODER.decode(told)
    except msgspec.MsgspecError:
        return None
    return known if known.rules == RULES and _makes_sense(known) else None


def _makes_sense(told: Told) -> bool:
    block = told.block
    if block is None:
        return told.taken >= 0
    total = block.median + block.tick + block.spread + block.farthest + block.drift
    if block.quantiles:
        total += sum(block.quantiles.values())
    return (
        _lies_in(block.median, block.interval)
        and _lies_in(block.host_median, block.host_interval)
        and isfinite(total)
        and 0 < block.count <= told.taken
    )


def _lies_in(median: float | None, interval: Interval | None) -> bool:
    """Where both are known; infinite ends are none."""
    if interval is None or median is None:
        return True
    return -inf < interval.low <= median <= interval.high < inf
