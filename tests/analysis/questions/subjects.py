"""Subjects for tests of analyses: machines whose curves are given as functions of size.

    subject(curve(H2D, postal(5e-6, 55e9)), curve(D2H, postal(5e-6, 54e9)), machine=machine())

Everything is seeded and in memory. Noise has two levels, as in a survey: samples scatter within a
block (``noise``), and the medians of blocks scatter around the truth (``between``).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests import profiles

from waywiser.curves.classes import representatives
from waywiser.curves.curve import curves_of
from waywiser.curves.imported import imported_from
from waywiser.curves.overview import overview_of
from waywiser.curves.subject import Subject, curves_alone
from waywiser.machine.machine import Machine
from waywiser.profile import RunHealth
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Stop, TimingMode, Transfer, Workload
from waywiser.words.records import Locality, Series, Unsupported, Visit

Seconds = Callable[[int], float]
"""Times of one transfer by its size: the truth that a test plants."""

SIZES = tuple(2**n for n in range(3, 31))
"""8 B to 1 GiB, as `standard` visits a path."""

FEW = tuple(2**n for n in range(3, 31, 3))


def postal(latency: float, rate: float) -> Seconds:
    """latency + bytes / rate."""
    return lambda size: latency + size / rate


def curve(
    text: str,
    seconds: Seconds,
    sizes: Sequence[int] = SIZES,
    *,
    blocks: int = 2,
    count: int = 12,
    noise: float = 0.002,
    between: float = 0.002,
    seed: int = 0,
    stop: Stop = "converged",
    mode: TimingMode = "device",
) -> list[Series]:
    """The series of a workload written without sizes (``A``, or ``A; B`` for several transfers,
    with ``(flushed)`` and the like), each transfer of each of ``sizes`` bytes.

    Curves of different text differ in noise also with the same seed.
    """
    rng = random.Random(zlib.crc32(text.encode()) + seed)
    found = []
    for size in sizes:
        what = sized(text, size)
        visits = tuple(
            _visit(rng, what, block, seconds(size), count, noise, between, stop, mode)
            for block in range(blocks)
        )
        found.append(Series(what, visits))
    return found


def sized(text: str, size: int) -> Workload:
    """A workload with each of its transfers of ``size`` bytes, rounded down to whole units of its
    layout."""
    bare = Workload.parse(text)
    transfers = []
    for transfer in bare.transfers:
        unit = transfer.layout.unit if transfer.layout else 1
        whole = max(size // unit, 1) * unit
        transfers.append(Transfer(transfer.path, whole, transfer.parameters, transfer.layout))
    return Workload(tuple(transfers), cache=bare.cache, shared=bare.shared)


def _visit(
    rng: random.Random,
    what: Workload,
    block: int,
    truth: float,
    count: int,
    noise: float,
    between: float,
    stop: Stop,
    mode: TimingMode,
) -> Visit:
    around = truth * max(0.1, 1 + rng.gauss(0.0, between))
    taken = profiles.samples(rng, around, count, noise=noise, transfers=len(what.transfers))
    return profiles.visit(what, block, taken, stop=stop, mode=mode)


def of_series(
    machine: Machine,
    series: Iterable[Series],
    *,
    environment: Mapping[str, Any] | None = None,
    localities: Sequence[Locality] = (),
    unsupported_paths: Sequence[Unsupported] = (),
    health: Sequence[RunHealth] = (),
) -> Subject:
    """A subject from series in memory, by curve and size: a machine that was not surveyed into a
    file."""
    kept = list(series)
    first = representatives((each.workload for each in kept), machine)
    frame = SeriesFrame.of(kept)
    seen = overview_of(
        machine,
        frame.series_blocks(),
        first=first,
        localities=localities,
        unsupported_paths=unsupported_paths,
        health=health,
    )
    curves = curves_of(seen.series)
    found = dict(environment or {})
    alone = curves_alone(frame, curves, machine)
    return Subject(
        machine.hostname,
        machine,
        seen.series,
        environment=found,
        tools=imported_from(found),
        seen=seen,
        gpu_states=frame.gpu_states,
        alone=alone,
    )


def subject(
    *curves: Iterable[Series],
    machine: Machine | None = None,
    environment: Mapping[str, Any] | None = None,
    localities: Sequence[Locality] = (),
    unsupported_paths: Sequence[Unsupported] = (),
    health: Sequence[RunHealth] = (),
) -> Subject:
    """A subject of one machine: by default that of `tests.profiles.machine`, with two GPUs on
    PCIe 5 x16."""
    return of_series(
        machine or profiles.machine(),
        [series for each in curves for series in each],
        environment=environment,
        localities=localities,
        unsupported_paths=unsupported_paths,
        health=health,
    )
