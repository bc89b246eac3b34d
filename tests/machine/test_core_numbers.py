"""Cores with their logical numbers, as hwloc and launchers count them."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec
import pytest
from tests.machine.captured import ALL, machine, shared_file

from profiles import machine as small
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import load_capture
from waywiser.machine.cores import cores_of
from waywiser.machine.machine import Cache, NumaNode


@pytest.mark.parametrize("name", ["coral-lassen.xml", "nvidiaDGX2.xml"])
def test_numbers_are_those_of_hwloc(name: str) -> None:
    """Two sockets with two and four threads of each core, of which a process may use some."""
    path = shared_file(name)
    found = machine_from(load_capture(path))
    usable = {cpu for node in found.numa for cpu in node.cpus}
    of_file = [
        tuple(sorted({int(pu.get("os_index", "")) for pu in core.iter() if is_pu(pu)} & usable))
        for core in ElementTree.parse(path).getroot().iter("object")
        if core.get("type") == "Core"
    ]
    assert [core.cpus for core in cores_of(found)] == [cpus for cpus in of_file if cpus]


def is_pu(element: ElementTree.Element) -> bool:
    return element.tag == "object" and element.get("type") == "PU"


@pytest.mark.parametrize("name", ALL)
def test_every_cpu_is_of_one_core(name: str) -> None:
    here = machine(name)
    cores = cores_of(here)
    assert [core.number for core in cores] == list(range(len(cores)))
    cpus = [cpu for core in cores for cpu in core.cpus]
    assert sorted(cpus) == sorted(cpu for node in here.numa for cpu in node.cpus)


def test_nodes_whose_cpus_alternate_follow_one_another() -> None:
    """Even CPUs are of the first node; CPU n + 4 is of the core of CPU n."""
    nodes = tuple(NumaNode(n, (n, n + 2, n + 4, n + 6), 0, n) for n in (1, 0))
    caches = tuple(Cache(1, 2**15, (n, n + 4)) for n in range(4))
    here = msgspec.structs.replace(small(), numa=nodes, caches=caches)
    assert [(core.node, core.cpus) for core in cores_of(here)] == [
        (0, (0, 4)),
        (0, (2, 6)),
        (1, (1, 5)),
        (1, (3, 7)),
    ]
