"""Plans with the executor that loads NCCL, asked of the registry of this build."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import machine

from waywiser.machine.machine import Machine
from waywiser.measure.plan.paths import find_paths
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule
from waywiser.words import Workload

ALL = "device@gpu:0-2 -> device@gpu:0-2 by nccl"
COPY = "device@gpu:0 -> device@gpu:1 by copy-engine"


@pytest.fixture
def with_nccl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Three GPUs of a machine with a library that nobody loads."""
    library = tmp_path / "libnccl.so.2"
    library.touch()
    monkeypatch.setenv("WAYWISER_NCCL", str(library))
    return machine(gpus=3)


def plan(on: Machine, *workloads: str, **request: object) -> Plan:
    return make_plan(on, Request(workloads=workloads, **request))  # type: ignore[arg-type]


def test_all_gpus_together_are_a_path_of_it_alone(with_nccl: Machine) -> None:
    paths = [path for path in find_paths(with_nccl).valid if path.is_among_several]
    assert list(map(str, paths)) == [ALL]


def test_a_machine_with_one_gpu_has_none(with_nccl: Machine) -> None:
    found = find_paths(machine(gpus=1))
    assert not any("nccl" in path.executor for path in found.valid)


def test_only_a_full_survey_has_them_alone_and_each_collective_is_named(with_nccl: Machine) -> None:
    def texts(preset: str) -> set[str]:
        made = plan(with_nccl, preset=preset, only=("nccl gpu:0-2",))
        return {point.curve.text for point in made.points}

    named = {f"{ALL}[collective={each}]" for each in
             ("allreduce", "allgather", "reduce-scatter", "broadcast", "alltoall")}  # fmt: skip
    assert named <= texts("full")
    assert ALL not in texts("full")
    everything = plan(with_nccl, preset="standard").points
    assert all(
        point.workload.is_sustained for point in everything if "nccl" in point.workload.methods
    )


def test_a_survey_has_an_allreduce_beside_copies_and_compute(with_nccl: Machine) -> None:
    def sets(preset: str, **request: object) -> list[Workload]:
        points = plan(with_nccl, preset=preset, **request).points
        return [point.workload for point in points if point.workload.is_sustained]

    found = sets("standard")
    assert sets("full") == found and sets("quick") == []
    others = {"; ".join(transfer.way for transfer in each.transfers[1:]) for each in found}
    pinned, product = (
        "device@gpu:0 -> pinned@numa:0 by copy-engine",
        "device@gpu:0 -> device@gpu:0 by matrix-product",
    )
    pageable = "device@gpu:0 -> pageable@numa:0 by {}".format
    expected = {pinned, product, f"{pinned}; {product}", *map(pageable, ("copy-engine", "staged"))}
    assert expected <= others
    assert others - expected == {pageable("staged[slots=1,threads=1]")}
    sizes = {tuple(transfer.bytes for transfer in each.transfers) for each in found}
    assert sizes == {(2**28, 2**30), (2**28, 2**26), (2**28, 2**30, 2**26)}
    small = {each.transfers[0].bytes for each in sets("standard", memory_bytes=2**30)}
    assert max(small) == 2**27, "they are halved until they fit"


def test_sets_with_a_collective_are_timed_and_not_looked_at_for_links(with_nccl: Machine) -> None:
    made = plan(with_nccl, f"{ALL} of 64MiB; {COPY} of 64MiB", sizes="64MiB")
    (point,) = made.points
    assert point.process.loads == "nccl"
    assert not made.watched


def test_its_processes_measure_nothing_that_is_not_beside_it(with_nccl: Machine) -> None:
    both = f"{ALL}[collective=allgather] of 1MiB; {COPY} of 1MiB"
    made = plan(with_nccl, ALL, COPY, both, sizes="1KiB,1MiB")
    orders = list(Schedule(made))
    loads = {str(order.workload): order.process.loads for order in orders}
    assert loads == {
        f"{ALL}[collective=allreduce] of 1024": "nccl",
        f"{ALL}[collective=allreduce] of 1048576": "nccl",
        f"{COPY} of 1024": "",
        f"{COPY} of 1048576": "",
        str(Workload.parse(both)): "nccl",
    }
    stretches = [(order.process.block, order.process.loads) for order in orders]
    assert len(dict.fromkeys(stretches)) == sum(
        a != b for a, b in zip([None, *stretches], stretches, strict=False)
    ), "no worker is started twice"


def test_its_buffers_are_those_of_every_gpu(with_nccl: Machine) -> None:
    (point,) = plan(with_nccl, ALL, sizes="1MiB").points
    assert point.buffer_bytes == 6 * 2**20
    assert point.gpus == {0, 1, 2}
