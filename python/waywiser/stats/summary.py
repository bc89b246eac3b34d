"""Blocks in short: median, interval and count, of one visit or of a whole profile at once.

Both ways give what `waywiser.stats.block.estimate_block` gives, to the bit; the second is for
files that were stored without summaries, and is a hundred times faster than visit by visit.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from waywiser.profile import Profile
from waywiser.profile.digest import Digest, RawBlocks
from waywiser.profile.digest import digests as digests_of
from waywiser.profile.opening import damaged
from waywiser.profile.sound import MOST_SECONDS
from waywiser.records import SUMMARY, VOID, Summary, Visit
from waywiser.stats.order import lower_rank
from waywiser.stats.resolution import EVENT_TICK_SECONDS, HOST_TICK_SECONDS, SAME_SECONDS
from waywiser.stats.told import packed, tell

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray


def summary_of(visit: Visit) -> Summary:
    """Of one visit, for `WritableProfile.commit_visit`."""
    told = tell(visit)
    found = told.block
    if found is None:
        return Summary(0, told=packed(told))
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return Summary(found.count, found.median, low, high, packed(told))


def digests(profile: Profile | Path | str) -> list[Digest]:
    """The series of a profile, open or by its file. Raises `ProfileError`."""
    if isinstance(profile, Profile):
        return digests_of(profile, summaries, spreads)
    with Profile.open(profile) as opened:
        return digests_of(opened, summaries, spreads)


FEWEST_FOR_INTERVAL = next(n for n in itertools.count(1) if lower_rank(n) is not None)
"""Samples below which a median has no 95 % interval: six."""


def spreads(profile: Profile) -> dict[int, float]:
    """Relative standard deviations by visit, of those with too few samples for an interval and more
    than one; void samples and other tools' summaries tell nothing of how samples scatter. Raises
    `ProfileError` for a damaged file."""
    found = profile.select(
        "SELECT visit.visit, span FROM visit CROSS JOIN sample ON sample.visit = visit.visit"
        " WHERE counted > 1 AND counted < ? AND coalesce(flags, 0) & ? = 0",
        tuple[int, float],
        (FEWEST_FOR_INTERVAL, VOID | SUMMARY),
    )  # CROSS: visits first, since few have so few samples
    spans: dict[int, list[float]] = {}
    for visit, span in found:
        spans.setdefault(visit, []).append(span)
    if not all(0 <= span <= MOST_SECONDS for _, span in found):
        raise damaged(profile.path, "a sample is of no time that anybody can have measured")
    return {
        visit: stdev(each) / mean
        for visit, each in spans.items()
        if len(each) > 1 and (mean := fmean(each)) > 0
    }


def summaries(raw: RawBlocks) -> list[Summary]:
    """Of all visits at once, in their order."""
    import numpy as np

    count_of_blocks = len(raw.starts)
    sizes = np.diff(np.append(raw.starts, len(raw.spans)))
    block = np.repeat(np.arange(count_of_blocks), sizes)
    kept = (raw.flags & VOID) == 0
    block, spans, batches = block[kept], raw.spans[kept], raw.repetitions[kept]
    counts = np.bincount(block, minlength=count_of_blocks)
    foreign = np.bincount(block[(raw.flags[kept] & SUMMARY) != 0], minlength=count_of_blocks) > 0
    order = np.lexsort((spans, block))
    ordered = spans[order]
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    ticks = _ticks(block, spans, batches, raw)
    found = []
    for n, (count, start) in enumerate(zip(counts.tolist(), first.tolist(), strict=True)):
        if not count:
            found.append(Summary(0))
            continue
        middle = _median(ordered, start, count)
        rank = None if foreign[n] else lower_rank(count)
        if rank is None:
            found.append(Summary(count, middle))
            continue
        low, high = float(ordered[start + rank - 1]), float(ordered[start + count - rank])
        tick = float(ticks[n])
        if high - low < tick:
            low = max(0.0, min(low, middle - tick / 2))
            high = max(high, middle + tick / 2)
        found.append(Summary(count, middle, low, high))
    return found


def _median(ordered: NDArray[float64], start: int, count: int) -> float:
    """As `waywiser.stats.order.median`, rounding included."""
    below = float(ordered[start + (count - 1) // 2])
    if count % 2:
        return below
    above = float(ordered[start + count // 2])
    return min(below + 0.5 * (above - below), above)


def _ticks(
    block: NDArray[int64], spans: NDArray[float64], batches: NDArray[float64], raw: RawBlocks
) -> NDArray[float64]:
    """As `waywiser.stats.resolution.tick`, of each block."""
    import numpy as np

    blocks = len(raw.starts)
    least_batch = np.full(blocks, np.inf)
    np.minimum.at(least_batch, block, batches)
    least_batch[~np.isfinite(least_batch) | (least_batch == 0)] = 1.0
    whole = spans * batches
    order = np.lexsort((whole, block))
    step = np.diff(whole[order])
    same = np.diff(block[order]) == 0
    seen = same & (step > SAME_SECONDS)
    least_step = np.full(blocks, np.inf)
    np.minimum.at(least_step, block[order][1:][seen], step[seen])
    least_step[np.isinf(least_step)] = EVENT_TICK_SECONDS
    ticks: NDArray[float64] = np.where(raw.host_timed, HOST_TICK_SECONDS, least_step) / least_batch
    return ticks
