"""Synthetic surveys of synthetic machines: the truth of a model under the noise of real machines.

Everything follows from a seed. What is measured shows the planted truths at least
cost: every link both ways at a few sizes, three curves over many sizes, and all GPUs at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.questions.subjects import of_series
from planted.noise import Array, Donor, Pool
from planted.planted_model import LARGE, Model, Truth, Wiring, between, down, up, workload
from waywiser.curves.subject import Subject
from waywiser.words import Path, Workload
from waywiser.words.records import BlockLatencies, Locality, Samples, Series, Visit

STARTED = "2026-11-20T12:00:00.000+00:00"
MIB = 2**20
LINK_SIZES = (2**13, MIB, LARGE)
"""The bandwidth of every link with the host."""
PEER_SIZES = (MIB, LARGE)
LONG = tuple(2**n for n in range(12, 29))
"""4 KiB to 256 MiB: of the three curves over many sizes."""
DIP_SIZES = tuple(2**n for n in range(18, 26) if 2**n not in LINK_SIZES)
"""Where dips are planted: bandwidth has begun to count, and no other curve has the size."""
BLOCKS = 6
"""The number of `full`: the fewest for which an interval over blocks exists."""
EFFECTS = (0.05, 0.05, 0.08, 0.20)
"""Half of all truths are as small as is promised to be found."""
OFTEN = 0.75
"""Share of machines that have a truth of a kind, of those that can."""
HEALTHY = 0.2
"""Share of machines without any truth."""
COPY_SECONDS = (5.7e-6, 5.9e-6)
"""Limits of the latency of a copy of 8 bytes to a GPU that is local to the block."""
ROUNDS, LOCATED_BLOCKS, WORKERS = 8, 6, 2
COPIES = 9
"""What a worker does to find out where memory is: a latency is the median of so many copies in a
row (``kCopies`` of native/src/measure/locality.cpp)."""


@dataclass(frozen=True)
class Planted:
    """A synthetic machine, and a survey of it."""

    seed: int
    model: Model
    series: tuple[Series, ...]
    localities: tuple[Locality, ...]

    @property
    def subject(self) -> Subject:
        return of_series(self.model.machine, self.series, localities=self.localities)


def planted(seed: int, pool: Pool, blocks: int = BLOCKS, jump: float = 0.0) -> Planted:
    """One machine with its truths, and one survey of it; with a ``jump``, a machine without any,
    whose blocks jump by so much more than recorded ones (`surveyed`)."""
    model = model_of(seed, healthy=True if jump else None)
    rng = np.random.default_rng((seed, 1))
    series = surveyed(model, workloads(model, long_curves(seed, model)), rng, pool, blocks, jump)
    return Planted(seed, model, series, tuple(located(model, rng, pool)))


def model_of(seed: int, healthy: bool | None = None) -> Model:
    """The machine of a seed; ``healthy`` says that it has no truths, or by default lot."""
    rng = np.random.default_rng((seed, 0))
    wiring: Wiring = "switch" if rng.random() < 0.5 else "mesh"
    sockets = rng.choice(["shown", "hidden", "one"], p=[0.3, 0.5, 0.2])
    bare = Model(wiring=wiring, sockets=sockets)
    if healthy if healthy is not None else rng.random() < HEALTHY:
        return bare
    return Model(wiring=wiring, sockets=sockets, truths=tuple(_truths(rng, bare, seed)))


def _truths(rng: np.random.Generator, bare: Model, seed: int) -> Iterator[Truth]:
    def effect() -> float:
        return float(rng.choice(EFFECTS))

    curves = long_curves(seed, bare)
    gpus = [int(gpu) for gpu in rng.permutation(bare.count)]
    if rng.random() < 0.5:  # the GPU with long curves, so that many sizes are asked as well as few
        long = gpu_of(curves[0])
        gpus.remove(long)
        gpus.insert(0, long)
    half = tuple(range(bare.count // 2, bare.count))
    candidates = [
        Truth("anisotropic GPU", effect(), (gpus[0],), down=bool(rng.random() < 0.5)),
        Truth("anisotropic pair", effect(), (gpus[1], gpus[2])),
        Truth("slow host link", effect(), (gpus[3],)),
        Truth("slow peer link", effect(), (gpus[4], gpus[5])),
        Truth("shared port", effect(), neighbours(gpus[6])),
        Truth("dip", effect(), curve=str(rng.choice(curves)), size=int(rng.choice(DIP_SIZES))),
    ]
    yield from (truth for truth in candidates if rng.random() < OFTEN)
    if bare.sockets == "hidden":
        yield Truth("hidden sockets", effect(), half)
    if bare.sockets == "shown" and rng.random() < OFTEN:
        yield Truth("far sockets", effect())


def long_curves(seed: int, bare: Model) -> tuple[str, ...]:
    """Those visited at many sizes: to a GPU and back, and between two others."""
    a, b, c = (int(n) for n in np.random.default_rng((seed, 2)).permutation(bare.count)[:3])
    node = bare.node_of(a)
    return up(a, node), down(a, node), between(b, c)


def neighbours(gpu: int) -> tuple[int, int]:
    """The pair of GPUs that are measured together, of which this is one."""
    return gpu // 2 * 2, gpu // 2 * 2 + 1


def gpu_of(curve: str) -> int:
    """The GPU at the destination."""
    return Path.parse(curve).destination.place.index


def workloads(model: Model, long: Sequence[str]) -> Iterator[Workload]:
    """What the survey visits, each once."""
    sizes: dict[tuple[str, ...], set[int]] = {}
    gpus = range(model.count)
    for gpu in gpus:
        for node in range(model.nodes):
            for path in (up(gpu, node), down(gpu, node)):
                sizes[(path,)] = set(LINK_SIZES)
        sizes[(between(gpu, gpu),)] = {LARGE}
    for a in gpus:
        for b in gpus:
            if a != b:
                sizes[(between(a, b),)] = set(PEER_SIZES)
    for path in long:
        sizes[(path,)] |= set(LONG)
    for one_way in (up, down):
        for some in (gpus, *(neighbours(gpu) for gpu in gpus[::2])):
            sizes[tuple(one_way(gpu, model.node_of(gpu)) for gpu in some)] = {LARGE}
    for paths, planned in sizes.items():
        yield from (workload(paths, size) for size in sorted(planned))


def surveyed(
    model: Model,
    planned: Iterable[Workload],
    rng: np.random.Generator,
    pool: Pool,
    blocks: int,
    jump: float = 0.0,
) -> tuple[Series, ...]:
    """A survey of a model. In each block all sizes of a curve take longer or shorter by one normal
    deviation of ``jump``, beside what recorded blocks lend."""
    lots = [pool.block(rng) for _ in range(blocks)]
    curves: dict[str, list[Workload]] = {}
    for each in planned:
        curves.setdefault(each.curve, []).append(each)
    found = []
    for members in curves.values():
        sizes = tuple(each.transfers[0].bytes for each in members)
        together = len(members[0].transfers) > 1
        lenders = [lot.draw(rng, together, sizes) for lot in lots]
        jumps = np.exp(jump * rng.standard_normal(blocks)) if jump else np.ones(blocks)
        for each, size in zip(members, sizes, strict=True):
            truth = np.array(model.seconds(each))
            visits = tuple(
                _visit(each, block, jumps[block] * truth, lender.near(size)[0])
                for block, lender in enumerate(lenders)
            )
            found.append(Series(each, visits))
    return tuple(found)


def _visit(what: Workload, block: int, truth: Array, donor: Donor) -> Visit:
    """All transfers of one workload suffer the same noise: the span is that of the longest."""
    factors = np.exp(donor.whole)
    each = factors[:, None] * truth[None, :]
    spans = tuple(each.max(1).tolist())
    return Visit(
        workload=what,
        block=block,
        stop=donor.stop,
        started=STARTED,
        mode="device",
        samples=Samples(
            span=spans,
            repetitions=donor.repetitions,
            flags=donor.flags,
            transfers=tuple(map(tuple, each.tolist())),
        ),
        gate="stream-wait",
        worker=block + 1,
    )


def located(model: Model, rng: np.random.Generator, pool: Pool) -> Iterator[Locality]:
    """What workers find about where memory is: GPUs of one side reach a block sooner."""
    base = rng.uniform(*COPY_SECONDS, model.count)
    hidden = model.of("hidden sockets")
    second = np.isin(np.arange(model.count), hidden[0].gpus if hidden else ())
    for worker in range(1, WORKERS + 1):
        sides = rng.integers(0, 2, LOCATED_BLOCKS)
        far = (second[None, :] != sides[:, None]) * (hidden[0].effect if hidden else 0.0)
        noise = np.stack([_calls(rng, pool) for _ in range(model.count)], axis=2)
        copies = (base * (1 + far))[:, None, :] * np.exp(noise)
        yield Locality(
            worker=worker,
            started=STARTED,
            memory="pinned@numa:0",
            gpus=tuple(range(model.count)),
            blocks=tuple(
                BlockLatencies("unverified", tuple(map(tuple, block))) for block in copies.tolist()
            ),
        )


def _calls(rng: np.random.Generator, pool: Pool) -> Array:
    """What copies to one GPU deviate by: [block][round], one after another as recorded, where each
    round goes through all blocks in an order of its own."""
    needed = ROUNDS * LOCATED_BLOCKS * COPIES
    calls: list[float] = []
    while len(calls) < needed:
        calls += pool.calls[int(rng.integers(len(pool.calls)))].tolist()
    start = int(rng.integers(len(calls) - needed + 1))
    copies = np.array(calls[start : start + needed]).reshape(ROUNDS, LOCATED_BLOCKS, COPIES)
    return rng.permuted(np.median(copies, axis=2), axis=1).T
