"""Profiles for tests: seeded, realistic in shape, made of no measurement.

`visits` makes what a survey of a two-GPU machine could have found: lognormal times over a latency
and a rate, blocks that differ a little, and one of everything that goes wrong.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path

from waywiser.machine.machine import Gpu, Machine, NumaNode, NvLink, Package, PcieLink
from waywiser.profile import WritableProfile
from waywiser.profile.block import BlockEstimate
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Operation, Place, Stop, TimingMode, Transfer, Workload
from waywiser.words.records import (
    BufferRecord,
    Failure,
    GpuState,
    Samples,
    Series,
    Unsupported,
    Visit,
)

STARTED = "2026-11-20T12:00:00.000+00:00"
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
HOST = "pageable@numa:0 -> pageable@numa:0 by cpu[threads=2]"
PAGEABLE = "pageable@numa:0 -> device@gpu:0 by copy-engine"
PEER = "device@gpu:0 -> device@gpu:1 by copy-engine"
SIZES = (8, 64 * 2**10, 2**20, 2**30)

ENVIRONMENT = {"driver": "580.159", "governor": "", "huge_pages": "madvise"}

UNSUPPORTED_PATHS = (
    Unsupported("managed@numa:0 -> device@gpu:0 by prefetch", "the driver cannot prefetch here"),
    Unsupported("managed@numa:0 -> device@gpu:1 by prefetch", "the driver cannot prefetch here"),
    Unsupported("file:/data/x -> pageable@numa:0 by cpu", "there is no such file"),
)


def machine() -> Machine:
    """One package, one NUMA node, two GPUs on PCIe 5 x16 and an NVLink switch."""
    gpus = tuple(
        Gpu(
            index=index,
            uuid=f"GPU-0000000{index}",
            name="Test GPU",
            pci=f"0000:{index + 1:02x}:00.0",
            numa=0,
            memory_bytes=16 * 2**30,
            pcie=PcieLink(5, 16, 5, 16),
            nvlinks=(NvLink("switch", 18, 26.562),),
            peers=(1 - index,),
        )
        for index in range(2)
    )
    cpus = (0, 1, 2, 3)
    return Machine(
        hostname="node7",
        architecture="x86_64",
        cpu_model="Test CPU",
        packages=(Package(0, "Test CPU", 4, 4),),
        numa=(NumaNode(0, cpus, 32 * 2**30, 0),),
        caches=(),
        gpus=gpus,
        driver="580.159",
    )


def workload(path: str, size: int) -> Workload:
    """One transfer of ``size`` bytes, or several paths separated by ``;`` of that size each."""
    return Workload(tuple(Transfer.parse(f"{each} of {size}") for each in path.split(";")))


def _on_both_sides(values: Sequence[float]) -> tuple[float, ...]:
    """The values of the lower and of the upper half in turn, each in their order."""
    lower = set(sorted(range(len(values)), key=values.__getitem__)[: (len(values) + 1) // 2])
    below = [value for n, value in enumerate(values) if n in lower]
    above = [value for n, value in enumerate(values) if n not in lower]
    return tuple(each for pair in zip_longest(below, above) for each in pair if each is not None)


def samples(
    rng: random.Random,
    median: float,
    count: int = 20,
    *,
    noise: float = 0.002,
    transfers: int = 1,
    repetitions: int = 1,
    flags: int = 0,
) -> Samples:
    """``count`` lognormal samples around ``median`` seconds with relative scatter ``noise``.
    Neighbours are on different sides of the middle, so that no samples depend on each other."""
    spans = _on_both_sides([median * math.exp(rng.gauss(0.0, noise)) for _ in range(count)])
    others = tuple(
        (span, *(span * rng.uniform(0.9, 1.0) for _ in range(transfers - 1))) for span in spans
    )
    return Samples(
        span=spans,
        host=tuple(span + 2e-6 * math.exp(rng.gauss(0.0, 0.05)) for span in spans),
        skew=tuple(rng.uniform(0, 1e-6) if transfers > 1 else 0.0 for _ in spans),
        repetitions=(repetitions,) * count,
        flags=(flags,) * count,
        transfers=others if transfers else (),
    )


def visit(
    what: Workload,
    block: int = 0,
    taken: Samples | None = None,
    *,
    stop: Stop = "converged",
    mode: TimingMode = "device",
    failure: Failure | None = None,
    state: str = "verified",
    gpu_states: Sequence[GpuState] = (GpuState(0, 1980, 3201, (), 5, 16, 40, 120.0),),
) -> Visit:
    """A visit that holds together: a failed one has no samples and the stop ``failed``."""
    taken = Samples() if taken is None else taken
    ends = [m for t in what.transfers for m in (t.path.source, t.path.destination)]
    return Visit(
        workload=what,
        block=block,
        stop="failed" if failure else stop,
        started=STARTED,
        mode=mode,
        samples=taken,
        failure=failure,
        buffers=tuple(BufferRecord(str(end), state, 1.0, 0.0, "") for end in ends),
        gate="stream-wait" if mode == "device" else "",
        notes=(),
        worker=block + 1,
        setup_seconds=0.01,
        sampling_seconds=sum(taken.span),
        elapsed_seconds=0.02 + sum(taken.span),
        buffer_bytes=2 * what.bytes,
        gpu_states=tuple(gpu_states),
    )


def block_of(what: Visit) -> BlockEstimate | None:
    """The statistics of a visit in memory."""
    (known,) = SeriesFrame.of([Series(what.workload, (what,))]).series_blocks()
    (found,) = known.blocks
    return found


def block_of_times(
    span: Sequence[float], repetitions: Sequence[int] = (), mode: TimingMode = "device"
) -> BlockEstimate:
    """The statistics of samples of a megabyte."""
    found = block_of(
        visit(WHAT, 0, Samples(tuple(span), repetitions=tuple(repetitions)), mode=mode)
    )
    assert found is not None
    return found


def seconds(size: int, latency: float = 5e-6, rate: float = 55e9) -> float:
    """A transfer's time by the postal model: for shapes of test data only."""
    return latency + size / rate


def series(
    path: str = H2D,
    size: int = 2**20,
    medians: Sequence[float] | None = None,
    seed: int = 1,
    *,
    count: int = 20,
    noise: float = 0.002,
) -> Series:
    """One series with a converged block around each of ``medians``."""
    rng = random.Random(seed)
    what = workload(path, size)
    width = len(what.transfers)
    taken = [
        samples(rng, median, count, noise=noise, transfers=width)
        for median in medians or (seconds(size), seconds(size))
    ]
    return Series(what, tuple(visit(what, block, each) for block, each in enumerate(taken)))


def visits(seed: int = 1, blocks: int = 2, sizes: Sequence[int] = SIZES) -> Iterator[Visit]:
    """What a whole survey hands over, in its order: good series, then one of every trouble."""
    rng = random.Random(seed)
    for block in range(blocks):
        for path, rate in ((H2D, 55e9), (D2H, 54e9), (f"{H2D}; {D2H}", 95e9), (PEER, 390e9)):
            for size in sizes:
                what = workload(path, size)
                batch = 16 if size < 2**16 else 1
                around = seconds(what.bytes, rate=rate) * rng.uniform(0.999, 1.001)
                width = len(what.transfers)
                taken = samples(rng, around, transfers=width, repetitions=batch)
                yield visit(what, block, taken)
        small = samples(rng, 2e-7, noise=0.0, flags=2)
        yield visit(workload(HOST, 8), block, small, mode="host", state="unverified")
        loud = samples(rng, 1e-4, noise=0.3)
        yield visit(workload(HOST, 2**20), block, loud, mode="host", stop="budget")
        empty = Workload(operation=Operation("empty-interval", Place("gpu", 0)))
        yield visit(empty, block, samples(rng, 3.1e-6, transfers=0))
        hot = (GpuState(0, 1200, 3201, ("sw_thermal_slowdown",), 4, 16, 88, 690.0),)
        yield visit(
            workload(PAGEABLE, 2**20), block, samples(rng, 1.4e-4), mode="host", gpu_states=hot
        )
        gone = Failure("crash", "the worker died of SIGSEGV")
        yield visit(workload(PAGEABLE, 8), block, failure=gone)
        hung = Failure("timeout", "no answer within 10 s")
        yield visit(workload(PAGEABLE, 2**16), block, failure=hung)
    stopped = Failure("interrupted", "the survey was stopped")
    yield visit(workload(PAGEABLE, 2**30), 0, failure=stopped)


def write(path: Path, seed: int = 1, blocks: int = 2) -> Path:
    """A finished profile of `visits` at ``path``; made once in a run of the tests, then copied."""
    with path.open("xb") as file:
        file.write(_finished(seed, blocks))
    return path


@cache
def _finished(seed: int, blocks: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.wwp"
        with WritableProfile.create(
            path,
            machine(),
            ENVIRONMENT,
            plan_json='{"preset":"standard"}',
            unsupported_paths=UNSUPPORTED_PATHS,
            command=("waywiser", "survey"),
        ) as profile:
            for each in visits(seed, blocks):
                profile.commit_visit(each)
        return path.read_bytes()


WHAT = workload(H2D, 2**20)
"""What profiles of a test are usually of, where it does not matter."""


def new(path: Path) -> WritableProfile:
    """A profile without any visit."""
    return WritableProfile.create(path, machine(), ENVIRONMENT)


def good(block: int = 0) -> Visit:
    return visit(WHAT, block, samples(random.Random(block), 1e-3))
