"""The noise of a recorded profile, for times that were not measured.

A process takes longer or shorter than others for many paths at once. So a new process is a random
mix of the recorded ones: their deviations from the mean of all processes, weighted with normal
numbers that are the same for all series. Deviations of a new process then have the variances and
the correlations of the recorded ones. Within a process, runs of consecutive recorded samples are
drawn with replacement (circular block bootstrap: Politis & Romano, 1992), so that outliers and
drift are as in the recording.

A workload without samples of its own gets the noise of the nearest recorded one: of its curve, else
of an equivalent one, else of the same executors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import geometric_mean
from typing import NamedTuple

import msgspec

from waywiser.curves import Classes
from waywiser.machine import Machine
from waywiser.profile import Profile, VisitRow
from waywiser.profile.block import counted
from waywiser.stats import median
from waywiser.words import Samples, Visit, Workload, grouped


class RecordedSeries(NamedTuple):
    """The visits of one workload that have samples, by block."""

    workload: Workload
    visits: tuple[Visit, ...]
    medians: tuple[float, ...]
    """Median seconds of each visit."""

    @property
    def seconds(self) -> float:
        """The geometric mean of the medians."""
        return geometric_mean(self.medians)

    @property
    def transfer_seconds(self) -> tuple[float, ...]:
        """The same of each transfer's own time; empty if they were not timed."""
        own = [own_medians(visit.samples) for visit in self.visits]
        if not all(own):
            return ()
        return tuple(geometric_mean(each) for each in zip(*own, strict=True))


class RecordedNoise:
    """What the samples of a profile deviate by."""

    def __init__(self, profile: Profile, machine: Machine) -> None:
        """``machine`` is that of the workloads that ask: it may have more GPUs than the
        profile's."""
        self._profile = profile
        self._classes = Classes(machine)
        self._known: dict[str, RecordedSeries | None] = {}
        self._nearest: dict[tuple[str, int], RecordedSeries | None] = {}

    def recorded(self, workload: Workload) -> RecordedSeries | None:
        """The samples of this very workload; None if there are none."""
        identity = workload.identity
        if identity not in self._known:
            rows = self._rows.get(identity, [])
            self._known[identity] = self._series(workload, rows) if rows else None
        return self._known[identity]

    def nearest(self, workload: Workload, processes: int = 1) -> RecordedSeries | None:
        """The series most like the workload that was measured in so many processes."""
        key = (workload.identity, processes)
        if key not in self._nearest:
            self._nearest[key] = self._found_nearest(workload, processes)
        return self._nearest[key]

    def _found_nearest(self, workload: Workload, processes: int) -> RecordedSeries | None:
        for kind in self._kinds(workload):
            known = self._by_kind.get(kind, ())
            for each in sorted(known, key=lambda one: _distance(one, workload)):
                if len(self._rows[each.identity]) < processes:
                    continue
                found = self.recorded(each)
                if found is not None and len(found.visits) >= processes:
                    return found
        return None

    def process_factor(self, workload: Workload, process: random.Random) -> float:
        """What a new process takes longer, as a factor. ``process`` is at the same state for all
        workloads of the process."""
        series = self.nearest(workload, processes=2)
        if series is None:
            return 1.0
        logs = [math.log(middle) for middle in series.medians]
        mean = sum(logs) / len(logs)
        weights = {block: process.gauss(0.0, 1.0) for block in range(self._blocks)}
        mixed = sum(
            weights[visit.block] * (log - mean)
            for visit, log in zip(series.visits, logs, strict=True)
        )
        return math.exp(mixed / math.sqrt(len(logs) - 1))

    @cached_property
    def _rows(self) -> dict[str, list[VisitRow]]:
        """The visits with samples, by the identity of their series."""
        known = self._profile.rows_by_series()
        usable = {key: [row for row in rows if row.samples] for key, rows in known.items()}
        return {key: rows for key, rows in usable.items() if rows}

    @cached_property
    def _blocks(self) -> int:
        """One more than the largest number of a process."""
        return 1 + max((row.block for rows in self._rows.values() for row in rows), default=0)

    @cached_property
    def _by_kind(self) -> Mapping[Hashable, Sequence[Workload]]:
        known = self._profile.workloads_of(self._rows).values()
        return grouped((kind, each) for each in known for kind in self._kinds(each))

    def _kinds(self, workload: Workload) -> Iterator[Hashable]:
        """What it has in common with others, the nearest first."""
        yield workload.curve
        yield self._classes.key(workload)
        if workload.kind != "operation":
            yield workload.kind == "set", workload.methods
            yield workload.kind == "set"

    def _series(self, workload: Workload, rows: Sequence[VisitRow]) -> RecordedSeries | None:
        known = [self._profile.visit_of(row, workload) for row in rows]
        visits = tuple(visit for visit in known if middle_of(visit.samples) > 0)
        medians = tuple(middle_of(visit.samples) for visit in visits)
        return RecordedSeries(workload, visits, medians) if visits else None


def drawn(samples: Samples, rng: random.Random) -> Samples:
    """As many samples, in runs of consecutive ones, drawn with replacement."""
    n = len(samples)
    run = math.ceil(math.sqrt(n))
    rows = [
        (start + step) % n
        for start in (rng.randrange(n) for _ in range(math.ceil(n / run)))
        for step in range(run)
    ][:n]
    columns = msgspec.structs.asdict(samples)
    return Samples(
        **{name: tuple(c[row] for row in rows) if c else () for name, c in columns.items()}
    )


def middle_of(samples: Samples) -> float:
    """The median of the samples that count; 0 if none does."""
    spans = [samples.span[n] for n in counted(samples)]
    return median(spans) if spans else 0.0


def own_medians(samples: Samples) -> tuple[float, ...]:
    """The median of each transfer's own time; empty if they were not timed."""
    return tuple(median(each) for each in zip(*samples.transfers, strict=True))


def _distance(one: Workload, other: Workload) -> tuple[float, int]:
    """How far two sizes are apart, and the numbers of transfers."""
    sizes = [max(each.bytes / max(len(each.transfers), 1), 1.0) for each in (one, other)]
    return abs(math.log(sizes[0] / sizes[1])), abs(len(one.transfers) - len(other.transfers))
