"""Nodes in memory for tests: seeded, made of no measurement.

A node has eight GPUs on PCIe 5 x16 and a switch of NVLinks, and what ``--preset check`` measures
of it, in as many blocks as asked for. Noise is lognormal, of a host and of a block, and small.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.curves.curve import Point
from waywiser.curves.subject import LoadedLink, Subject
from waywiser.machine.machine import Gpu, Machine, NumaNode, NvLink, Package, PcieLink
from waywiser.profile import WritableProfile
from waywiser.profile.block import STANDARD_ERRORS, BlockSummary
from waywiser.stats.order import lower_rank
from waywiser.words import Transfer, Workload
from waywiser.words.records import GpuState, Health, Samples, Visit

SIZE = 64 * 2**20
LINK, PEER = 55e9, 390e9


def gpu(index: int, host: str = "node0") -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{host}-{index}",
        name="Test GPU",
        pci=f"0000:{index + 1:02x}:00.0",
        numa=0,
        memory_bytes=80 * 2**30,
        pcie=PcieLink(5, 16, 5, 16),
        nvlinks=(NvLink("switch", 18, 26.562),),
        peers=tuple(other for other in range(8) if other != index),
    )


def machine(host: str = "node0", gpus: int = 8) -> Machine:
    return Machine(
        hostname=host,
        architecture="x86_64",
        cpu_model="Test CPU",
        packages=(Package(0, "Test CPU", 32, 64),),
        numa=(NumaNode(0, tuple(range(64)), 2**39, 0),),
        caches=(),
        gpus=tuple(gpu(index, host) for index in range(gpus)),
        driver="580.159",
    )


def workload(*paths: str, size: int = SIZE) -> Workload:
    return Workload(tuple(Transfer.parse(f"{path} of {size}") for path in paths))


def h2d(gpu: int) -> str:
    return f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine"


def d2h(gpu: int) -> str:
    return f"device@gpu:{gpu} -> pinned@numa:0 by copy-engine"


def peer(source: int, destination: int) -> str:
    return f"device@gpu:{source} -> device@gpu:{destination} by copy-engine"


@cache
def points(gpus: int, size: int) -> tuple[tuple[Point, float], ...]:
    """Series as of ``--preset check``, each with its seconds."""
    found = []
    for each in range(gpus):
        found += [
            (workload(h2d(each), size=size), size / LINK),
            (workload(d2h(each), size=size), size / LINK),
            (workload(h2d(each), d2h(each), size=size), 1.1 * size / LINK),
        ]
    for one, other in itertools.permutations(range(gpus), 2):
        found.append((workload(peer(one, other), size=size), size / PEER))
    if gpus > 1:
        found.append((workload(*map(h2d, range(gpus)), size=size), gpus * size / 300e9))
        found.append((workload(*map(d2h, range(gpus)), size=size), gpus * size / 200e9))
    return tuple((Point.of(what), seconds) for what, seconds in found)


def workloads(gpus: int = 8, size: int = SIZE) -> list[tuple[Workload, float]]:
    """What `points` are of, each with its seconds."""
    return [(point.workload, seconds) for point, seconds in points(gpus, size)]


Slow = Callable[[Workload], float]
"""The factor by which a workload takes longer: 1.05."""


def node(
    seed: int,
    host: str = "node0",
    *,
    gpus: int = 8,
    blocks: int = 1,
    slow: Slow = lambda _: 1.0,
    between_hosts: float = 0.002,
    between_blocks: float = 0.0015,
    links: dict[int, LoadedLink] | None = None,
    sizes: Sequence[int] = (SIZE,),
    created: str = "2026-11-20T03:00:00.000+00:00",
) -> Subject:
    rng = random.Random(f"{seed} {host}")
    digests = []
    for size in sizes:
        for point, seconds in points(gpus, size):
            own = random.Random(f"{host} {point.curve}").gauss(0, between_hosts)
            medians = [
                seconds * slow(point.workload) * math.exp(own + rng.gauss(0, between_blocks))
                for _ in range(blocks)
            ]
            digests.append(msgspec.structs.replace(point, blocks=around(medians)))
    seen = {each: LoadedLink(5, 16) for each in range(gpus)}
    return Subject(host, machine(host, gpus), tuple(digests), f"{host}.wwp", created, "check",
                links={**seen, **(links or {})})  # fmt: skip


def digest(what: Workload, medians: Sequence[float], width: float = 0.0008) -> Point:
    """A block around each of ``medians``, known to ``width`` either way."""
    return Point.of(what, around(medians, width))


def around(medians: Sequence[float], width: float = 0.0008) -> tuple[BlockSummary, ...]:
    """The blocks of `digest`."""
    return tuple(
        BlockSummary(n, median, width / STANDARD_ERRORS, 8, True)
        for n, median in enumerate(medians)
    )


def slow_host_link(gpu: int, factor: float) -> Slow:
    """Everything between host memory and one GPU takes longer; what starts together waits."""

    def slow(what: Workload) -> float:
        touched = any(
            str(memory.place) == f"gpu:{gpu}" and "numa" in {end.place.kind for end in ends}
            for transfer in what.transfers
            for ends in [(transfer.path.source, transfer.path.destination)]
            for memory in ends
        )
        return factor if touched else 1.0

    return slow


def without(one: Subject, pci: str) -> Subject:
    """A GPU has gone: those after it have moved up, and nothing of it was measured."""
    left = [each for each in one.machine.gpus if each.pci != pci]
    moved = tuple(msgspec.structs.replace(each, index=n) for n, each in enumerate(left))
    measured = node(7, one.name, gpus=len(left))
    gone = msgspec.structs.replace(one.machine, gpus=moved)
    return msgspec.structs.replace(measured, machine=gone)


def stored(one: Subject, path: Path, *, health: Sequence[Health] = ()) -> Path:
    """The node as a profile, with samples that have the medians and the intervals of its blocks."""
    plan = json.dumps({"request": {"preset": one.request}})
    with WritableProfile.create(
        path, one.machine, {}, plan_json=plan, unsupported_paths=one.unsupported_paths
    ) as profile:
        for moment, reading in zip(("start", "end"), health, strict=False):
            profile.commit_health(reading, moment)  # type: ignore[arg-type]
        for each in one.points:
            states = tuple(
                GpuState(gpu, pcie_generation=link.generation, pcie_width=link.width)
                for gpu, link in one.links.items()
            )
            for block in each.blocks:
                profile.commit_visit(
                    Visit(each.workload, block.block, "converged", one.created, mode="device",
                          samples=samples_of(block), gpu_states=states)
                )  # fmt: skip
            for failure in each.failures:
                lost = Visit(each.workload, 0, "failed", one.created, failure=failure)
                profile.commit_visit(lost)
    return path


def samples_of(block: BlockSummary) -> Samples:
    """As many as the block has: those of the interval's ranks and beyond are at its ends."""
    rank = lower_rank(block.count)
    if rank is None or not block.has_interval:
        return Samples(span=(block.median,) * block.count)
    middle = block.count - 2 * rank
    half = STANDARD_ERRORS * block.standard_error * block.median
    low, high = block.median - half, block.median + half
    return Samples(span=(low,) * rank + (block.median,) * middle + (high,) * rank)


def scaled(block: BlockSummary, factor: float) -> BlockSummary:
    """The block if each sample had taken ``factor`` times as long."""
    return msgspec.structs.replace(block, median=block.median * factor)


def slower(node: Subject, which: Callable[[Point], bool], factor: float) -> Subject:
    """The node with the series that ``which`` picks ``factor`` times as slow."""
    digests = tuple(
        msgspec.structs.replace(digest, blocks=tuple(scaled(b, factor) for b in digest.blocks))
        if which(digest)
        else digest
        for digest in node.points
    )
    return msgspec.structs.replace(node, points=digests)


def losses(found: ProfileComparison) -> set[str]:
    """Curves with a significant loss, whether a repeat has confirmed it or not."""
    return {
        path.curve
        for path in found.paths
        if any(each.outcome == "different" and each.slower for each in path.changes)
    }
