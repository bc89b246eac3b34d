from __future__ import annotations

import msgspec
import pytest

from machine.captured import ALL, CAPTURES, machine, shared_file
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import Capture, load_capture
from waywiser.machine.machine import NvLink
from waywiser.words import Place


def h200(**system: object) -> Capture:
    capture = load_capture(CAPTURES / "h200-vm-8gpu.json")
    return msgspec.structs.replace(
        capture, system=msgspec.structs.replace(capture.system, **system)
    )


@pytest.mark.parametrize("name", ALL)
def test_every_captured_machine_has_places_with_cpus_and_memory(name: str) -> None:
    found = machine(name)
    assert found.packages and found.numa and found.caches
    for node in found.numa:
        assert node.cpus and node.memory_bytes > 0
        assert node.package in {package.index for package in found.packages}
    assert [gpu.index for gpu in found.gpus] == list(range(len(found.gpus)))
    assert bool(found.gpus) != bool(found.gpu_reason)
    nodes = {node.index for node in found.numa}
    for gpu in found.gpus:
        assert gpu.numa == -1 or gpu.numa in nodes
        assert set(gpu.peers) <= set(range(len(found.gpus))) - {gpu.index}
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_the_virtual_machine_shows_one_node_and_says_that_it_hides() -> None:
    found = machine("h200-vm-8gpu")
    assert len(found.gpus) == 8
    assert all(
        gpu.numa == -1 and gpu.nvlinks == (NvLink("switch", 18, 26.562),) for gpu in found.gpus
    )
    assert found.gpus[3].peers == (0, 1, 2, 4, 5, 6, 7)
    assert any("must be measured" in note for note in found.notes)


def test_bare_metal_shows_where_its_gpus_hang_and_what_disturbs() -> None:
    found = machine("two-socket-4gpu")
    assert [gpu.numa for gpu in found.gpus] == [0, 0, 1, 1]
    assert found.gpus[0].pcie.width_now == 8
    assert found.gpus[1].throttle == ("thermal slowdown",)
    assert found.gpus[2].processes == ("4711 python 2048 MiB",)
    assert found.notes == ()


def test_a_mig_instance_is_the_gpu_and_has_no_peers() -> None:
    (gpu,) = machine("mig").gpus
    assert (gpu.uuid[:4], gpu.mig, gpu.peers, gpu.nvlinks) == ("MIG-", "3g.71gb", (), ())
    assert gpu.memory_bytes == 70 << 30


def test_memory_without_cpus_is_no_place() -> None:
    found = machine("no-gpu")
    assert [node.index for node in found.numa] == [0, 1]
    assert found.notes == ("numa:2 is skipped: it has no CPUs of its own",)


def test_visible_devices_number_the_gpus() -> None:
    found = machine_from(h200(visible_devices="5,2"))
    assert [gpu.pci for gpu in found.gpus] == ["0000:00:0b.0", "0000:00:08.0"]
    assert [gpu.peers for gpu in found.gpus] == [(1,), (0,)]


def test_hidden_gpus_are_a_reason() -> None:
    found = machine_from(h200(visible_devices=""))
    assert found.gpus == ()
    assert "hides all 8 GPUs" in found.gpu_reason


def test_only_usable_cpus_are_listed() -> None:
    found = machine_from(h200(affinity=(2, 3)))
    assert found.numa[0].cpus == (2, 3)
    assert all(set(cache.cpus) <= {2, 3} for cache in found.caches)


def test_a_node_whose_cpus_are_all_forbidden_is_skipped() -> None:
    capture = load_capture(CAPTURES / "two-socket-4gpu.json")
    system = msgspec.structs.replace(capture.system, affinity=tuple(range(16)))
    found = machine_from(msgspec.structs.replace(capture, system=system))
    assert [node.index for node in found.numa] == [0]
    assert "may use none of its CPUs" in found.notes[0]
    assert [gpu.numa for gpu in found.gpus] == [0, 0, -1, -1]


def test_a_gpus_own_memory_is_no_host_place() -> None:
    capture = load_capture(CAPTURES / "two-socket-4gpu.json")
    assert capture.nvml is not None
    gpu = msgspec.structs.replace(capture.nvml.gpus[0], memory_node=1, addressing="ats")
    nvml = msgspec.structs.replace(capture.nvml, gpus=(gpu,))
    found = machine_from(msgspec.structs.replace(capture, nvml=nvml))
    assert [node.index for node in found.numa] == [0]
    assert found.gpus[0].pageable_access


def test_gpus_without_a_driver_are_counted_in_the_reason() -> None:
    capture = h200()
    nvml = msgspec.structs.replace(capture.nvml, gpus=(), reason="no NVIDIA driver (install it)")
    found = machine_from(msgspec.structs.replace(capture, nvml=nvml))
    assert found.gpu_reason == "8 NVIDIA GPUs on the PCI bus, but no NVIDIA driver (install it)"


def test_hwloc_1_keeps_packages_inside_numa_nodes() -> None:
    found = machine_from(load_capture(CAPTURES / "hwloc-1.xml"))
    assert [(node.index, node.cpus, node.package) for node in found.numa] == [
        (0, (0,), 0),
        (1, (1,), 1),
    ]
    assert [package.model for package in found.packages] == ["Old Processor"] * 2
    assert {(cache.level, cache.bytes) for cache in found.caches} == {(3, 8388608), (1, 32768)}
    assert [(gpu.numa, gpu.name) for gpu in found.gpus] == [(1, "NVIDIA GPU [10de:1024]")]


def test_a_power9_node_with_four_gpus() -> None:
    found = machine_from(load_capture(shared_file("coral-lassen.xml")))
    assert [place.index for place in (Place("numa", node.index) for node in found.numa)] == [0, 8]
    assert [gpu.numa for gpu in found.gpus] == [0, 0, 8, 8]
    assert found.gpus[0].memory_bytes == 16515072 << 10
    assert found.packages[0].cores == 20 and found.packages[0].cpus == 80


def test_a_dgx_2_in_hwloc_3s_form_with_its_switches() -> None:
    found = machine_from(load_capture(shared_file("nvidiaDGX2.xml")))
    assert len(found.gpus) == 16
    assert all(gpu.nvlinks == (NvLink("switch", 6, 25.0),) for gpu in found.gpus)
    assert all(len(gpu.peers) == 15 for gpu in found.gpus)
    assert [gpu.numa for gpu in found.gpus] == [0] * 8 + [1] * 8


SIBLINGS_ADJACENT = """<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0xf" nodeset="0x1">
  <object type="Package" os_index="0" cpuset="0xf" nodeset="0x1">
   <object type="NUMANode" os_index="0" cpuset="0xf" nodeset="0x1" local_memory="1073741824"/>
   <object type="L3Cache" cpuset="0xf" nodeset="0x1" cache_size="1048576" depth="3">
    <object type="Core" os_index="0" cpuset="0x3" nodeset="0x1">
     <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/>
    </object>
    <object type="Core" os_index="1" cpuset="0xc" nodeset="0x1">
     <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/>
    </object>
   </object>
  </object>
 </object>
</topology>
"""


def test_cpus_come_with_the_first_of_each_core_before_the_second_of_any() -> None:
    capture = load_capture(CAPTURES / "small-vm.json")
    system = msgspec.structs.replace(capture.system, affinity=(0, 1, 2, 3))
    found = machine_from(msgspec.structs.replace(capture, hwloc=SIBLINGS_ADJACENT, system=system))
    assert [node.cpus for node in found.numa] == [(0, 2, 1, 3)]


def test_the_only_node_has_all_memory_of_the_system() -> None:
    """Virtual machines were seen whose node reports 18 GiB of the system's 504."""
    result = machine_from(h200()).numa[0].memory_bytes
    assert machine_from(h200(memory_bytes=result + 2**30)).numa[0].memory_bytes == result + 2**30
    assert machine_from(h200(memory_bytes=result - 2**30)).numa[0].memory_bytes == result
    two = load_capture(CAPTURES / "two-socket-4gpu.json")
    more = msgspec.structs.replace(two.system, memory_bytes=2**50)
    kept = machine_from(msgspec.structs.replace(two, system=more))
    assert kept.numa == machine_from(two).numa
