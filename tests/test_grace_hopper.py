"""A GH200 and a node with GB200s, whose GPU memory Linux shows as NUMA nodes: what is bounded,
named and planned. Public outputs of real ones show these nodes (`captures.synthesise`)."""

from __future__ import annotations

import pytest

from machine.captured import CAPTURES, machine
from waywiser.curves.headline import headline
from waywiser.machine import capture
from waywiser.machine.assemble import machine_from
from waywiser.machine.bounds import bound, why_unbounded
from waywiser.machine.link_class import link_class
from waywiser.machine.machine import Machine
from waywiser.measure.plan.paths import find_paths
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.scope import MachineSelection
from waywiser.measure.survey_run import prepare
from waywiser.words import Workload

OUT = "pageable@numa:1 -> pageable@numa:0 by cpu"


@pytest.fixture(scope="module")
def grace() -> Machine:
    return machine("gh200")


def test_the_memory_of_the_gpu_is_no_memory_of_the_host(grace: Machine) -> None:
    assert [node.index for node in grace.numa] == [0]
    assert grace.gpus[0].numa == 0
    notes = " ".join(grace.notes)
    assert "numa:1 is skipped: it is a GPU's memory" in notes
    assert all(f"numa:{n} is skipped: it has no memory" in notes for n in range(2, 9))


def test_the_memory_of_each_of_four_gpus_is_no_memory_of_the_host() -> None:
    """Each is near the CPUs of its module; 28 nodes are of none."""
    found = machine("gb200")
    assert [node.index for node in found.numa] == [0, 1]
    assert [gpu.numa for gpu in found.gpus] == [0, 0, 1, 1]
    why = {note.partition(" ")[0]: note.partition(": ")[2] for note in found.notes}
    of_gpus = [node for node, reason in why.items() if reason.startswith("it is a GPU's memory")]
    assert of_gpus == ["numa:2", "numa:10", "numa:18", "numa:26"]
    assert sum(reason == "it has no memory" for reason in why.values()) == 28


@pytest.mark.parametrize(
    ("name", "preset", "nodes", "gpus"),
    [
        ("gh200", "quick", 1, 1),
        ("gh200", "standard", 1, 1),
        ("gh200", "full", 1, 1),
        ("gb200", "quick", 2, 4),
        ("gb200", "check", 2, 4),
    ],
)
def test_no_buffer_of_the_host_is_planned_there(
    name: str, preset: str, nodes: int, gpus: int
) -> None:
    planned = make_plan(machine(name), Request(preset)).points
    paths = [transfer.path for point in planned for transfer in point.workload.transfers]
    places = {str(each) for path in paths for place in path.places for each in place.each}
    known = [f"numa:{n}" for n in range(nodes)] + [f"gpu:{n}" for n in range(gpus)]
    assert places == {*known}


def test_gpus_beside_two_cpus_exchange_over_their_switch_alone() -> None:
    """The rate of the links to the CPUs is in none of the outputs."""
    found = machine("gb200")
    between = Workload.parse("device@gpu:0 -> device@gpu:3 by copy-engine")
    peak = bound(found, between)
    assert peak is not None and peak.narrowest == "NVLink out of gpu:0"
    assert link_class(found, between).name == "NVLink 5 x18"
    for node in (0, 1):
        to_gpu = Workload.parse(f"pinned@numa:{node} -> device@gpu:0 by copy-engine")
        assert "on a module with the CPU" in why_unbounded(found, to_gpu)
        assert "PCIe" not in link_class(found, to_gpu).name


@pytest.mark.parametrize(
    ("named", "places"),
    [
        (Request("quick", ("pageable@numa:1 by cpu",)), {"numa:0", "numa:1"}),
        (Request("quick", ("NUMA 1 by cpu",)), {"numa:0", "numa:1"}),
        (Request(workloads=(f"{OUT} of 1MiB",)), {"numa:0", "numa:1"}),
        (Request("quick", ("pageable by cpu",)), {"numa:0"}),
    ],
    ids=["memory", "node", "workload", "none"],
)
def test_the_memory_of_the_gpu_is_measured_by_the_host_if_it_is_named(
    monkeypatch: pytest.MonkeyPatch, named: Request, places: set[str]
) -> None:
    """CPUs of numa:0 copy, from and to it: it has none."""
    found = capture.load_capture(CAPTURES / "gh200.json")
    monkeypatch.setattr(capture, "capture_live", lambda: found)
    points = prepare(named, MachineSelection(gpus="none")).plan.points
    transfers = [transfer for point in points for transfer in point.workload.transfers]
    assert {str(place) for each in transfers for place in each.path.places} == places


def test_a_copy_of_gpu_memory_that_is_a_node_is_no_headline_and_has_no_known_link(
    grace: Machine,
) -> None:
    """It need not cross the link to the CPU, which bounds other copies of the host with the GPU."""
    named = machine_from(capture.load_capture(CAPTURES / "gh200.json"), {1})
    copies = [Workload.parse(f"pinned@numa:{n} -> device@gpu:0 by copy-engine") for n in (0, 1)]
    assert [*headline(named, copies)] == [*headline(grace, copies[:1])] == [copies[0].curve]
    assert bound(named, copies[0]) == bound(grace, copies[0])
    assert bound(named, copies[0]) is not None
    assert "numa:1, which has no CPUs" in why_unbounded(named, copies[1])
    assert link_class(named, copies[1]).unknown and link_class(named, copies[0]).name


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
