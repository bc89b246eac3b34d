"""How far a single time of another job, or of another process, is from the usual one.

A job differs from others at all its sizes and pairs: another part of the machine, other neighbours.
So times of one job are compared with the median of the *other* jobs, not with their own. Of fewer
than `ENOUGH_JOBS` jobs some are alike by chance, so that the deviations of all curves count too.

Few processes of a survey show little of their own scatter. So their variance is pooled over
`NEIGHBOURHOOD` sizes to either side, and shrunk towards the usual one of all curves of the kind, as
if that had `USUAL_FREEDOM` degrees of freedom (Smyth, "Linear Models and Empirical Bayes Methods",
Statistical Applications in Genetics and Molecular Biology 3, 2004). Another survey deviates by
what processes show of it, as everywhere (`waywiser.stats.noise_model.share_beside_surveys`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waywiser.stats import CONFIDENCE, share_beside_surveys
from waywiser.stats.scatter import NEIGHBOURHOOD

Array = NDArray[Any]

MOST_JOBS = 1000
"""Jobs of one pair that a curve takes."""

ENOUGH_JOBS = 5
"""Jobs of a kind; fewer may be alike by chance, and those of the others count too."""

USUAL_FREEDOM = 4
"""Degrees of freedom that the usual variance of processes counts as."""

STANDARD_DEVIATIONS = 1.96
"""Deviations within which 95 % of normal values are."""

NEAR = 1
"""Sizes on either side whose deviations count as those of a size."""


def of_sizes(
    sizes: Sequence[Mapping[int, float]], job_of: Callable[[int], int]
) -> tuple[float, ...]:
    """For each size, of which times are given by block, the deviation that 95 % of times do not
    exceed, as a logarithm; empty with less than two jobs, which show none. A size that only one job
    has, as its neighbours do, has that of all sizes."""
    jobs = {job_of(block) for times in sizes for block in times}
    if len(jobs) < 2:
        return ()
    own = [_off(times, job_of) for times in sizes]
    known = [each for part in own for each in part]
    if not known:
        return ()
    found = []
    for n in range(len(own)):
        near = [each for part in own[max(0, n - NEAR) : n + NEAR + 1] for each in part]
        found.append(float(np.quantile(near or known, CONFIDENCE)))
    return tuple(found)


def with_others(
    scatters: Sequence[Sequence[float]],
    jobs: Sequence[int],
    sizes: Sequence[Sequence[Mapping[int, float]]],
) -> list[tuple[float, ...]]:
    """The scatter of the sizes of several curves of so many jobs. With fewer jobs than
    `ENOUGH_JOBS`, that of all these curves together counts for those that are missing, if it is
    larger. Blocks are numbered as `block_of` numbers them."""
    few = [n for n, count in enumerate(jobs) if 1 < count < ENOUGH_JOBS]
    off = [each for n in few for times in sizes[n] for each in _off(times, job_of)]
    found = [tuple(each) for each in scatters]
    if off:
        usual = float(np.quantile(off, CONFIDENCE))
        for n in few:
            missing = ENOUGH_JOBS - jobs[n]
            found[n] = tuple(
                max(own, math.sqrt((jobs[n] * own**2 + missing * usual**2) / ENOUGH_JOBS))
                for own in scatters[n]
            )
    return found


def of_processes(
    curves: Sequence[Sequence[Mapping[int, float]]], kinds: Sequence[Hashable]
) -> list[tuple[float, ...]]:
    """For each size of each curve, of which times are given by process, the deviation that 95 % of
    processes of another survey do not exceed, as a logarithm; empty if no curve of the kind was
    measured in two processes."""
    shown = [[_squares(times) for times in sizes] for sizes in curves]
    usual: dict[Hashable, list[float]] = {}
    for kind, sizes in zip(kinds, shown, strict=True):
        usual.setdefault(kind, []).extend(_typical(*each) for each in sizes if each[1])
    found: list[tuple[float, ...]] = []
    for kind, sizes in zip(kinds, shown, strict=True):
        if not usual[kind]:
            found.append(())
            continue
        prior = float(np.median(usual[kind]))
        found.append(tuple(_of_process(sizes, n, prior) for n in range(len(sizes))))
    return found


def _typical(squares: float, freedom: int) -> float:
    """A variance whose median over many is the variance itself (Wilson & Hilferty, "The
    Distribution of Chi-square", Proc. National Academy of Sciences 17, 1931)."""
    return squares / freedom / (1 - 2 / (9 * freedom)) ** 3


def _squares(times: Mapping[int, float]) -> tuple[float, int]:
    """(squares of logarithms around their mean, degrees of freedom)."""
    logs = np.log(np.array(list(times.values())))
    return float(np.sum((logs - logs.mean()) ** 2)), len(logs) - 1


def _of_process(sizes: Sequence[tuple[float, int]], at: int, prior: float) -> float:
    near = sizes[max(0, at - NEIGHBOURHOOD) : at + NEIGHBOURHOOD + 1]
    squares, freedom = sum(each for each, _ in near), sum(each for _, each in near)
    variance = (squares + USUAL_FREEDOM * prior) / (freedom + USUAL_FREEDOM)
    return STANDARD_DEVIATIONS * math.sqrt(variance * share_beside_surveys(1.0))


def block_of(pair: int, job: int) -> int:
    """The number of the block of a pair in a job."""
    return pair * MOST_JOBS + job


def job_of(block: int) -> int:
    """The job of such a block."""
    return block % MOST_JOBS


def _off(times: Mapping[int, float], job_of: Callable[[int], int]) -> list[float]:
    """How far each time is from the median of the other jobs."""
    by_job: dict[int, list[float]] = {}
    for block, seconds in times.items():
        by_job.setdefault(job_of(block), []).append(seconds)
    found: list[float] = []
    for job, own in by_job.items():
        others = [each for other, part in by_job.items() if other != job for each in part]
        if others:
            usual = float(np.median(others))
            found += np.abs(np.log(np.array(own) / usual)).tolist()
    return found
