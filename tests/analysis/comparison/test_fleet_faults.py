"""Slow paths of a node that accuse hardware, and the command that measures them again."""

from __future__ import annotations

import random

import msgspec
import nodes
import pytest

from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.comparison.fleet_faults import COMPARE, REMEDIES
from waywiser.curves.answer import Finding
from waywiser.curves.subject import Subject
from waywiser.machine.machine import PlacedRank
from waywiser.machine.traits import ExecutorTraits, Traits
from waywiser.words import Workload

RANKS = tuple(PlacedRank(n, (n,), 0) for n in range(4))
TRAITS = Traits((ExecutorTraits("nccl", "kernels", shares=("links",), route="between ranks"),))
OTHERS = (
    "managed@numa:0 -> managed@gpu:2 by page-fault",
    "managed@numa:0 -> managed@gpu:2 by prefetch",
    "pageable@numa:0 -> device@gpu:2 by copy-engine",
    "pageable@numa:0 -> pageable@numa:0 by cpu",
    "device@gpu:2 -> device@gpu:1 by nccl",
    "device@gpu:0-7 -> device@gpu:0-7 by nccl[collective=allreduce]",
    "device@rank:1 -> device@rank:2 by mpi",
    "pageable@rank:0 -> pageable@rank:3 by mpi[test=bw]",
    "device@rank:0 -> device@rank:3 by mpi-staged",
    "device@rank:0-3 -> device@rank:0-3 by mpi[collective=alltoall]",
)
OF_LINKS = (
    nodes.h2d(2),
    nodes.d2h(2),
    nodes.peer(2, 5),
    "pinned@numa:0 -> device@gpu:2 by sm",
    "device@gpu:2 -> device@gpu:2 by copy-engine",
)


def fault(path: str) -> Finding:
    """Returns the fault of one of twelve hosts, on which this path takes 1.3 times as long in two
    surveys."""
    what = Workload.parse(f"{path} of {nodes.SIZE}")

    def node(host: int, later: str = "") -> Subject:
        draws = random.Random(f"{path} {host} {later}")
        seconds = 2e-3 * (1.3 if host == 4 else 1.0)
        series = nodes.digest(what, [seconds * (1 + draws.gauss(0, 0.001)) for _ in range(3)])
        made = nodes.node(1, f"n{host}", created=later or "2026-11-20T03:00:00.000+00:00")
        ranks = RANKS if "rank:" in path else ()
        machine = msgspec.structs.replace(made.machine, ranks=ranks, traits=TRAITS)
        return msgspec.structs.replace(made, machine=machine, points=(*made.points, series))

    found = assess_fleet([*map(node, range(12)), node(4, "2026-11-21T03:00:00.000+00:00")])
    ill = {each.host: each.faults for each in found.of("bad", "suspect")}
    (only,) = ill["n4"]
    return only


@pytest.mark.parametrize("path", OTHERS)
def test_what_others_have_a_part_in_accuses_no_hardware(path: str) -> None:
    found = fault(path)
    assert found.id == "slow method" and path.partition(" by ")[0] in found.statement
    assert "slot" not in REMEDIES[found.id]
    if "rank:" in path:
        assert found.devices == () and found.again.startswith("waywiser survey --ranks 4 --only ")
    else:
        assert found.again.startswith("waywiser survey --only ")


@pytest.mark.parametrize("path", OF_LINKS)
def test_copies_by_gpus_alone_accuse_their_gpu(path: str) -> None:
    found = fault(path)
    assert found.id == "slow" and REMEDIES[found.id] == COMPARE
    assert "gpu:2" in [device.place for device in found.devices]
