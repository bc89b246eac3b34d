"""Whether cores have a place at all: how far they are from blocks of memory, looked at repeatedly.

Loads out of memory take one of two times if there are two sockets. A core is on the side of
the blocks that it reads in the shorter one; where it changes sides, a virtual CPU was moved, and no
stored map of cores is worth anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from waywiser.stats import median
from waywiser.words import Locality, Value

LEAST_RATIO = 1.25
"""Remote over local: two sockets of current servers are 1.6 to 2 apart."""
DEVIATIONS = 4.0
"""Robust standard deviations within the groups that their middles must lie apart."""
LEAST_SHARE = 0.05
"""Least share of the loads: fewer are not a side, but interruptions."""
OUTLIER_FACTOR = 4.0
"""Ratio to the shortest median from which on something interrupted the core."""
MAJORITY = 2 / 3
"""Share of the blocks that must agree on a core's side."""

Stability = Literal["stable", "drifting", "none seen", "not determined"]

Sided = Mapping[tuple[int, str, int], int | None]
"""Known sides of blocks, by worker, memory and number."""


class CoreVerdict(Value, frozen=True):
    """What is known of cores."""

    stability: Stability = msgspec.field(name="verdict")
    local_seconds: float = msgspec.field(default=0.0, name="near_seconds")
    """Seconds of one load out of memory on the core's side; without sides, out of any."""
    remote_seconds: float = msgspec.field(default=0.0, name="far_seconds")
    cores: tuple[int, ...] = ()
    """Those that were looked at."""
    changed: tuple[int, ...] = ()
    """Those that changed sides."""
    seconds: float = 0.0
    """The shortest time between two looks that differ; if none do, that they span."""


class _Look(NamedTuple):
    """All blocks, read by one core at one time."""

    at: float
    core: int
    side: int | None


def decide_cores(records: Sequence[Locality], sides: Sided) -> CoreVerdict:
    """``sides`` are those of blocks if GPUs show them; else cores decide alone."""
    loads = [
        seconds
        for record in records
        for block in record.blocks
        for sweep in block.reads
        for seconds in sweep
    ]
    cores = tuple(sorted({cpu for record in records for cpu in record.cpus}))
    if not loads or not cores:
        return CoreVerdict("not determined")
    levels = _levels(loads)
    if levels is None:
        return CoreVerdict("none seen", median(loads), cores=cores)
    looks = [look for record in records for look in _looks(record, sides, levels)]
    return _verdict(looks, levels, cores)


def _levels(loads: Sequence[float]) -> tuple[float, float] | None:
    """(local, remote) where loads take one of two times."""
    low = sorted(loads)[: max(1, len(loads) // 4)]
    kept = sorted(math.log(s) for s in loads if s <= OUTLIER_FACTOR * median(low))
    total, squares = sum(kept), sum(value * value for value in kept)
    best, at = math.inf, 0
    left = left_squares = 0.0
    for n, value in enumerate(kept[:-1], 1):
        left, left_squares = left + value, left_squares + value * value
        rest = len(kept) - n
        right = total - left
        within = left_squares - left**2 / n + (squares - left_squares) - right**2 / rest
        if within < best:
            best, at = within, n
    local, remote = kept[:at], kept[at:]
    if min(len(local), len(remote)) < max(2, LEAST_SHARE * len(loads)):
        return None
    middles = median(local), median(remote)
    spread = max(
        1.4826 * median([abs(value - middle) for value in group])
        for group, middle in zip((local, remote), middles, strict=True)
    )
    apart = middles[1] - middles[0]
    if apart < math.log(LEAST_RATIO) or apart < DEVIATIONS * spread:
        return None
    return math.exp(middles[0]), math.exp(middles[1])


def _looks(record: Locality, sides: Sided, levels: tuple[float, float]) -> Iterator[_Look]:
    """One per sweep and core. If the blocks' sides are unknown, those that the first core reads
    as local in the first sweep are on side 0."""
    limit = math.sqrt(levels[0] * levels[1])
    known = [sides.get((record.worker, record.memory, n)) for n in range(len(record.blocks))]
    if all(side is None for side in known):
        known = [
            int(block.reads[0][0] > limit) if block.reads and block.reads[0] else None
            for block in record.blocks
        ]
    started = datetime.fromisoformat(record.started).timestamp()
    for sweep, since in enumerate(record.sweeps):
        for position, core in enumerate(record.cpus):
            votes = [
                side if block.reads[sweep][position] <= limit else 1 - side
                for block, side in zip(record.blocks, known, strict=True)
                if side is not None
            ]
            yield _Look(started + since, core, _agreed(votes))


def _agreed(votes: Sequence[int]) -> int | None:
    if not votes:
        return None
    share = sum(votes) / len(votes)
    if MAJORITY > share > 1 - MAJORITY:
        return None
    return round(share)


def _verdict(
    looks: Sequence[_Look], levels: tuple[float, float], cores: tuple[int, ...]
) -> CoreVerdict:
    changed: set[int] = set()
    shortest = math.inf
    repeated = False
    for core in cores:
        own = sorted(look for look in looks if look.core == core and look.side is not None)
        repeated = repeated or len(own) > 1
        for before, after in pairwise(own):
            if before.side != after.side:
                changed.add(core)
                shortest = min(shortest, after.at - before.at)
    times = [look.at for look in looks]
    span = max(times) - min(times) if times else 0.0
    if not repeated:
        return CoreVerdict("not determined", *levels, cores)
    if changed:
        return CoreVerdict("drifting", *levels, cores, tuple(sorted(changed)), shortest)
    return CoreVerdict("stable", *levels, cores, (), span)
