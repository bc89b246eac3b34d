"""A node is what its profile says, and its GPUs may be given other numbers."""

from __future__ import annotations

from pathlib import Path

import nodes
import pytest

import profiles
from waywiser.curves.gpu_numbers import gpus_of, renumbered
from waywiser.curves.subject import LoadedLink, Subject, read_subject
from waywiser.profile.writable import write_profile
from waywiser.words import Operation, Workload
from waywiser.words.records import GpuState, Samples


def test_a_stored_node_reads_back(tmp_path: Path) -> None:
    one = nodes.node(1, gpus=2, blocks=2, links={1: LoadedLink(4, 8)})
    read = read_subject(nodes.stored(one, tmp_path / "a.wwp"), links=True)

    def blocks(node: Subject) -> dict[str, list[tuple[object, ...]]]:
        return {
            each.identity: [
                (b.block, b.median, round(b.standard_error, 12), b.count) for b in each.blocks
            ]
            for each in node.points
        }

    assert blocks(read) == blocks(one)
    assert read.machine == one.machine
    assert read.links == {0: LoadedLink(5, 16), 1: LoadedLink(4, 8)}
    assert '"preset":"check"' in read.request
    assert not read_subject(tmp_path / "a.wwp").links


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (nodes.peer(0, 1), nodes.peer(5, 0)),
        (f"{nodes.h2d(1)} of 8; {nodes.d2h(2)}", f"{nodes.h2d(0)} of 8; {nodes.d2h(2)}"),
    ],
)
def test_gpus_are_renumbered_in_transfers(before: str, after: str) -> None:
    moved = renumbered(Workload.parse(before), {0: 5, 1: 0})
    assert moved == Workload.parse(after)


def test_gpus_are_renumbered_in_operations_and_what_they_name() -> None:
    before = Workload(operation=Operation.parse("sm-latency[memory=gpu:1]@gpu:0"))
    after = Workload(operation=Operation.parse("sm-latency[memory=gpu:0]@gpu:5"))
    assert gpus_of(before) == {0, 1}
    assert renumbered(before, {0: 5, 1: 0}) == after
    host = Workload(operation=Operation.parse("sm-latency[memory=numa:1]@gpu:0"))
    assert gpus_of(host) == {0}


def test_the_best_that_was_seen_of_a_loaded_link_counts(tmp_path: Path) -> None:
    idle = GpuState(0, pcie_generation=1, pcie_width=16)
    busy = GpuState(0, pcie_generation=5, pcie_width=8)
    other = GpuState(1, pcie_generation=5, pcie_width=16)
    what = nodes.workload(nodes.h2d(0))
    visits = [
        profiles.visit(what, block, Samples(span=(1.0,)), gpu_states=seen)
        for block, seen in enumerate([(idle, other), (busy,)])
    ]
    write_profile(tmp_path / "a.wwp", nodes.machine(), {}, visits)
    assert read_subject(tmp_path / "a.wwp", links=True).links == {0: LoadedLink(5, 16)}
    assert LoadedLink(5, 8).below(nodes.gpu(0)) == "PCIe 5 x8 of 5 x16"
    assert LoadedLink(5, 16).below(nodes.gpu(0)) == LoadedLink(0, 0).below(nodes.gpu(0)) == ""
