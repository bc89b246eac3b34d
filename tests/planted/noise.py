"""Noise of real machines, to be put on synthetic ones: resampled from recorded profiles.

A recorded visit is kept as what it deviates by: each sample, in the order taken, from the median of
its block, and that block's median from the median of its series' blocks. A synthetic visit borrows
the deviations of one recorded visit whole, so that drift, autocorrelation, outliers, the number of
samples and why sampling stopped come along as they were. All synthetic series of one block borrow
from the visits of one recorded block, so that what a whole block had in common stays common.

Borrowed from are visits of the same timing mode, of as many transfers (one, or several at once),
of like size and by the same executor.

With few blocks the median of blocks lies too near to each of them: of n independent deviations
about their mean only (n - 1)/n of the variance is left, which is given back by sqrt(n/(n - 1)).
"""

from __future__ import annotations

import lzma
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from waywiser.profile import Profile
from waywiser.records import Series, Visit
from waywiser.stats.block import counted
from waywiser.stats.order import median_interval
from waywiser.words import Stop, TimingMode, Workload

RESULTS = Path(__file__).parents[2] / "docs" / "results"
EXECUTOR = "copy-engine"
"""That of the synthetic paths."""

SIZE_CLASSES = (("small", 2**16), ("middle", 2**24), ("large", 2**62))
"""Name, and the size below which it is: latency, the way between, bandwidth."""

FEW_BYTES = 64
"""As many as are copied to see how near a block of memory is."""

Array = NDArray[np.float64]
Class = tuple[str, str, str]


def size_class(size: int) -> str:
    """``size`` in bytes, of one transfer."""
    return next(name for name, below in SIZE_CLASSES if size < below)


def class_of(workload: Workload, mode: TimingMode) -> Class:
    """(timing mode, alone or together, size class)."""
    together = "together" if len(workload.transfers) > 1 else "alone"
    return mode, together, size_class(workload.transfers[0].bytes)


@dataclass(frozen=True)
class Donor:
    """One recorded visit as deviations; natural logarithms of ratios."""

    within: Array
    """Of each sample from the block's median, in the order taken."""
    between: float
    """Of the block's median from that of its series' blocks; 0 for a block alone."""
    stop: Stop
    repetitions: tuple[int, ...]
    flags: tuple[int, ...]

    reach: tuple[float, float] | None
    """From where to where the interval of the median goes, over the median; None without one."""

    @property
    def whole(self) -> Array:
        """Of each sample from the series' median."""
        return self.within + self.between


@dataclass
class Pool:
    """All that may be borrowed."""

    blocks: list[dict[Class, list[Donor]]] = field(default_factory=list)
    """Of each recorded block of a survey that has several."""
    surveys: list[dict[Class, list[list[Donor]]]] = field(default_factory=list)
    """Of each recorded survey of a machine that was surveyed again: the blocks of each series, as
    they deviate from what all surveys of the machine say."""
    calls: list[Array] = field(default_factory=list)
    """Single copies of a few bytes from pinned memory to a GPU, from call to completion: of each
    from the median of its visit, in the order taken."""

    def block(self, rng: np.random.Generator) -> dict[Class, list[Donor]]:
        """One recorded block, by lot."""
        return self.blocks[int(rng.integers(len(self.blocks)))]

    def donors(self, kind: Class) -> list[Donor]:
        """Of all recorded blocks together."""
        return [donor for block in self.blocks for donor in block.get(kind, ())]


@cache
def recorded(results: Path = RESULTS) -> Pool:
    """The pool of all profiles in ``results``; read once."""
    pool = Pool()
    machines: dict[Path, list[dict[str, Series]]] = defaultdict(list)
    for file in sorted(results.rglob("*.wwp.xz")):
        known = {series.workload.identity: series for series in _series(file)}
        machines[file.parent].append(known)
        blocks: dict[int, dict[Class, list[Donor]]] = defaultdict(lambda: defaultdict(list))
        for series in known.values():
            kind = _class(series)
            if len(series.visits) > 1:
                shifts = deviations([_middle(visit) for visit in series.visits])
                for visit, shift in zip(series.visits, shifts, strict=True):
                    blocks[visit.block][kind].append(_donor(visit, shift))
            if series.workload.bytes <= FEW_BYTES and _is_to_gpu(series.workload):
                pool.calls += [_calls(visit) for visit in series.visits if visit.samples.host]
        pool.blocks += [dict(block) for block in blocks.values()]
    for surveys in machines.values():
        pool.surveys += _surveyed_again([each for each in surveys if _replicated(each)])
    return pool


def _replicated(survey: dict[str, Series]) -> bool:
    return any(len(series.visits) > 1 for series in survey.values())


def _surveyed_again(surveys: list[dict[str, Series]]) -> list[dict[Class, list[list[Donor]]]]:
    """Series that each of several surveys visited in two blocks and more."""
    if len(surveys) < 2:
        return []
    found: list[dict[Class, list[list[Donor]]]] = [defaultdict(list) for _ in surveys]
    for identity in surveys[0]:
        several = [survey[identity] for survey in surveys if identity in survey]
        if len(several) < len(surveys) or min(len(each.visits) for each in several) < 2:
            continue
        visits = [visit for each in several for visit in each.visits]
        shifts = iter(deviations([_middle(visit) for visit in visits]))
        for into, each in zip(found, several, strict=True):
            into[_class(each)].append([_donor(visit, next(shifts)) for visit in each.visits])
    return [dict(each) for each in found]


def _class(series: Series) -> Class:
    return class_of(series.workload, series.visits[0].mode)


def deviations(middles: list[float]) -> list[float]:
    """Logarithms of each over their median, with the variance that the median took given back."""
    if len(middles) < 2:
        return [0.0] * len(middles)
    centre = median(middles)
    widen = math.sqrt(len(middles) / (len(middles) - 1))
    return [widen * math.log(middle / centre) for middle in middles]


def _series(file: Path) -> Iterator[Series]:
    """Those of transfers by the executor of the synthetic paths, with the visits that have samples
    that count."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recorded.wwp"
        path.write_bytes(lzma.decompress(file.read_bytes()))
        with Profile.open(path) as profile:
            for workload in profile.workloads():
                transfers = workload.transfers
                if not transfers or any(t.path.executor != EXECUTOR for t in transfers):
                    continue
                visits = [v for v in profile.visits_of(workload) if counted(v.samples)]
                if visits:
                    yield Series(workload, tuple(visits))


def _middle(visit: Visit) -> float:
    return median([visit.samples.span[n] for n in counted(visit.samples)])


def _donor(visit: Visit, shift: float) -> Donor:
    samples = visit.samples
    rows = [n for n, span in enumerate(samples.span) if span > 0]
    spans = np.array([samples.span[n] for n in rows])
    interval = median_interval([samples.span[n] for n in counted(samples)])
    return Donor(
        within=np.log(spans / _middle(visit)),
        between=shift,
        stop=visit.stop,
        repetitions=tuple(samples.repetitions[n] for n in rows) if samples.repetitions else (),
        flags=tuple(samples.flags[n] for n in rows) if samples.flags else (),
        reach=(interval.low / _middle(visit), interval.high / _middle(visit)) if interval else None,
    )


def _is_to_gpu(workload: Workload) -> bool:
    ends = workload.transfers[0].path
    kinds = (ends.source.kind, ends.destination.kind)
    return len(workload.transfers) == 1 and kinds == ("pinned", "device")


def _calls(visit: Visit) -> Array:
    seconds = np.array(visit.samples.host)
    return np.log(seconds / np.median(seconds))
