"""What memory on the remote side costs, from processes that found memory on both sides.

All that a process measures shares its memory, so the process is the replicate and its curves are
not (Hoefler & Belli, SC'15). If processes had memory on both sides, each shows the cost by itself:
the median of its remote curves less that of its local ones, so that what made all of it slow
cancels. If processes had one side each, those of one are compared with those of the other.

Which curves were local is chance, but processes may find the same ones local each time. Then what
these curves differ by anyhow is in every process's cost, and no number of processes separates it:
the noise is not known unless at least half of the curves were local once and remote once. Of
patterns of local and remote curves each counts once, so that a pattern and its opposite cancel what
curves differ by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from waywiser.stats.decision import Effect
from waywiser.stats.level_shift import returned_from_none
from waywiser.stats.noise_model import Variance, combined, process_variance, with_shift
from waywiser.stats.order import median
from waywiser.words import grouped


class SidesOfProcess(NamedTuple):
    """What one process found: by curve, the logarithm of how much longer it took than usually."""

    local: Mapping[str, float]
    remote: Mapping[str, float]


def remote_penalty(processes: Sequence[SidesOfProcess]) -> Effect | None:
    """Remote over local time, of one kind of transfer; None if none was local, or none remote."""
    both = [each for each in processes if each.local and each.remote]
    found = _within(both) if len(both) > 1 else _across(processes)
    if found is None or _turned(processes):
        return found
    return found._replace(variance=Variance(found.variance.value, 0.0))


def _turned(processes: Sequence[SidesOfProcess]) -> bool:
    """Whether half of the curves and more were both local and remote."""
    local = {curve for each in processes for curve in each.local}
    remote = {curve for each in processes for curve in each.remote}
    return 2 * len(local & remote) >= len(local | remote)


def _within(processes: Sequence[SidesOfProcess]) -> Effect:
    """Each process shows the cost."""
    costs = [_level(each.remote) - _level(each.local) for each in processes]
    sides = ((frozenset(each.local), frozenset(each.remote)) for each in processes)
    patterns = grouped(zip(sides, costs, strict=True))
    difference = fmean([fmean(found) for found in patterns.values()])
    weight = sum(1 / len(found) for found in patterns.values()) / len(patterns) ** 2
    found = _effect(difference, [costs], weight)
    return found._replace(variance=with_shift(found.variance, returned_from_none(costs)))


def _across(processes: Sequence[SidesOfProcess]) -> Effect | None:
    """Some processes were local, others remote."""
    local = [_level(each.local) for each in processes if each.local]
    remote = [_level(each.remote) for each in processes if each.remote]
    if not (local and remote):
        return None
    return _effect(fmean(remote) - fmean(local), [local, remote], 1 / len(local) + 1 / len(remote))


def _effect(difference: float, groups: Sequence[Sequence[float]], weight: float) -> Effect:
    return Effect(difference, combined([(weight, process_variance(groups, 0.0))]))


def _level(curves: Mapping[str, float]) -> float:
    return median(list(curves.values()))
