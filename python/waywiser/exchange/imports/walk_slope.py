"""The time of one step, from the times of walks of several lengths.

A walk of page faults takes what it takes to begin and to end, and then a latency per step. Our
operation is that latency: the slope of a walk's time over its length, by least squares over the
lengths, one for each repetition.
"""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.exchange.imports.foreign_file import ForeignSeries
from waywiser.words import SUMMARY, Samples, Unsupported


def walk_of(walks: Sequence[tuple[ForeignSeries, int]]) -> ForeignSeries | Unsupported:
    """A series from (a set of repetitions, its steps) of walks that differ in length alone.

    The n-th sample is the slope over the n-th repetition of every length. `Unsupported` if there is
    one length only, or where walks did not become longer with their steps.
    """
    first = walks[0][0]
    steps = [count for _, count in walks]
    if len(set(steps)) < 2:
        return Unsupported(first.family, "walks of one length do not show what a step costs")
    rounds = min(len(walk.samples) for walk, _ in walks)
    slopes = [_slope(steps, [walk.samples.span[n] for walk, _ in walks]) for n in range(rounds)]
    if not slopes or min(slopes) <= 0:
        return Unsupported(first.family, "its walks did not take longer the more steps they had")
    flag = SUMMARY if any(flag & SUMMARY for walk, _ in walks for flag in walk.samples.flags) else 0
    note = f"seconds of a step: the slope over walks of {min(steps)} to {max(steps)} steps"
    return ForeignSeries(
        name=f"{first.family} of {min(steps)} to {max(steps)} steps",
        family=first.family,
        workload=first.workload,
        mode=first.mode,
        samples=Samples(
            span=tuple(slopes),
            repetitions=tuple(_fewest(walks, n) for n in range(rounds)),
            flags=(flag,) * rounds,
        ),
        notes=(*dict.fromkeys(each for walk, _ in walks for each in walk.notes), note),
    )


def _fewest(walks: Sequence[tuple[ForeignSeries, int]], n: int) -> int:
    """Executions batched into the n-th repetition of any length, at least."""
    return min(walk.samples.repetitions[n] for walk, _ in walks)


def _slope(steps: Sequence[int], seconds: Sequence[float]) -> float:
    middle = sum(steps) / len(steps)
    mean = sum(seconds) / len(seconds)
    above = sum((x - middle) * (y - mean) for x, y in zip(steps, seconds, strict=True))
    return above / sum((x - middle) ** 2 for x in steps)
