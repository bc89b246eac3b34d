"""How far a single time of another job is from the usual one.

A job differs from others at all its sizes and pairs: another part of the machine, other neighbours.
So times of one job are compared with the median of the *other* jobs, not with their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waywiser.stats.order import CONFIDENCE

Array = NDArray[Any]

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
