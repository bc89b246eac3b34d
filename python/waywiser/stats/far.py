"""What being far costs, from processes that found near memory and far.

A process lands somewhere, and all that it measures lands with it: its curves are no replicates of
one another, and the process is one (Hoefler & Belli, SC'15). Where a process had memory on both
sides, as GPUs of both sides have who ask for the same memory, it tells the cost by itself: the
median of its far curves less that of its near ones, so that what made all of it slow falls out.
Where processes had one side each, those of one are held against those of the other. Either way the
interval is Student's (1908), over processes.

Which curves were near is chance, but processes may find the same ones near each time. Then what
these curves differ by anyhow is in every process's cost, and no number of processes tells it apart:
there is no interval unless half of the curves and more were near once and far once. Of patterns of
near and far curves each counts once, so that a pattern and its opposite cancel what curves differ
by.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from waywiser.stats.between import pooled
from waywiser.stats.order import Interval, median


class Found(NamedTuple):
    """What one process found: by curve, the logarithm of how much longer it took than usually."""

    near: Mapping[str, float]
    far: Mapping[str, float]


class FarCost(NamedTuple):
    """In logarithms of time, far over near."""

    difference: float
    interval: Interval | None
    """95 %; None where too few processes tell, or always the same curves were near."""


def far_cost(blocks: Sequence[Found]) -> FarCost | None:
    """Of the processes of one kind of transfer; None where none was near, or none far."""
    both = [block for block in blocks if block.near and block.far]
    found = _within(both) if len(both) > 1 else _across(blocks)
    return found if found is None or _turned(blocks) else FarCost(found.difference, None)


def _turned(blocks: Sequence[Found]) -> bool:
    """Whether half of the curves and more were both near and far."""
    near = {curve for block in blocks for curve in block.near}
    far = {curve for block in blocks for curve in block.far}
    return 2 * len(near & far) >= len(near | far)


def _within(blocks: Sequence[Found]) -> FarCost:
    """Each process tells the cost."""
    costs = [_level(block.far) - _level(block.near) for block in blocks]
    patterns: dict[Hashable, list[float]] = {}
    for block, cost in zip(blocks, costs, strict=True):
        patterns.setdefault((frozenset(block.near), frozenset(block.far)), []).append(cost)
    difference = _mean([_mean(found) for found in patterns.values()])
    variance = sum(1 / len(found) for found in patterns.values()) / len(patterns) ** 2
    return _told(difference, [costs], variance)


def _across(blocks: Sequence[Found]) -> FarCost | None:
    """Some processes were near, others far."""
    near = [_level(block.near) for block in blocks if block.near]
    far = [_level(block.far) for block in blocks if block.far]
    if not (near and far):
        return None
    return _told(_mean(far) - _mean(near), [near, far], 1 / len(near) + 1 / len(far))


def _told(difference: float, alike: Sequence[Sequence[float]], variance: float) -> FarCost:
    scatter = pooled(alike)
    if scatter is None:
        return FarCost(difference, None)
    return FarCost(difference, scatter.around(difference, variance))


def _level(curves: Mapping[str, float]) -> float:
    return median(list(curves.values()))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
