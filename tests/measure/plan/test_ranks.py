"""What a survey with ranks measures."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from tests.measure.plan.machines import machine

from machine.captured import machine as captured
from waywiser.machine.machine import Machine, NumaNode, PlacedRank
from waywiser.machine.ranks import crowd_note, launch_options, placement_text
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.requested_workloads import WorkloadError, requested_curves
from waywiser.measure.ranks.placement import (
    PlacementError,
    place_ranks,
)
from waywiser.measure.tune.targets import TuneRequest, find_targets

NODES = (
    NumaNode(0, (0, 1, 2, 3, 8, 9, 10, 11), 2**36, 0),
    NumaNode(1, (4, 5, 6, 7), 2**36, 1),
)


def with_ranks(ranks: int, gpus: int = 0, **other: tuple[str, ...]) -> Machine:
    bare = msgspec.structs.replace(machine(gpus=gpus), numa=NODES)
    placed = place_ranks(bare, ranks)
    ranks_with = tuple(msgspec.structs.replace(rank, **other) for rank in placed)
    return msgspec.structs.replace(bare, ranks=ranks_with)


def curves(plan: Plan) -> set[str]:
    return {point.curve.text for point in plan.points}


def test_messages_between_every_two_ranks_and_between_pairs_at_once() -> None:
    plan = make_plan(with_ranks(4), Request(preset="quick"))
    alone = {f"pageable@rank:{a} -> pageable@rank:{b} by mpi" for a in range(4) for b in range(a)}
    forward = {f"pageable@rank:{a} -> pageable@rank:{b} by mpi" for b in range(4) for a in range(b)}
    found = curves(plan)
    assert "barrier-skew@rank:0-3" in found
    assert {text for text in found if ";" not in text and text.endswith(" by mpi")} == forward
    assert not found & alone
    together = [point for point in plan.points if len(point.workload.transfers) > 1]
    assert {tuple(place.index for place in p.workload.places) for p in together} == {
        (0, 1, 2, 3), (0, 1, 0, 2), (0, 1, 0, 2, 0, 3),
    }  # fmt: skip
    (unsupported,) = {each.reason for each in plan.unsupported_paths}
    assert unsupported == "neither end is on a GPU: nothing is staged"


def test_gpus_are_reached_with_and_without_staging_in_chunks_too() -> None:
    found = curves(make_plan(with_ranks(2, gpus=2), Request()))
    for text in (
        "device@rank:0 -> device@rank:1 by mpi",
        "device@rank:0 -> device@rank:1 by mpi[test=bw]",
        "device@rank:0 -> device@rank:1 by mpi-staged",
        "device@rank:0 -> device@rank:1 by mpi-staged[chunk=2097152]",
        "device@rank:0 -> pageable@rank:1 by mpi-staged",
        "pinned@rank:0 -> device@rank:1 by mpi",
    ):
        assert text in found


def test_memory_that_mpi_does_not_send_is_staged_alone() -> None:
    plan = make_plan(with_ranks(2, gpus=2, unsent=("device",)), Request())
    found = {text for text in curves(plan) if "device" in text}
    assert not [text for text in found if " by mpi[" in text or text.endswith(" by mpi")]
    assert not [text for text in found if "strategy=direct" in text]
    assert {text for text in found if " by alltoall" in text}
    reasons = {each.reason for each in plan.unsupported_paths}
    assert any(reason.startswith("alltoall has no strategy=direct here") for reason in reasons)
    assert "the MPI library does not send device memory" in reasons


def test_one_message_is_split_over_the_processes_of_two_gpus() -> None:
    found = curves(make_plan(with_ranks(4, gpus=2), Request(preset="quick")))
    pairs = ("device@rank:0 -> device@rank:2 by mpi", "device@rank:1 -> device@rank:3 by mpi")
    assert "; ".join(pairs) in found


BOTH = "device@rank:0-3 -> device@rank:0-3 by "
STRATEGIES = ("", "strategy=direct", "strategy=extra-message", "strategy=duplicate-pointer")


def exchanges(plan: Plan) -> set[str]:
    return {text.removeprefix(BOTH) for text in curves(plan) if text.startswith(BOTH)}


def test_a_quick_survey_exchanges_by_each_strategy_and_the_better_way() -> None:
    found = exchanges(make_plan(with_ranks(4, gpus=2), Request(preset="quick")))
    pairs = (", ".join(filter(None, ("exchange=pairs", each))) for each in STRATEGIES)
    settings = [*STRATEGIES, *(each.replace(" ", "") for each in pairs)]
    assert found == {f"alltoall[{each}]" if each else "alltoall" for each in settings}


def test_a_standard_survey_varies_counts_and_settings_and_the_rest_is_on_request() -> None:
    ranks = with_ranks(4, gpus=2)
    usual = exchanges(make_plan(ranks, Request()))
    requested = exchanges(make_plan(ranks, Request(only=("*alltoall*",))))
    full = exchanges(make_plan(ranks, Request(preset="full")))
    assert {
        "alltoallv[counts=skewed]",
        "alltoallv[counts=neighbours,strategy=duplicate-pointer]",
        "alltoall[per-gpu=1,strategy=duplicate-pointer]",
        "alltoall[split=messages,strategy=extra-message]",
        "alltoall[unique=1/2]",
    } <= usual
    assert usual < requested <= full
    assert "alltoallv[counts=skewed,exchange=pairs,strategy=direct]" in requested - usual
    assert len(usual) < 40


def test_strategies_for_several_processes_need_several_of_each_gpu() -> None:
    plan = make_plan(with_ranks(2, gpus=2), Request())
    found = [text for text in curves(plan) if "alltoall" in text]
    assert not [text for text in found if "extra-message" in text or "duplicate-pointer" in text]
    reasons = {each.path: each.reason for each in plan.unsupported_paths}
    for strategy in ("extra-message", "duplicate-pointer"):
        path = f"device@rank:0-1 -> device@rank:0-1 by alltoall[strategy={strategy}]"
        assert reasons[path] == f"each GPU has one process: strategy={strategy} is for several"


def test_an_exchange_has_buffers_at_each_gpu_and_not_at_each_rank() -> None:
    only = (f"{BOTH}alltoall[strategy=direct]",)
    (point,) = make_plan(with_ranks(4, gpus=2), Request(only=only, sizes="1MiB")).points
    assert point.buffer_bytes == 4 * 2**20


def test_counts_are_those_of_a_file_on_request(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix"
    text = f"{BOTH}alltoallv[counts={matrix}]"
    with pytest.raises(WorkloadError, match="cannot be opened: No such file"):
        make_plan(with_ranks(4, gpus=2), Request(workloads=(text,), sizes="64"))
    matrix.write_text("1 2\n3 4\n")
    plan = make_plan(with_ranks(4, gpus=2), Request(workloads=(text,), sizes="64"))
    assert curves(plan) == {text}


def test_ranks_divide_the_cpus_of_their_node_and_take_gpus_in_turn() -> None:
    bare = msgspec.structs.replace(machine(gpus=2), numa=NODES)
    four = place_ranks(bare, 4)
    assert [rank.gpu for rank in four] == [0, 0, 1, 1]
    assert [rank.gpu for rank in place_ranks(bare, 3, 1)] == [0, 1, -1]
    host = place_ranks(msgspec.structs.replace(bare, gpus=()), 4)
    assert host == (
        PlacedRank(0, (0, 2, 8, 10), 0),
        PlacedRank(1, (1, 3, 9, 11), 0),
        PlacedRank(2, (4, 6), 1),
        PlacedRank(3, (5, 7), 1),
    )
    assert crowd_note(host) == ""


def test_more_ranks_than_cpus_share_them() -> None:
    few = msgspec.structs.replace(machine(gpus=0), numa=(NumaNode(0, (0, 1), 2**30, 0),))
    crowd = place_ranks(few, 3)
    assert [rank.cpus for rank in crowd] == [(0,), (1,), (0,)]
    assert crowd_note(crowd).startswith("3 ranks share 2 CPUs")


def test_cpus_near_gpus_far_from_them_and_at_a_node_of_a_machine_with_two_sockets() -> None:
    two = captured("two-socket-4gpu")
    cpus = {node.index: set(node.cpus) for node in two.numa}
    local, remote, named = (place_ranks(two, 4, 1, where) for where in ("near", "far", "numa:1"))
    assert [rank.gpu for rank in local] == [gpu.index for gpu in two.gpus]
    assert [rank.numa for rank in local] == [gpu.numa for gpu in two.gpus] == [0, 0, 1, 1]
    assert [rank.numa for rank in remote] == [1, 1, 0, 0]
    assert [rank.numa for rank in named] == [1] * 4
    for rank in (*local, *remote, *named):
        assert set(rank.cpus) < cpus[rank.numa]
    assert placement_text(remote[2:]).startswith("rank:2 on CPUs 0")
    assert placement_text(remote[2:]).endswith(" of numa:0 with gpu:3 (far)")


def test_far_is_the_node_with_the_greatest_distance() -> None:
    bare = machine(gpus=1, nodes=4)
    gpu = msgspec.structs.replace(bare.gpus[0], numa=0)
    bare = msgspec.structs.replace(bare, gpus=(gpu,))
    far = {}
    for distances in ((), ((1, 21), (2, 16), (3, 28)), ((1, 21), (2, 21), (3, 21))):
        first = msgspec.structs.replace(bare.numa[0], distances=distances)
        shown = msgspec.structs.replace(bare, numa=(first, *bare.numa[1:]))
        far[distances] = place_ranks(shown, 1, cpus="far")[0].numa
    assert [*far.values()] == [2, 3, 2]


def test_ranks_of_several_placements_are_of_one_launch_and_send_nothing_to_each_other() -> None:
    two = captured("two-socket-4gpu")
    ranks = place_ranks(two, 2, 1, "near, far")
    local, remote = ranks[:2], ranks[2:]
    assert [rank.index for rank in ranks] == [0, 1, 2, 3]
    assert [rank.placement for rank in ranks] == ["near", "near", "far", "far"]
    assert [rank.gpu for rank in local] == [rank.gpu for rank in remote] == [0, 1]
    assert ({rank.numa for rank in local}, {rank.numa for rank in remote}) == ({0}, {1})
    assert placement_text(remote[:1]).endswith(" of numa:1 with gpu:0 (far)")
    assert [rank.placement for rank in place_ranks(two, 2, 1, "near,near")] == ["", ""]
    launched = msgspec.structs.replace(two, ranks=ranks)
    assert launch_options(launched, {}) == ["--ranks", "2", "--rank-cpus", "near,far"]
    library = {"messages": {"library": "MPICH", "mpicc": "/opt/mpi/bin/mpicc"}}
    assert launch_options(launched, library)[-2:] == ["--mpicc", "/opt/mpi/bin/mpicc"]
    plan = make_plan(launched, Request(preset="quick"))
    pairs = {frozenset(p.index for p in point.workload.places) for point in plan.points}
    assert pairs == {frozenset({0, 1}), frozenset({2, 3})}


def test_ranks_of_two_placements_do_not_crowd_each_other() -> None:
    two = captured("two-socket-4gpu")
    ranks = place_ranks(two, 4, 1, "near,far")
    assert {cpu for rank in ranks[:4] for cpu in rank.cpus} & set(ranks[4].cpus)
    assert crowd_note(ranks) == ""
    few = msgspec.structs.replace(two, numa=(NumaNode(0, (0, 1), 2**30, 0), two.numa[1]))
    assert crowd_note(place_ranks(few, 4, 0, "numa:1,numa:0")).startswith("4 ranks share 2 CPUs")


@pytest.mark.parametrize(
    ("name", "where", "reason"),
    [
        ("small-vm", "far", "this machine shows one NUMA node"),
        ("small-vm", "near,far", "this machine shows one NUMA node"),
        ("two-socket-4gpu", "numa:7", "there is no such node (it has numa:0, numa:1)"),
        ("two-socket-4gpu", "somewhere", "is no placement (write near, far or numa:1, or"),
        ("two-socket-4gpu", "near,", "'' is no placement (write near, far or numa:1, or several:"),
        ("two-socket-4gpu", "gpu:0", "is no placement (write near, far or numa:1,"),
    ],
)
def test_a_placement_that_cannot_be_had_is_an_error(name: str, where: str, reason: str) -> None:
    with pytest.raises(PlacementError, match=re.escape(reason)):
        place_ranks(captured(name), 2, 0, where)


def test_ranks_without_a_place_are_an_error() -> None:
    bare = machine(gpus=0)
    with pytest.raises(PlacementError, match="there is no GPU to measure"):
        place_ranks(bare, 2, 1)
    with pytest.raises(PlacementError, match="no NUMA node"):
        place_ranks(msgspec.structs.replace(bare, numa=()), 2)


def test_what_is_sent_is_no_setting_to_tune() -> None:
    found = find_targets(with_ranks(2, gpus=2), TuneRequest(sizes="1MiB"))
    assert {target.point.curve.text: [p.name for p in target.parameters]
            for target in found.targets}["device@rank:0 -> device@rank:1 by mpi-staged"] == [
        "chunk", "buffers"]  # fmt: skip
    assert not [t for t in found.targets if t.transfer.path.executor == "mpi"]


def test_settings_may_be_written_with_units_and_wrong_ones_are_named() -> None:
    here, pair = with_ranks(2, gpus=2), "device@rank:0 -> device@rank:1 by mpi-staged"
    (curve,) = requested_curves([f"{pair}[chunk=2MiB] of 16MiB"], here)
    assert curve.text == f"{pair}[chunk=2097152]"
    with pytest.raises(WorkloadError, match="cannot be measured here"):
        requested_curves([f"{pair}[chunk=3KiB]"], here)
