"""A GH200, whose GPU memory Linux shows as a NUMA node: what is bounded, named and planned."""

from __future__ import annotations

import pytest

from machine.captured import machine
from waywiser.machine.bounds import bound
from waywiser.machine.link_class import link_class
from waywiser.machine.machine import Machine
from waywiser.measure.plan.paths import find_paths
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import Request
from waywiser.words import Workload


@pytest.fixture(scope="module")
def grace() -> Machine:
    return machine("gh200")


def test_the_memory_of_the_gpu_is_no_memory_of_the_host(grace: Machine) -> None:
    assert [node.index for node in grace.numa] == [0]
    assert grace.gpus[0].numa == 0
    notes = " ".join(grace.notes)
    assert "numa:1 is skipped: it is a GPU's memory" in notes
    assert all(f"numa:{n} is skipped: it has no CPUs of its own" in notes for n in range(2, 9))


@pytest.mark.parametrize("preset", ["quick", "standard", "full"])
def test_no_buffer_of_the_host_is_planned_there(grace: Machine, preset: str) -> None:
    planned = make_plan(grace, Request(preset)).points
    paths = [transfer.path for point in planned for transfer in point.workload.transfers]
    places = {str(end.place) for path in paths for end in (path.source, path.destination)}
    assert places == {"numa:0", "gpu:0"}


@pytest.mark.parametrize(
    "text",
    [
        "pinned@numa:0 -> device@gpu:0 by copy-engine",
        "device@gpu:0 -> pageable@numa:0 by copy-engine",
        "managed@numa:0 -> managed@gpu:0 by page-fault",
    ],
)
def test_its_link_to_the_cpu_bounds_what_goes_to_the_gpu(grace: Machine, text: str) -> None:
    workload = Workload.parse(text)
    peak = bound(grace, workload)
    assert peak is not None and peak.narrowest.startswith("NVLink-C2C ")
    assert link_class(grace, workload).name == "NVLink-C2C"


def test_moving_managed_memory_is_no_copy_of_the_host(grace: Machine) -> None:
    """It goes over the link, and CPUs copy nothing of it."""
    paths = [path for path in find_paths(grace).valid if path.source.kind == "managed"]
    moving = [path for path in paths if path.source.place != path.destination.place]
    assert {path.executor for path in moving} == {"page-fault", "prefetch"}
