"""CPUs for the processes of each GPU."""

from __future__ import annotations

import msgspec
import pytest
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import FEW, curve, postal, subject

from machine.captured import machine as captured
from waywiser.analysis.questions.placement_answer import placement
from waywiser.analysis.questions.rank_binding import RankBinding, RankBindingError, bind_ranks
from waywiser.machine.machine import Cache, Machine, NumaNode


def bound(here: Machine, per_gpu: int = 1) -> RankBinding:
    """Binds ranks by the topology alone."""
    return bind_ranks(placement(subject(machine=here)), here, per_gpu)


@pytest.mark.parametrize(
    ("name", "per_gpu", "cpus"),
    [
        ("two-socket-4gpu", 1, [range(8), range(8, 16), range(16, 24), range(24, 32)]),
        ("two-socket-4gpu", 2, [range(4 * n, 4 * n + 4) for n in range(8)]),
        ("two-socket-4gpu", 8, [(n,) for n in range(32)]),
        ("two-socket-4gpu", 3, [range(2 * n + 4 * (n // 6), 2 * n + 4 * (n // 6) + 2)
                                for n in range(12)]),
        ("dgx-1", 1, [range(5 * n, 5 * n + 5) for n in range(8)]),
        ("gb200", 1, [range(36 * n, 36 * n + 36) for n in range(4)]),
        ("lost-gpu", 1, [range(8), range(8, 16), range(16, 32)]),
    ],
)  # fmt: skip
def test_processes_of_captured_machines(name: str, per_gpu: int, cpus: list[range]) -> None:
    here = captured(name)
    found = bound(here, per_gpu)
    assert [rank.cpus for rank in found.ranks] == [tuple(each) for each in cpus]
    assert [rank.gpu for rank in found.ranks] == [
        gpu.index for gpu in here.gpus for _ in range(per_gpu)
    ]
    assert all(
        rank.node == here.gpus[rank.gpu].numa == next(
            node.index for node in here.numa if set(rank.cpus) <= set(node.cpus)
        )
        for rank in found.ranks
    )  # fmt: skip
    assert all("is named by the system, and no measurement" in each for each in found.reasons)


def test_processes_have_whole_cores() -> None:
    nodes = tuple(NumaNode(n, tuple(range(n, 16, 2)), 0, n) for n in range(2))
    caches = tuple(Cache(1, 2**15, (n, n + 8)) for n in range(8))
    here = msgspec.structs.replace(machine(2, 2), numa=nodes, caches=caches)
    assert [(rank.cores, rank.cpus) for rank in bound(here, 2).ranks] == [
        ((0, 1), (0, 2, 8, 10)),
        ((2, 3), (4, 6, 12, 14)),
        ((4, 5), (1, 3, 9, 11)),
        ((6, 7), (5, 7, 13, 15)),
    ]


def test_the_node_that_was_measured_to_be_better_is_taken() -> None:
    """The system names the other one."""
    here = machine(2, 2)
    curves = [
        curve(f"pinned@numa:{node} -> device@gpu:{gpu} by copy-engine",
              postal(5e-6, 50e9 if node != gpu else 40e9), FEW)
        for gpu in range(2) for node in range(2)
    ]  # fmt: skip
    found = bind_ranks(placement(subject(*curves, machine=here)), here)
    assert [rank.node for rank in found.ranks] == [1, 0]
    assert found.reasons == (
        "gpu:0: numa:1 was measured to be better",
        "gpu:1: numa:0 was measured to be better",
    )


@pytest.mark.parametrize(
    ("name", "per_gpu", "says"),
    [
        ("gh200", 1, "shows 1 NUMA node: no CPUs are nearer to a GPU than others"),
        ("h200-vm-4gpu", 1, "shows 1 NUMA node: the hypervisor may hide others, and may move"),
        ("no-gpu", 1, "has no GPU"),
        ("two-socket-4gpu", 9, "numa:0 has 16 cores for 18 processes"),
    ],
)
def test_where_none_follows_the_reason_is_the_true_one(name: str, per_gpu: int, says: str) -> None:
    with pytest.raises(RankBindingError, match=says):
        bound(captured(name), per_gpu)


def test_a_gpu_whose_node_nobody_knows_is_named() -> None:
    here = machine(2, 2)
    gpus = (here.gpus[0], msgspec.structs.replace(here.gpus[1], numa=-1))
    with pytest.raises(RankBindingError, match="the NUMA node of gpu:1 is not known"):
        bound(msgspec.structs.replace(here, gpus=gpus))
