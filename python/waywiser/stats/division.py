"""Whether GPUs fall into two groups, by what blocks of memory are to each of them.

Latencies are centred over the blocks of a worker (per GPU and round: what belongs to the GPU, or to
the core that asks, falls out) and over the GPUs (what belongs to the block falls out). What is left
is noise, or a pattern of rank one, blocks by GPUs: its share is the largest eigenvalue of the GPUs'
Gram matrix. How often it is as large when block labels are permuted within each GPU and round,
where only chance makes a pattern, is the p-value (a permutation test; Good, *Permutation,
Parametric and Bootstrap Tests of Hypotheses*, 2005). The GPUs are divided where the pattern's signs
divide them best, and two groups are shown if p <= `P_LIMIT`, the groups lie further apart than
`LEAST_SEPARATION` of a latency, the mean silhouette (Rousseeuw, *Silhouettes*, J. Comput. Appl.
Math. 20, 1987) is at least `LEAST_SILHOUETTE`, and more than one pair of a block and a GPU says so.

If all blocks are on one side, nothing changes from block to block; two groups are then shown if
the GPUs' levels alone lie apart by `LEAST_LEVEL` and further than within each group, and said to be
shown by their level.

More than two groups are not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from waywiser.stats.order import NORMAL_SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PERMUTATIONS = 999
P_LIMIT = 0.01
LEAST_SEPARATION = 0.025
"""Least separation, relative to a latency: 0.15 us of 5.8, a quarter of what two sockets were seen
to differ by, and half of 5 %, which is to be found: a threshold is met by half of what lies at
it."""
LEAST_SILHOUETTE = 0.5
"""The silhouette from which on Kaufman and Rousseeuw (*Finding Groups in Data*, 1990) call a
structure reasonable."""
LEAST_LEVEL = 0.05
"""Least difference of levels, relative to a latency: GPUs of one kind differ by up to 0.2 us of 5.8
among themselves."""
LEVEL_FACTOR = 1.5
"""The gap between levels, over the range within either group."""
OUTLIER_DEVIATIONS = 5.0
"""Robust standard deviations from its block's median beyond which a latency counts as that far:
something interrupted the copy."""
SEED = 1

By = Literal["blocks", "level", ""]


class Division(NamedTuple):
    """A division of GPUs into two groups, by their latencies."""

    split: Array | None
    """Which GPUs are in the second group; None if two are not shown."""
    by: By
    p_value: float | None
    """The p-value of the pattern from block to block; None if there is but one GPU or block."""
    silhouette: float | None
    """Mean over GPUs, of the division that was found best, shown or not."""
    separation: float
    """Seconds by which a group is nearer to blocks of its own side; 0 without groups."""


def divide(cubes: Sequence[Array], middles: Sequence[Array], typical: float) -> Division:
    """Divides GPUs by the latencies that each worker saw, in seconds.

    ``cubes`` has them per worker as [block, round, GPU], ``middles`` their medians over rounds,
    ``typical`` is the median of those. Deterministic: the permutations are seeded.
    """
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
            return Division(split, "blocks", p_value, silhouette, separation)
    level = np.mean([np.median(middle, axis=0) for middle in middles], axis=0)
    split, gap, within = widest_gap(level)
    enough = min(split.sum(), (~split).sum()) >= 2
    if enough and gap >= LEAST_LEVEL * typical and gap >= LEVEL_FACTOR * within:
        separation = abs(float(level[split].mean() - level[~split].mean()))
        return Division(split, "level", p_value, silhouette, separation)
    return Division(None, "", p_value, silhouette, 0.0)


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
    """Seconds from where on a latency is an outlier, whatever block it is of."""
    import numpy as np

    spread = NORMAL_SCALE * float(np.median(np.abs(centred - np.median(centred, axis=0))))
    return OUTLIER_DEVIATIONS * max(spread, 1e-12)


def _strength(patterns: Array) -> Array:
    """Largest eigenvalue of each pattern's Gram matrix: [n, block, GPU] to [n]."""
    import numpy as np

    return np.linalg.eigvalsh(patterns.transpose(0, 2, 1) @ patterns)[:, -1]


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


def widest_gap(values: Array) -> tuple[Array, float, float]:
    """(split at the widest gap, the gap, the larger range of the two groups)."""
    import numpy as np

    if len(values) < 2:
        return np.zeros(len(values), dtype=bool), 0.0, 0.0
    order = np.sort(values)
    at = int(np.argmax(np.diff(order)))
    within = max(order[at] - order[0], order[-1] - order[at + 1])
    return _normal(values > order[at]), float(order[at + 1] - order[at]), float(within)


def _silhouette(points: Array, split: Array) -> float | None:
    """Mean over points, 0 for one alone in its group; None if both groups are of one."""
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
