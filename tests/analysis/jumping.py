"""Pairs of equal curves whose blocks jump: in one process all sizes of a curve take longer or
shorter by the same, as where its memory lies on other pages.

    verdicts = [null_pair(seed, jump=0.05, blocks=2).verdict for seed in range(1000)]

Made of medians, without samples, so that thousands of pairs are asked in a second or two.
"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
from tests.analysis.subjects import SIZES, curve, postal, subject

from waywiser.analysis.related import Alike, Related, relate
from waywiser.analysis.subject import Curve
from waywiser.stats.order import Interval, median

NOISE = 0.002
"""Of each size of a block on its own."""
WITHIN = 0.0005
"""Half the width of a block's own interval."""
WAYS = ("pinned@numa:0 -> device@gpu:{} by copy-engine",
        "device@gpu:{} -> pinned@numa:0 by copy-engine")  # fmt: skip


def null_pair(
    seed: int,
    *,
    jump: float,
    blocks: int,
    pairs: int = 1,
    steady: float | None = None,
    slower: float = 1.0,
    sizes: tuple[int, ...] = SIZES[::2],
) -> Related:
    """There and back of one GPU in relation, among as many equal ``pairs`` as scatter alike.

    Blocks of a curve jump by a normal deviation of ``jump``; those of the other pairs by
    ``steady``, where that is given. The way there takes ``slower`` times as long: no null, then.
    """
    rng = np.random.default_rng((seed, blocks, pairs))
    curves = []
    for pair in range(pairs):
        by = jump if pair == 0 or steady is None else steady
        for way in WAYS:
            truth = slower if pair == 0 and way == WAYS[0] else 1.0
            curves.append(_jumped(_still(way.format(pair % 2), blocks, sizes), truth, by, rng))
    curves = _told_apart(curves)
    return relate(curves[0], curves[1], alike=Alike(curves))


@cache
def _still(text: str, blocks: int, sizes: tuple[int, ...]) -> Curve:
    (found,) = subject(curve(text, postal(5e-6, 50e9), sizes, blocks=blocks)).curves
    return found


def _told_apart(curves: list[Curve]) -> list[Curve]:
    """Curves are told by their text, and these are of more GPUs than the machine has."""
    return [msgspec.structs.replace(each, text=f"{each.text} {n}") for n, each in enumerate(curves)]


def _jumped(still: Curve, truth: float, jump: float, rng: np.random.Generator) -> Curve:
    first = still.points[0].estimate
    of_block = truth * np.exp(jump * rng.standard_normal(len(first.blocks)))
    points = []
    for point in still.points:
        exact = 5e-6 + point.bytes / 50e9
        own = np.exp(NOISE * rng.standard_normal(len(of_block)))
        middles = (exact * of_block * own).tolist()
        blocks = tuple(
            msgspec.structs.replace(
                block,
                median=middle,
                interval=Interval(middle * (1 - WITHIN), middle * (1 + WITHIN)),
            )
            for block, middle in zip(point.estimate.blocks, middles, strict=True)
        )
        estimate = msgspec.structs.replace(point.estimate, median=median(middles), blocks=blocks)
        line = msgspec.structs.replace(point.line, estimate=estimate)
        points.append(msgspec.structs.replace(point, line=line))
    return msgspec.structs.replace(still, points=tuple(points))
