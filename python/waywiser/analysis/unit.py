"""What is compared: one curve's sizes of one regime, before and after, block by block.

The sizes of a curve are measured by one process after the other, on the same buffers: they are not
independent of each other, but together they say better how much a path scatters than one size
does. So they are judged together, within the regimes in which different things set the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from waywiser.analysis.related import RATE_BYTES, START_BYTES
from waywiser.stats.order import median
from waywiser.stats.series_summary import BlockSummary, SeriesSummary
from waywiser.words import TimingMode, Workload

Regime = Literal["operation", "latency", "between", "rate"]

STEADY_EXECUTOR = "copy-engine"
FICKLE_KINDS = {"managed", "file", "mapped"}
STEADY_KINDS = {"pinned", "device", "write-combined"}

LEAST_CORRELATION = 0.25
"""Between the deviations of two sizes of a curve in one block, however little was seen: they share
buffers and a process."""

CURVES_FOR_CORRELATION = 5
"""With fewer curves to tell it by, sizes are taken to move together."""

LEAST_VARIANCE = 1e-8
"""Of a logarithm: a hundredth of a per cent. Clocks and timers do not agree by more."""

_Z = 1.96
_MEDIAN = 1.2533
"""Times the deviation of a normal sample, over the root of how many: that of their median."""


Habit = Literal["steady", "ordinary", "fickle"]
"""``steady``: page-locked and device memory, contiguous, by copy engines that devices time, caches
as they are. ``fickle``: operations, managed memory and files, which one process may find a hundred
times slower than another. ``ordinary``: the rest."""


Company = Literal["", "devices", "host", "host together"]
"""What steady paths share: nothing of the host, whose work reaches none of them; the host's memory,
each by itself; or that with others at the same time, which is where a busy host shows most. Empty
for the others, which all need the host."""


class Kin(NamedTuple):
    """Units that scatter alike, as far as one can say beforehand."""

    mode: TimingMode
    regime: Regime
    executor: str
    """Who moves the bytes; empty for an operation."""
    habit: Habit
    company: Company = ""


class Pair(NamedTuple):
    """One series before and after: logarithms of the medians of its blocks."""

    workload: Workload
    text: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    within: float
    """Variance of a block's median within the block, the mean over blocks."""
    sampled: float
    """Standard deviation of single samples, about; the median over blocks that tell it, 0 where
    none does."""
    foreign: bool = False
    """A block is another tool's."""

    @property
    def difference(self) -> float:
        """Above 0 where it takes longer now."""
        return median(self.after) - median(self.before)

    @property
    def freedom(self) -> int:
        return len(self.before) + len(self.after) - 2

    @property
    def deviations(self) -> tuple[float, ...]:
        """Of each block from the mean of its side; of sides with several."""
        return tuple(
            value - sum(side) / len(side)
            for side in (self.before, self.after)
            if len(side) > 1
            for value in side
        )

    @property
    def jumps(self) -> tuple[float, ...]:
        """How far apart the blocks of each side are; of sides with several."""
        return tuple(max(side) - min(side) for side in (self.before, self.after) if len(side) > 1)

    @property
    def variance(self) -> float:
        """Of one block, pooled over both sides; never below what samples alone would make."""
        squares = sum(_squares(side) for side in (self.before, self.after))
        return max(squares / self.freedom, self.within, LEAST_VARIANCE)


class Unit:
    """The pairs of one curve in one regime, the smallest first."""

    def __init__(self, curve: str, kin: Kin, pairs: Sequence[Pair]) -> None:
        self.curve = curve
        self.kin = kin
        self.pairs = pairs

    @property
    def blocks(self) -> tuple[int, int]:
        """Before and after, as most of its sizes have them."""
        before = sorted(len(pair.before) for pair in self.pairs)
        after = sorted(len(pair.after) for pair in self.pairs)
        return before[len(before) // 2], after[len(after) // 2]

    @property
    def replicated(self) -> bool:
        """Whether some size has two blocks on a side."""
        return any(pair.freedom > 0 for pair in self.pairs)

    def freedom(self, correlation: float) -> float:
        """Degrees of freedom of `variance`, for sizes whose deviations in one block correlate so:
        those of one size, if they all do the same, and of all together, if each does its own
        (variances of variables that correlate by r correlate by r squared)."""
        known = [pair.freedom for pair in self.pairs if pair.freedom > 0]
        if not known:
            return 0.0
        return sum(known) / (1 + (len(known) - 1) * correlation**2)

    def share(self, correlation: float) -> float:
        """Of the variance of one size, what is left in the middle one over sizes (for a median of
        independent values pi / 2n, as far as they are)."""
        count = len(self.pairs)
        return min(1.0, correlation + (1 - correlation) * math.pi / 2 / count)

    @cached_property
    def size_jumps(self) -> tuple[float, ...]:
        """Of all its sizes."""
        return tuple(jump for pair in self.pairs for jump in pair.jumps)

    @cached_property
    def jumps(self) -> tuple[float, ...]:
        """As of a pair: of the middle over sizes, on each side whose sizes have equal blocks."""
        found = []
        for sides in ([p.before for p in self.pairs], [p.after for p in self.pairs]):
            if len(sides[0]) > 1 and len({len(side) for side in sides}) == 1:
                centred = [[value - side[0] for value in side] for side in sides]
                blocks = [median(block) for block in zip(*centred, strict=True)]
                found.append(max(blocks) - min(blocks))
        return tuple(found)

    @cached_property
    def difference(self) -> float:
        """The middle one over its sizes."""
        return median([pair.difference for pair in self.pairs])

    @cached_property
    def variance(self) -> float:
        """Of one block, the mean over sizes: were they all moved by the same, it would be that.

        Raises ValueError where no size has two blocks on a side.
        """
        known = [pair.variance for pair in self.pairs if pair.freedom > 0]
        if not known:
            raise ValueError("one block a side has no variance")
        return sum(known) / len(known)

    @property
    def sampled(self) -> float:
        """Of single samples, the middle one over sizes."""
        return median([pair.sampled for pair in self.pairs])

    @property
    def foreign(self) -> bool:
        """Whether a block of it is another tool's."""
        return any(pair.foreign for pair in self.pairs)


def units_of(
    before: Mapping[str, Sequence[SeriesSummary]], after: Mapping[str, Sequence[SeriesSummary]]
) -> list[Unit]:
    """Of all series that have blocks on both sides, by curve; ``before`` and ``after`` by
    identity, with a digest from each file."""
    pairs: dict[tuple[str, Kin], list[Pair]] = {}
    for identity, old in before.items():
        new = after.get(identity, ())
        blocks = [block for digest in old for block in digest.blocks]
        further = [block for digest in new for block in digest.blocks]
        if blocks and further:
            kin = kin_of(old[0].workload, blocks[0].mode)
            pairs.setdefault((old[0].curve, kin), []).append(_pair(old[0], blocks, further))
    return [Unit(curve, kin, found) for (curve, kin), found in pairs.items()]


def kin_of(workload: Workload, mode: TimingMode) -> Kin:
    executors = sorted({transfer.path.executor for transfer in workload.transfers})
    habit = habit_of(workload, mode)
    company = company_of(workload) if habit == "steady" else ""
    return Kin(mode, regime_of(workload), " ".join(executors), habit, company)


def company_of(workload: Workload) -> Company:
    if all(place.kind == "gpu" for place in workload.places):
        return "devices"
    return "host" if len(workload.transfers) == 1 else "host together"


def habit_of(workload: Workload, mode: TimingMode) -> Habit:
    """From what it moves, and who moves and times it."""
    kinds = {
        memory.kind
        for transfer in workload.transfers
        for memory in (transfer.path.source, transfer.path.destination)
    }
    if workload.operation is not None or kinds & FICKLE_KINDS:
        return "fickle"
    by_engines = all(
        transfer.layout is None and transfer.path.executor == STEADY_EXECUTOR
        for transfer in workload.transfers
    )
    steady = by_engines and kinds <= STEADY_KINDS and workload.cache == "warm"
    return "steady" if steady and mode == "device" else "ordinary"


def regime_of(workload: Workload) -> Regime:
    """By the bytes of its largest transfer."""
    if workload.operation is not None:
        return "operation"
    largest = max(transfer.bytes for transfer in workload.transfers)
    if largest < START_BYTES:
        return "latency"
    return "between" if largest < RATE_BYTES else "rate"


def correlation_of(units: Sequence[Unit]) -> float:
    """Between the deviations of two sizes of a curve in one block, pooled over units that are
    alike; at least `LEAST_CORRELATION`."""
    together = alone = 0.0
    curves = 0
    for unit in units:
        columns = [deviations for pair in unit.pairs if (deviations := pair.deviations)]
        columns = [column for column in columns if len(column) == len(columns[0])]
        count = len(columns)
        if count < 2:
            continue
        curves += 1
        own = sum(value**2 for column in columns for value in column)
        sums = [sum(block) for block in zip(*columns, strict=True)]
        together += (sum(value**2 for value in sums) - own) / (count * (count - 1))
        alone += own / count
    if curves < CURVES_FOR_CORRELATION or alone <= 0:
        return 1.0
    return min(1.0, max(LEAST_CORRELATION, together / alone))


def _pair(
    digest: SeriesSummary, before: Sequence[BlockSummary], after: Sequence[BlockSummary]
) -> Pair:
    both = (*before, *after)
    widths = [_deviation(block) for block in both]
    samples = [
        width * math.sqrt(block.count) / _MEDIAN
        for width, block in zip(widths, both, strict=True)
        if width > 0
    ]
    return Pair(
        digest.workload,
        digest.text or str(digest.workload),
        tuple(math.log(block.median) for block in before),
        tuple(math.log(block.median) for block in after),
        sum(width**2 for width in widths) / len(widths),
        median(samples) if samples else 0.0,
        any(block.foreign for block in both),
    )


def _deviation(block: BlockSummary) -> float:
    """Of the block's median, relative, as its interval tells, or else its spread; 0 where it has
    neither."""
    if block.low is None or block.high is None:
        return _MEDIAN * block.spread / math.sqrt(block.count)
    return (block.high - block.low) / 2 / _Z / block.median


def _squares(values: Iterable[float]) -> float:
    kept = list(values)
    mean = sum(kept) / len(kept)
    return sum((value - mean) ** 2 for value in kept)
