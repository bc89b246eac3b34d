"""The class of a link follows from the topology, and is unknown where the topology hides it."""

from __future__ import annotations

from itertools import combinations

import pytest
from msgspec.structs import replace

from profiles import machine as machine_of_two
from waywiser.machine.link_class import link_class
from waywiser.machine.machine import Gpu, Machine, NvLink, PcieLink
from waywiser.words import Transfer, Workload

H2D = "pinned@numa:0 -> device@gpu:{} by copy-engine of 67108864"
D2H = "device@gpu:{} -> pinned@numa:0 by copy-engine of 67108864"
P2P = "device@gpu:{} -> device@gpu:{} by copy-engine{} of 67108864"


def workload(*texts: str) -> Workload:
    return Workload(tuple(map(Transfer.parse, texts)))


def machine(**changes: object) -> Machine:
    """Three Gen4 GPUs that are peers without NVLink, each with these changes."""
    base = machine_of_two()
    gpus = tuple(
        replace(
            base.gpus[0],
            index=index,
            pcie=PcieLink(4, 16, 4, 16),
            nvlinks=(),
            peers=tuple(other for other in range(3) if other != index),
            compute="8.9",
            **changes,
        )
        for index in range(3)
    )
    return replace(base, gpus=gpus)


def named(machine: Machine, *texts: str) -> str:
    found = link_class(machine, workload(*texts))
    assert bool(found.name) != bool(found.unknown)
    return found.name


def unknown(machine: Machine, *texts: str) -> str:
    found = link_class(machine, workload(*texts))
    assert not found.name
    return found.unknown


def test_pcie_is_named_by_what_device_and_slot_can_have() -> None:
    idle = machine()
    slow = [replace(gpu, pcie=PcieLink(1, 8, 4, 16)) for gpu in idle.gpus]
    trained_low = replace(idle, gpus=tuple(slow))
    for each in (idle, trained_low):
        assert named(each, H2D.format(1)) == "PCIe 4 x16"
        assert named(each, D2H.format(2)) == "PCIe 4 x16"
        assert named(each, H2D.format(0), D2H.format(0)) == "PCIe 4 x16"


@pytest.mark.parametrize(("generation", "width"), [(0, 0), (5, 0), (0, 16)])
def test_a_pcie_link_that_is_not_visible_has_no_class(generation: int, width: int) -> None:
    hidden = [replace(gpu, pcie=PcieLink(5, 16, generation, width)) for gpu in machine().gpus]
    found = unknown(replace(machine(), gpus=tuple(hidden)), H2D.format(1))
    assert found == "generation and width of the PCIe link are not visible"


def test_two_gpus_are_joined_by_pcie_or_through_the_host() -> None:
    peers = machine()
    assert named(peers, P2P.format(0, 2, "")) == "PCIe 4 x16"
    assert named(peers, P2P.format(0, 2, "[peer=off]")) == "PCIe 4 x16 through the host"
    alone = replace(peers, gpus=tuple(replace(gpu, peers=()) for gpu in peers.gpus))
    assert named(alone, P2P.format(0, 2, "")) == "PCIe 4 x16 through the host"
    wider = replace(peers.gpus[2], pcie=PcieLink(5, 16, 5, 16))
    mixed = replace(peers, gpus=(*peers.gpus[:2], wider))
    assert "different classes" in unknown(mixed, P2P.format(0, 2, ""))


@pytest.mark.parametrize(
    ("compute", "generation"), [("6.0", 1), ("7.0", 2), ("8.0", 3), ("9.0", 4), ("10.0", 5)]
)
def test_nvlinks_are_named_by_generation_and_number(compute: str, generation: int) -> None:
    switched = replace(
        machine(),
        gpus=tuple(
            replace(gpu, compute=compute, nvlinks=(NvLink("switch", 12, 25.0),))
            for gpu in machine().gpus
        ),
    )
    assert named(switched, P2P.format(2, 0, "")) == f"NVLink {generation} x12"
    direct = replace(
        switched,
        gpus=tuple(
            replace(
                gpu,
                nvlinks=tuple(
                    NvLink(f"gpu:{other}", 2, 25.0) for other in range(3) if other != gpu.index
                ),
            )
            for gpu in switched.gpus
        ),
    )
    for one, other in combinations(range(3), 2):
        assert named(direct, P2P.format(one, other, "")) == f"NVLink {generation} x2"


def test_nvlinks_without_a_number_or_a_generation_have_no_class() -> None:
    def with_links(compute: str, link: NvLink) -> Machine:
        gpus = machine().gpus
        return replace(
            machine(),
            gpus=tuple(replace(gpu, compute=compute, nvlinks=(link,)) for gpu in gpus),
        )

    uncounted = NvLink("switch", 0, 0.0, gb_per_s_together=300.0)
    assert "number of the NVLinks" in unknown(with_links("9.0", uncounted), P2P.format(0, 1, ""))
    newer = with_links("23.0", NvLink("switch", 18, 100.0))
    assert "generation of the NVLinks" in unknown(newer, P2P.format(0, 1, ""))


def test_links_to_the_cpu_of_a_module() -> None:
    def with_gpu(**changes: object) -> Machine:
        gpu = replace(machine().gpus[0], **changes)
        return replace(machine(), gpus=(gpu,))

    c2c = NvLink("cpu", 10, 45.0, "NVLink-C2C")
    assert named(with_gpu(nvlinks=(c2c,), host="coherent"), H2D.format(0)) == "NVLink-C2C"
    power = with_gpu(nvlinks=(NvLink("cpu", 3, 25.0),), host="coherent", compute="7.0")
    assert named(power, D2H.format(0)) == "NVLink 2 x3"
    assert "of the module" in unknown(with_gpu(host="coherent"), H2D.format(0))
    assert "uses the host's memory" in unknown(with_gpu(host="integrated"), H2D.format(0))


def test_sets_say_how_many_gpus_copy_at_once() -> None:
    every = [H2D.format(index) for index in range(3)]
    assert named(machine(), *every) == "3 × PCIe 4 x16"
    assert named(machine(), P2P.format(0, 1, ""), P2P.format(1, 0, "")) == "PCIe 4 x16"
    narrow = replace(machine().gpus[1], pcie=PcieLink(4, 8, 4, 8))
    mixed = replace(machine(), gpus=(machine().gpus[0], narrow, machine().gpus[2]))
    assert "different classes" in unknown(mixed, *every)


def test_what_has_no_class_says_why() -> None:
    assert named(machine(), "device@gpu:1 -> device@gpu:1 by copy-engine of 67108864") == "memory"
    host = "pageable@numa:0 -> pageable@numa:0 by cpu of 67108864"
    assert unknown(machine(), host) == "host memory has no class"
    file = "file@file:scratch -> pageable@numa:0 by direct-io of 67108864"
    assert unknown(machine(), file) == "files have no class"
    assert "does not describe the GPU" in unknown(machine(), H2D.format(7))
    assert "MIG" in unknown(machine(mig="3g.40gb"), H2D.format(0))
    assert "messages" in unknown(machine(), "device@rank:0 -> device@rank:1 by mpi of 67108864")


def test_results_of_other_tools_name_gpus_without_links() -> None:
    bare = Gpu(index=0, uuid="", name="NVIDIA GeForce RTX 5090", pci="")
    found = replace(machine(), gpus=(bare, replace(bare, index=1)))
    assert "not visible" in unknown(found, H2D.format(0))
    assert unknown(found, P2P.format(0, 1, "")) == "the link between the GPUs is not visible"
