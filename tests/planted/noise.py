"""Noise of real machines, to be put on synthetic ones: resampled from recorded profiles.

A recorded visit is kept as what it deviates by: each sample, in the order taken, from the median of
its block, and that block's median from the median of its series' blocks. A synthetic visit borrows
the deviations of one recorded visit whole, so that drift, autocorrelation, outliers, the number of
samples and why sampling stopped come along as they were. What hangs together stays together: all
synthetic curves of a block borrow from one recorded block, and all sizes of a curve, there, from
one recorded curve, each from the size next to it.

Borrowed from are curves of the same timing mode and executor, of as many transfers (one, or several
at once), that were measured near all sizes wanted.

With few blocks the median of blocks lies too near to each of them: of n independent deviations
about their mean only (n - 1)/n of the variance is left, which is given back by sqrt(n/(n - 1)).
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from kept import unpacked
from waywiser.profile import Profile
from waywiser.profile.block import counted
from waywiser.stats.order import median_interval
from waywiser.words import Stop, Workload
from waywiser.words.records import Series, Visit

RESULTS = Path(__file__).parents[2] / "docs" / "results"
LENDING = ("2026-11-20-h200", "2026-11-20-h200-catalogue")
"""The folders of results that lend: named, so that trials stay the same when others are added."""

EXECUTOR = "copy-engine"
"""That of the synthetic paths."""
MODE = "device"
"""How they are timed."""

NEAR = 4
"""A size is lent to sizes that are at most so many times as large or small."""

FEW_BYTES = 64
"""The size of the copies that locate a block of memory."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Donor:
    """One recorded visit as deviations; natural logarithms of ratios."""

    within: Array
    """Deviations of each sample from the block's median, in the order taken."""
    between: float
    """The deviation of the block's median from that of its series' blocks."""
    stop: Stop
    repetitions: tuple[int, ...]
    flags: tuple[int, ...]
    reach: tuple[float, float] | None
    """The interval of the median over the median; None without one."""

    @property
    def whole(self) -> Array:
        """Deviations of each sample from the series' median."""
        return self.within + self.between


@dataclass(frozen=True)
class Lender:
    """One recorded curve: of each size, in bytes of one transfer, its blocks."""

    together: bool
    """Several transfers at once."""
    blocks: dict[int, tuple[Donor, ...]]
    _nearest: dict[int, tuple[Donor, ...]] = field(default_factory=dict, repr=False)

    def near(self, size: int) -> tuple[Donor, ...]:
        """The blocks of the nearest size."""
        if size not in self._nearest:
            nearest = min(self.blocks, key=lambda each: _apart(each, size))
            self._nearest[size] = self.blocks[nearest]
        return self._nearest[size]

    def covers(self, sizes: Iterable[int]) -> bool:
        """Whether all of ``sizes`` have one near."""
        return all(any(_apart(own, size) <= NEAR for own in self.blocks) for size in sizes)


class Lot:
    """The curves of one recorded block, or of one recorded survey."""

    def __init__(self, lenders: Sequence[Lender]) -> None:
        self.lenders = lenders
        self._known: dict[tuple[bool, tuple[int, ...]], list[Lender]] = {}

    def that_cover(self, together: bool, sizes: tuple[int, ...]) -> list[Lender]:
        """Those that may lend to a curve of these sizes."""
        key = (together, sizes)
        if key not in self._known:
            self._known[key] = [
                each for each in self.lenders if each.together == together and each.covers(sizes)
            ]
        return self._known[key]

    def draw(self, rng: np.random.Generator, together: bool, sizes: tuple[int, ...]) -> Lender:
        """One of them, by lot."""
        lenders = self.that_cover(together, sizes)
        return lenders[int(rng.integers(len(lenders)))]


@dataclass
class Pool:
    """All that may be borrowed."""

    blocks: list[Lot] = field(default_factory=list)
    """Entries of each recorded block of a survey that has several: each curve with that block
    alone."""
    surveys: list[Lot] = field(default_factory=list)
    """Entries of each recorded survey of a machine that was surveyed again: each curve with all
    blocks, as they deviate from what all surveys of the machine say."""
    calls: list[Array] = field(default_factory=list)
    """Single copies of a few bytes from pinned memory to a GPU, from call to completion: of each
    from the median of its visit, in the order taken."""

    def block(self, rng: np.random.Generator) -> Lot:
        """One recorded block, by lot."""
        return self.blocks[int(rng.integers(len(self.blocks)))]

    def survey(self, rng: np.random.Generator) -> Lot:
        """One recorded survey, by lot."""
        return self.surveys[int(rng.integers(len(self.surveys)))]


@cache
def recorded() -> Pool:
    """The pool of all profiles that lend; read once."""
    pool = Pool()
    machines: dict[Path, list[list[Series]]] = defaultdict(list)
    files = [file for name in LENDING for file in sorted((RESULTS / name).rglob("*.wwp.xz"))]
    for file in files:
        known = list(_series(file))
        if any(len(series.visits) > 1 for series in known):
            machines[file.parent].append(known)
            pool.blocks += _blocks_of(known)
        for series in known:
            if _is_small_copy_to_gpu(series.workload):
                pool.calls += [_calls(visit) for visit in series.visits if visit.samples.host]
    for surveys in machines.values():
        if len(surveys) > 1:
            pool.surveys += _surveyed_again(surveys)
    return pool


def _blocks_of(known: Sequence[Series]) -> Iterator[Lot]:
    found: dict[int, list[tuple[Series, tuple[Donor, ...]]]] = defaultdict(list)
    for series in known:
        if len(series.visits) > 1:
            shifts = deviations([_middle(visit) for visit in series.visits])
            for visit, shift in zip(series.visits, shifts, strict=True):
                found[visit.block].append((series, (_donor(visit, shift),)))
    for lent in found.values():
        yield _lot(lent)


def _surveyed_again(surveys: Sequence[Sequence[Series]]) -> Iterator[Lot]:
    """Deviations of series that each of several surveys visited in two blocks and more."""
    by_identity = [{series.workload.identity: series for series in survey} for survey in surveys]
    found: list[list[tuple[Series, tuple[Donor, ...]]]] = [[] for _ in surveys]
    for identity in by_identity[0]:
        several = [survey[identity] for survey in by_identity if identity in survey]
        if len(several) < len(surveys) or min(len(each.visits) for each in several) < 2:
            continue
        visits = [visit for each in several for visit in each.visits]
        shifts = iter(deviations([_middle(visit) for visit in visits]))
        for into, each in zip(found, several, strict=True):
            donors = tuple(_donor(visit, next(shifts)) for visit in each.visits)
            into.append((each, donors))
    for lent in found:
        yield _lot(lent)


def _lot(lent: Iterable[tuple[Series, tuple[Donor, ...]]]) -> Lot:
    curves: dict[str, Lender] = {}
    for series, donors in lent:
        what = series.workload
        lender = curves.setdefault(what.curve, Lender(len(what.transfers) > 1, {}))
        lender.blocks[what.transfers[0].bytes] = donors
    return Lot(list(curves.values()))


def deviations(middles: Sequence[float]) -> list[float]:
    """Logarithms of each over their median, with the variance that the median took given back."""
    if len(middles) < 2:
        return [0.0] * len(middles)
    centre = median(middles)
    widen = math.sqrt(len(middles) / (len(middles) - 1))
    return [widen * math.log(middle / centre) for middle in middles]


def _series(file: Path) -> Iterator[Series]:
    """Those like the synthetic ones, with the visits that have samples that count."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Profile.open(unpacked(file, Path(folder) / "recorded.wwp")) as profile,
    ):
        rows = profile.rows_by_series()
        for identity, workload in profile.workloads_of(rows).items():
            transfers = workload.transfers
            if not transfers or any(t.path.executor != EXECUTOR for t in transfers):
                continue
            found = [profile.visit_of(row, workload) for row in rows[identity]]
            visits = [v for v in found if counted(v.samples)]
            if visits and visits[0].mode == MODE:
                yield Series(workload, tuple(visits))


def _middle(visit: Visit) -> float:
    return median([visit.samples.span[n] for n in counted(visit.samples)])


def _donor(visit: Visit, shift: float) -> Donor:
    samples = visit.samples
    rows = [n for n, span in enumerate(samples.span) if span > 0]
    spans = np.array([samples.span[n] for n in rows])
    middle = _middle(visit)
    interval = median_interval([samples.span[n] for n in counted(samples)])
    return Donor(
        within=np.log(spans / middle),
        between=shift,
        stop=visit.stop,
        repetitions=tuple(samples.repetitions[n] for n in rows) if samples.repetitions else (),
        flags=tuple(samples.flags[n] for n in rows) if samples.flags else (),
        reach=(interval.low / middle, interval.high / middle) if interval else None,
    )


def _is_small_copy_to_gpu(workload: Workload) -> bool:
    path = workload.transfers[0].path
    kinds = (path.source.kind, path.destination.kind)
    return len(workload.transfers) == 1 and kinds == ("pinned", "device") and (
        workload.bytes <= FEW_BYTES
    )  # fmt: skip


def _calls(visit: Visit) -> Array:
    seconds = np.array(visit.samples.host)
    return np.log(seconds / np.median(seconds))


def _apart(one: int, other: int) -> float:
    return max(one, other) / min(one, other)
