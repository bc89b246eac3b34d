"""What memory on the remote side costs, from processes that found memory on both sides.

All that a process measures shares its memory, so the process is the replicate and its curves are
not (Hoefler & Belli, SC'15). If processes had memory on both sides, each shows the cost by itself:
the median of its far curves less that of its near ones, so that what made all of it slow cancels.
If processes had one side each, those of one are compared with those of the other.

Which curves were near is chance, but processes may find the same ones near each time. Then what
these curves differ by anyhow is in every process's cost, and no number of processes separates it:
the noise is not known unless at least half of the curves were near once and far once. Of patterns
of near and far curves each counts once, so that a pattern and its opposite cancel what curves
differ by.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from waywiser.stats.decision import Effect
from waywiser.stats.noise_model import Surveys, Variance, combined, process_variance
from waywiser.stats.order import median


class SidesOfProcess(NamedTuple):
    """What one process found: by curve, the logarithm of how much longer it took than usually."""

    near: Mapping[str, float]
    far: Mapping[str, float]


def remote_penalty(processes: Sequence[SidesOfProcess]) -> Effect | None:
    """Remote over local time, of one kind of transfer; None if none was local, or none remote."""
    both = [each for each in processes if each.near and each.far]
    found = _within(both) if len(both) > 1 else _across(processes)
    if found is None or _turned(processes):
        return found
    return found._replace(variance=Variance(found.variance.value, 0.0))


def _turned(processes: Sequence[SidesOfProcess]) -> bool:
    """Whether half of the curves and more were both near and far."""
    near = {curve for each in processes for curve in each.near}
    far = {curve for each in processes for curve in each.far}
    return 2 * len(near & far) >= len(near | far)


def _within(processes: Sequence[SidesOfProcess]) -> Effect:
    """Each process shows the cost."""
    costs = [_level(each.far) - _level(each.near) for each in processes]
    patterns: dict[Hashable, list[float]] = {}
    for each, cost in zip(processes, costs, strict=True):
        patterns.setdefault((frozenset(each.near), frozenset(each.far)), []).append(cost)
    difference = fmean([fmean(found) for found in patterns.values()])
    weight = sum(1 / len(found) for found in patterns.values()) / len(patterns) ** 2
    return _effect(difference, [costs], weight)


def _across(processes: Sequence[SidesOfProcess]) -> Effect | None:
    """Some processes were near, others far."""
    near = [_level(each.near) for each in processes if each.near]
    far = [_level(each.far) for each in processes if each.far]
    if not (near and far):
        return None
    return _effect(fmean(far) - fmean(near), [near, far], 1 / len(near) + 1 / len(far))


def _effect(difference: float, alike: Sequence[Sequence[float]], weight: float) -> Effect:
    sides = [Surveys((tuple(values),)) for values in alike]
    return Effect(difference, combined([(weight, process_variance(sides, 0.0))]))


def _level(curves: Mapping[str, float]) -> float:
    return median(list(curves.values()))
