"""Machines of several GPUs for tests of analyses, and links of which some are slow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import msgspec
from tests import profiles
from tests.analysis.questions.subjects import curve, postal

from waywiser.machine.machine import Gpu, Machine, NumaNode
from waywiser.words.records import Series

LARGE = (2**26, 2**28)


def machine(gpus: int = 8, nodes: int = 1) -> Machine:
    """GPUs on an NVLink switch, as `tests.profiles.machine` has two; on several nodes evenly."""
    first = profiles.machine()
    made = tuple(
        msgspec.structs.replace(
            first.gpus[0],
            index=index,
            uuid=f"GPU-{index:08d}",
            pci=f"0000:{index + 1:02x}:00.0",
            numa=index * nodes // gpus,
            peers=tuple(other for other in range(gpus) if other != index),
        )
        for index in range(gpus)
    )
    numa = tuple(NumaNode(node, (4 * node, 4 * node + 1), 2**34, node) for node in range(nodes))
    return msgspec.structs.replace(first, gpus=made, numa=numa)


def altered(made: Machine, index: int, **what: object) -> Machine:
    """The machine with one GPU changed."""
    gpus: Iterable[Gpu] = (
        msgspec.structs.replace(gpu, **what) if gpu.index == index else gpu for gpu in made.gpus
    )
    return msgspec.structs.replace(made, gpus=tuple(gpus))


def host_links(
    gpus: int,
    slow: Mapping[int, float] = {},
    *,
    back: Mapping[int, float] | None = None,
    sizes: Sequence[int] = LARGE,
    blocks: int = 2,
    between: float = 0.002,
    seed: int = 0,
    kind: str = "pinned",
) -> list[Series]:
    """Copies from and to every GPU at 50 GB/s; ``slow`` take so much longer, ``back`` the same of
    copies to the host where that is not as much."""
    found: list[Series] = []
    for gpu in range(gpus):
        host, device = f"{kind}@numa:0", f"device@gpu:{gpu}"
        for source, end, late in (
            (host, device, slow),
            (device, host, slow if back is None else back),
        ):
            path = f"{source} -> {end} by copy-engine"
            rate = 50e9 / (1 + late.get(gpu, 0.0))
            found += curve(
                path, postal(5e-6, rate), sizes, blocks=blocks, between=between, seed=seed
            )
    return found


def peer_links(
    gpus: int,
    slow: Mapping[tuple[int, int], float] = {},
    *,
    blocks: int = 2,
    between: float = 0.002,
    seed: int = 0,
) -> list[Series]:
    """Copies between all GPUs at 390 GB/s; those of ``slow`` take so much longer."""
    found: list[Series] = []
    for a, b in permutations(range(gpus), 2):
        rate = 390e9 / (1 + slow.get((a, b), 0.0))
        path = f"device@gpu:{a} -> device@gpu:{b} by copy-engine"
        found += curve(path, postal(3e-6, rate), LARGE, blocks=blocks, between=between, seed=seed)
    return found
