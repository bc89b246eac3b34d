"""On which side of a machine its GPUs, its cores and blocks of its memory are, by measurement.

A hypervisor may hide that there are two sockets; latencies show it. From one block of memory the
GPUs of one socket are reached sooner than those of the other, from another block the other way
round. So what tells is not how long a GPU takes, which has many reasons, but that the latencies of
some GPUs *rise and fall together* from block to block.

**Groups.** Latencies are centred over the blocks of a worker (per GPU and round: what belongs to
the GPU, or to the core that asks, falls out) and over the GPUs (what belongs to the block falls
out). What is left is noise, or a pattern of rank one, blocks by GPUs: its share is the largest
eigenvalue of the GPUs' Gram matrix. How often it is as large when block labels are permuted within
each GPU and round, where only chance makes a pattern, is the p-value (a permutation test; Good,
*Permutation, Parametric and Bootstrap Tests of Hypotheses*, 2005). The GPUs are divided where the
pattern's signs divide them best, and two groups are told where p <= `P_LIMIT`, the groups lie
further apart than `LEAST_SEPARATION` of a latency, the mean silhouette (Rousseeuw, *Silhouettes*,
J. Comput. Appl. Math. 20, 1987) is at least `LEAST_SILHOUETTE`, and more than one pair of a block
and a GPU says so. Where all blocks are on one side
nothing changes from block to block; two groups are then told where the GPUs' levels alone lie
apart by `LEAST_LEVEL` and further than within each group, and said to be told by their level.

More than two groups are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from waywiser.records import BufferRecord, Locality
from waywiser.stats.cores import CoreVerdict, judge_cores
from waywiser.words import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PERMUTATIONS = 999
P_LIMIT = 0.01
LEAST_SEPARATION = 0.025
"""Of a latency: 0.15 us of 5.8, a quarter of what two sockets were seen to differ by, and half of
5 %, which is to be found: a threshold is met by half of what lies at it."""
LEAST_SILHOUETTE = 0.5
"""From there on Kaufman and Rousseeuw (*Finding Groups in Data*, 1990) call a structure
reasonable."""
LEAST_LEVEL = 0.05
"""Of a latency: GPUs of one kind differ by up to 0.2 us of 5.8 among themselves."""
LEVEL_FACTOR = 1.5
"""The gap between levels, over the range within either group."""
OUTLIER_DEVIATIONS = 5.0
"""Beyond so many robust standard deviations from its block's median a latency counts as that far:
somebody interrupted the copy."""
SEED = 1

By = Literal["blocks", "level", ""]


class BlockSide(Value, frozen=True):
    """One block of memory, as one worker found it."""

    worker: int
    memory: str
    block: int
    """From 0, in the order allocated."""
    side: int | None
    """Number of the group that is near; None where it is between the sides, or there are none."""
    margin_seconds: float
    """By which the other group takes longer."""


class Sides(Value, frozen=True):
    """What is known of the sides of a machine."""

    gpus: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    """One or two groups of GPUs, that of the lowest index first; none where nobody looked."""
    by: By
    """Whether latencies change together from block to block, or only their levels differ."""
    p_value: float | None
    """Of the pattern from block to block; None where there is but one GPU or block."""
    silhouette: float | None
    """Mean over GPUs, of the division that was found best, told or not."""
    near_seconds: float
    """Median latency of a small copy to GPUs of the block's side; without sides, to all."""
    far_seconds: float
    """To the others; 0 without sides."""
    blocks: tuple[BlockSide, ...]
    agreeing: int
    """Blocks from which alone the GPUs fall into the same two groups."""
    cores: CoreVerdict

    def group_of(self, gpu: int) -> int | None:
        """Number of the group that a GPU is in, where there are two."""
        if len(self.groups) != 2:
            return None
        return next((n for n, group in enumerate(self.groups) if gpu in group), None)

    def side_of(self, buffer: BufferRecord) -> int | None:
        """Number of the group that is near a buffer of a series; None where that is not known."""
        if len(self.groups) != 2 or len(buffer.gpu_seconds) != len(self.gpus):
            return None
        taken = dict(zip(self.gpus, buffer.gpu_seconds, strict=True))
        means = [sum(taken[gpu] for gpu in group) / len(group) for group in self.groups]
        difference = means[1] - means[0]
        if abs(difference) < (self.far_seconds - self.near_seconds) / 4:
            return None
        return 0 if difference > 0 else 1


def judge_sides(found: Iterable[Locality]) -> Sides | None:
    """The sides that the records of all workers show together; None without any record.

    Deterministic: the permutations are seeded.
    """
    records = [each for each in found if each.failure is None and each.blocks]
    if not records:
        return None
    timed = [each for each in records if each.gpus and all(b.copies for b in each.blocks)]
    gpus = max((each.gpus for each in timed), key=len, default=())
    timed = [each for each in timed if each.gpus == gpus]
    if not timed:
        cores = judge_cores(records, {})
        return Sides((), (), "", None, None, 0.0, 0.0, (), 0, cores)
    return _judged(records, timed, gpus)


def _judged(records: Sequence[Locality], timed: Sequence[Locality], gpus: tuple[int, ...]) -> Sides:
    import numpy as np

    cubes = [np.array([block.copies for block in each.blocks]) for each in timed]
    middles = [np.median(cube, axis=1) for cube in cubes]  # blocks by GPUs
    typical = float(np.median(np.concatenate([middle.ravel() for middle in middles])))
    split, by, p_value, silhouette, separation = _split(cubes, middles, typical)
    if split is None:
        known = [
            BlockSide(each.worker, each.memory, number, None, 0.0)
            for each in timed
            for number in range(len(each.blocks))
        ]
        cores = judge_cores(records, {})
        return Sides(gpus, (gpus,), "", p_value, silhouette, typical, 0.0, tuple(known), 0, cores)
    contrasts = [middle[:, split].mean(1) - middle[:, ~split].mean(1) for middle in middles]
    blocks = tuple(
        side
        for each, contrast in zip(timed, contrasts, strict=True)
        for side in _block_sides(each, contrast - _offset(contrast, separation), separation)
    )
    near, far = _near_and_far(np.concatenate(middles), split, [each.side for each in blocks])
    sides = {(each.worker, each.memory, each.block): each.side for each in blocks}
    first = tuple(gpu for gpu, other in zip(gpus, split, strict=True) if not other)
    second = tuple(gpu for gpu, other in zip(gpus, split, strict=True) if other)
    return Sides(
        gpus=gpus,
        groups=(first, second),
        by=by,
        p_value=p_value,
        silhouette=silhouette,
        near_seconds=near,
        far_seconds=far,
        blocks=blocks,
        agreeing=sum(_agrees(row, split) for middle in middles for row in middle),
        cores=judge_cores(records, sides),
    )


def _split(
    cubes: Sequence[Array], middles: Sequence[Array], typical: float
) -> tuple[Array | None, By, float | None, float | None, float]:
    """(which GPUs are in the second group, by, p, silhouette, separation in seconds)."""
    import numpy as np

    count = cubes[0].shape[2]
    p_value = silhouette = None
    if count >= 2 and any(len(cube) >= 2 for cube in cubes):
        centred = [_centred(cube) for cube in cubes]
        pattern = np.concatenate([_pattern(each, _reach(each)) for each in centred])
        p_value = _p_value(centred, _strength(pattern[None])[0])
        split = _best_division(np.linalg.svd(pattern)[2][0])
        silhouette = _silhouette(pattern.T, split)
        separation, witnesses = _separation(pattern, split)
        clear = witnesses >= 2 and (silhouette is None or silhouette >= LEAST_SILHOUETTE)
        if p_value <= P_LIMIT and separation >= LEAST_SEPARATION * typical and clear:
            return split, "blocks", p_value, silhouette, separation
    level = np.mean([np.median(middle, axis=0) for middle in middles], axis=0)
    split, gap, within = _widest_gap(level)
    enough = min(split.sum(), (~split).sum()) >= 2
    if enough and gap >= LEAST_LEVEL * typical and gap >= LEVEL_FACTOR * within:
        separation = abs(float(level[split].mean() - level[~split].mean()))
        return split, "level", p_value, silhouette, separation
    return None, "", p_value, silhouette, 0.0


def _pattern(cubes: Array, within: float) -> Array:
    """What is left of centred latencies [..., block, GPU, round] over the rounds when the mean over
    GPUs, per block, is taken away: [..., block, GPU].

    No latency weighs more than one ``within`` seconds from its block's median.
    """
    import numpy as np

    half = cubes.shape[-1] // 2
    middle = np.partition(cubes, half, axis=-1)[..., half, None]
    blocks = np.clip(cubes, middle - within, middle + within).mean(-1)
    pattern: Array = blocks - blocks.mean(-1, keepdims=True)
    return pattern


def _centred(cube: Array) -> Array:
    """Latencies [block, round, GPU] less their mean over blocks, per GPU and round: [block, GPU,
    round]."""
    import numpy as np

    centred: Array = cube - cube.mean(0, keepdims=True)
    return np.ascontiguousarray(centred.transpose(0, 2, 1))


def _reach(centred: Array) -> float:
    """Seconds from where on a latency is a far outlier, whatever block it is of."""
    import numpy as np

    spread = 1.4826 * float(np.median(np.abs(centred - np.median(centred, axis=0))))
    return OUTLIER_DEVIATIONS * max(spread, 1e-12)


def _strength(patterns: Array) -> Array:
    """Largest eigenvalue of each pattern's Gram matrix: [n, block, GPU] to [n]."""
    import numpy as np

    largest: Array = np.linalg.eigvalsh(patterns.transpose(0, 2, 1) @ patterns)[:, -1]
    return largest


def _p_value(centred: Sequence[Array], strength: float) -> float:
    """Permuted latencies go the whole way of the observed ones: clipped by the permuted blocks, and
    centred over GPUs only then. A clip by the observed blocks would leave a pattern behind where
    one GPU is noisier than others."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    shuffled = [
        _pattern(rng.permuted(np.broadcast_to(each, (PERMUTATIONS, *each.shape)), axis=1),
                 _reach(each))
        for each in centred
    ]  # fmt: skip
    by_chance = _strength(np.concatenate(shuffled, axis=1))
    return float((1 + (by_chance >= strength * (1 - 1e-9)).sum()) / (1 + PERMUTATIONS))


def _normal(split: Array) -> Array:
    """The group of the first GPU is the first group."""
    return ~split if split[0] else split


def _best_division(values: Array) -> Array:
    """Two groups of numbers with the least sum of squares within (one-dimensional 2-means)."""
    import numpy as np

    order = np.sort(values)
    cuts = (order[:-1] + order[1:]) / 2
    within = [
        ((values[values <= cut] - values[values <= cut].mean()) ** 2).sum()
        + ((values[values > cut] - values[values > cut].mean()) ** 2).sum()
        if (values <= cut).any() and (values > cut).any()
        else np.inf
        for cut in cuts
    ]
    return _normal(values > cuts[int(np.argmin(within))])


def _widest_gap(values: Array) -> tuple[Array, float, float]:
    """(split at the widest gap, the gap, the larger range of the two groups)."""
    import numpy as np

    if len(values) < 2:
        return np.zeros(len(values), dtype=bool), 0.0, 0.0
    order = np.sort(values)
    at = int(np.argmax(np.diff(order)))
    within = max(order[at] - order[0], order[-1] - order[at + 1])
    return _normal(values > order[at]), float(order[at + 1] - order[at]), float(within)


def _silhouette(points: Array, split: Array) -> float | None:
    """Mean over points, 0 for one alone in its group; None where both groups are of one."""
    import numpy as np

    if len(points) < 3:
        return None
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    widths = []
    for n, group in enumerate(split):
        own, other = split == group, split != group
        if own.sum() < 2:
            widths.append(0.0)
            continue
        inner = apart[n][own].sum() / (own.sum() - 1)
        outer = apart[n][other].mean()
        widths.append(float((outer - inner) / max(outer, inner, 1e-30)))
    return float(np.mean(widths))


def _separation(pattern: Array, split: Array) -> tuple[float, int]:
    """(seconds that a group is nearer to blocks of its own side than to others, pairs of a block
    and a GPU that say so at least)."""
    contrast = pattern[:, split].mean(1) - pattern[:, ~split].mean(1)
    upper = _best_division(contrast)
    apart = abs(float(contrast[upper].mean() - contrast[~upper].mean())) / 2
    blocks = min(int(upper.sum()), int((~upper).sum()))
    return apart, blocks * min(int(split.sum()), int((~split).sum()))


def _offset(contrast: Array, separation: float) -> float:
    """What the groups differ by without regard to the block, as far as blocks of both sides, seen
    by one worker, tell it."""
    low, high = float(contrast.min()), float(contrast.max())
    return (low + high) / 2 if high - low >= separation else 0.0


def _block_sides(record: Locality, contrast: Array, separation: float) -> Iterable[BlockSide]:
    for number, margin in enumerate(contrast):
        side = None if abs(margin) < separation / 4 else int(margin < 0)
        yield BlockSide(record.worker, record.memory, number, side, abs(float(margin)))


def _near_and_far(middles: Array, split: Array, sides: Sequence[int | None]) -> tuple[float, float]:
    """Median latencies of GPUs on the block's side, and on the other."""
    import numpy as np

    near, far = [], []
    for row, side in zip(middles, sides, strict=True):
        if side is not None:
            near.append(row[split if side else ~split])
            far.append(row[~split if side else split])
    if not near:
        return float(np.median(middles)), 0.0
    return float(np.median(np.concatenate(near))), float(np.median(np.concatenate(far)))


def _agrees(row: Array, split: Array) -> bool:
    alone, _, _ = _widest_gap(row)
    return bool((alone == split).all())
