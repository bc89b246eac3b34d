"""The sides of a machine that its GPUs, its cores and blocks of its memory are on, by measurement.

A hypervisor may hide that there are two sockets; latencies show it. From one block of memory the
GPUs of one socket are reached sooner than those of the other, from another block the other way
round. The evidence is not how long a GPU takes, which has many reasons, but that the latencies of
some GPUs *rise and fall together* from block to block; `waywiser.stats.division` decides that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from waywiser.profile.block import BlockEstimate
from waywiser.profile.cores import CoreVerdict, decide_cores
from waywiser.profile.quality_flags import TARGET
from waywiser.stats import median
from waywiser.stats.division import By, divide, widest_gap
from waywiser.words import BufferRecord, Locality, Value, Visit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Nearness = Literal["local", "remote", "mixed", ""]
"""Whether the host memory of a visit was on the side of its GPUs."""


class BlockSide(Value, frozen=True):
    """One block of memory, as one worker found it."""

    worker: int
    memory: str
    block: int
    """Number from 0, in the order allocated."""
    side: int | None
    """Number of the group that is local; None if it is between the sides, or there are none."""
    margin_seconds: float
    """Seconds by which the other group takes longer."""


class Sides(Value, frozen=True):
    """What is known of the sides of a machine."""

    gpus: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    """One or two groups of GPUs, that of the lowest index first; none if it was not read."""
    by: By = ""
    """Whether latencies change together from block to block, or only their levels differ."""
    p_value: float | None = None
    """The p-value of the pattern from block to block; None if there is but one GPU or block."""
    silhouette: float | None = None
    """Mean over GPUs, of the division that was found best, shown or not."""
    local_seconds: float = msgspec.field(default=0.0, name="near_seconds")
    """Median latency of a small copy to GPUs of the block's side; without sides, to all."""
    remote_seconds: float = msgspec.field(default=0.0, name="far_seconds")
    """Seconds to the others; 0 without sides."""
    blocks: tuple[BlockSide, ...] = ()
    agreeing: int = 0
    """Blocks from which alone the GPUs fall into the same two groups."""
    cores: CoreVerdict = CoreVerdict("not determined")

    def group_of(self, gpu: int) -> int | None:
        """Number of the group that a GPU is in, if there are two."""
        if len(self.groups) != 2:
            return None
        return next((n for n, group in enumerate(self.groups) if gpu in group), None)

    def side_of(self, buffer: BufferRecord) -> int | None:
        """Number of the group that is local to a buffer of a series; None if that is not known."""
        if len(self.groups) != 2 or len(buffer.gpu_seconds) != len(self.gpus):
            return None
        seconds = buffer.gpu_seconds
        first, second = (
            sum([seconds[n] for n in positions]) / len(positions)
            for positions in _positions(self.gpus, self.groups)
        )
        difference = second - first
        if abs(difference) < (self.remote_seconds - self.local_seconds) / 4:
            return None
        return 0 if difference > 0 else 1


@lru_cache(maxsize=64)
def _positions(
    gpus: tuple[int, ...], groups: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """Where the GPUs of each group stand among all."""
    return tuple(tuple(gpus.index(gpu) for gpu in group) for group in groups)


def decide_sides(found: Iterable[Locality]) -> Sides | None:
    """The sides that the records of all workers show together; None without any record."""
    records = [each for each in found if each.failure is None and each.blocks]
    if not records:
        return None
    timed = [each for each in records if each.gpus and all(b.copies for b in each.blocks)]
    gpus = max((each.gpus for each in timed), key=len, default=())
    timed = [each for each in timed if each.gpus == gpus]
    if not timed:
        return Sides(cores=decide_cores(records, {}))
    return _decided(tuple(records), tuple(timed), gpus)


@lru_cache(maxsize=8)
def _decided(
    records: tuple[Locality, ...], timed: tuple[Locality, ...], gpus: tuple[int, ...]
) -> Sides:
    import numpy as np

    cubes = [np.array([block.copies for block in each.blocks]) for each in timed]
    middles = [np.median(cube, axis=1) for cube in cubes]  # blocks by GPUs
    typical = float(np.median(np.concatenate([middle.ravel() for middle in middles])))
    division = divide(cubes, middles, typical)
    split = division.split
    found = Sides(gpus=gpus, p_value=division.p_value, silhouette=division.silhouette)
    if split is None:
        return replace(
            found,
            groups=(gpus,),
            local_seconds=typical,
            blocks=tuple(_undivided(timed)),
            cores=decide_cores(records, {}),
        )
    blocks = tuple(
        side
        for each, middle in zip(timed, middles, strict=True)
        for side in _block_sides(each, middle, split, division.separation)
    )
    seen = [each.side for each in blocks]
    local, remote = _local_and_remote(np.concatenate(middles), split, seen)
    sides = {(each.worker, each.memory, each.block): each.side for each in blocks}
    return replace(
        found,
        groups=_groups(gpus, split),
        by=division.by,
        local_seconds=local,
        remote_seconds=remote,
        blocks=blocks,
        agreeing=sum(_agrees(row, split) for middle in middles for row in middle),
        cores=decide_cores(records, sides),
    )


def _undivided(records: Sequence[Locality]) -> Iterator[BlockSide]:
    """The blocks of a machine on which no sides differ."""
    for each in records:
        for number in range(len(each.blocks)):
            yield BlockSide(each.worker, each.memory, number, None, 0.0)


def _groups(gpus: tuple[int, ...], split: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The GPUs of both sides."""
    first, second = (
        tuple(gpu for gpu, is_other in zip(gpus, split, strict=True) if is_other == side)
        for side in (False, True)
    )
    return first, second


def _block_sides(
    record: Locality, middles: Array, split: Array, separation: float
) -> Iterator[BlockSide]:
    """The sides of the blocks that one worker saw; ``middles`` as [block, GPU]."""
    contrast = middles[:, split].mean(1) - middles[:, ~split].mean(1)
    for number, margin in enumerate(contrast - _offset(contrast, separation)):
        side = None if abs(margin) < separation / 4 else int(margin < 0)
        yield BlockSide(record.worker, record.memory, number, side, abs(float(margin)))


def _offset(contrast: Array, separation: float) -> float:
    """What the groups differ by without regard to the block, if blocks of both sides, seen
    by one worker, show it."""
    low, high = float(contrast.min()), float(contrast.max())
    return (low + high) / 2 if high - low >= separation else 0.0


def _local_and_remote(
    middles: Array, split: Array, sides: Sequence[int | None]
) -> tuple[float, float]:
    """Median latencies of GPUs on the block's side, and on the other."""
    import numpy as np

    local, remote = [], []
    for row, side in zip(middles, sides, strict=True):
        if side is not None:
            local.append(row[split if side else ~split])
            remote.append(row[~split if side else split])
    if not local:
        return float(np.median(middles)), 0.0
    return float(np.median(np.concatenate(local))), float(np.median(np.concatenate(remote)))


def _agrees(row: Array, split: Array) -> bool:
    alone, _, _ = widest_gap(row)
    return bool((alone == split).all())


def nearness(visit: Visit, sides: Sides | None) -> Nearness:
    """The nearness of the visit's transfers between host memory and a GPU; empty if that is
    unknown."""
    if sides is None:
        return ""
    found = set(_is_local(visit, sides))
    if len(found) > 1:
        return "mixed"
    return "" if not found else ("local" if found.pop() else "remote")


def _is_local(visit: Visit, sides: Sides) -> Iterator[bool]:
    if len(visit.buffers) != 2 * len(visit.workload.transfers):
        return
    if not any(buffer.gpu_seconds for buffer in visit.buffers):
        return  # as of most visits of most surveys
    for n, transfer in enumerate(visit.workload.copies):
        groups = [sides.group_of(p.index) for p in transfer.path.places if p.kind == "gpu"]
        buffers = visit.buffers[2 * n : 2 * n + 2]
        known = [side for buffer in buffers if (side := sides.side_of(buffer)) is not None]
        if len(groups) == len(known) == 1:
            yield groups[0] == known[0]


def local_and_remote(where: Mapping[int, Nearness], blocks: Iterable[BlockEstimate]) -> str:
    """How local and remote blocks of a series differ, in one line; empty if it has not both, or
    they differ by less than `TARGET`. ``where`` is the nearness of each block."""
    medians: dict[str, list[float]] = {"local": [], "remote": []}
    for each in blocks:
        if where.get(each.block, "") in medians:
            medians[where[each.block]].append(each.median)
    if not (medians["local"] and medians["remote"]):
        return ""
    local, remote = median(medians["local"]), median(medians["remote"])
    if abs(remote / local - 1) < TARGET:
        return ""
    return f"with its memory on the remote side it takes {remote / local - 1:+.1%}"
