from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine.captured import ALL, CAPTURES, machine, shared_file
from waywiser.fitness.gpu import links
from waywiser.fitness.situation import Situation
from waywiser.machine.assemble import NO_CPU_TOPOLOGY, machine_from
from waywiser.machine.bounds import bound, why_unbounded
from waywiser.machine.capture import Capture, load_capture
from waywiser.machine.facts import SystemFacts
from waywiser.machine.machine import Gpu, Machine, NvLink, PcieLink, StatedAccess
from waywiser.words import Place, Workload

H2D = Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine")


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
    skipped = "numa:2 is skipped: it has no CPUs of its own (it is measured if --only names it)"
    assert found.notes == (skipped,)


def test_memory_without_cpus_is_a_place_if_it_is_named() -> None:
    """It has the CPUs of no other node, and comes after the nodes with CPUs."""
    capture = load_capture(CAPTURES / "no-gpu.json")
    found = machine_from(capture, {2})
    assert [(node.index, bool(node.cpus)) for node in found.numa] == [(0, 1), (1, 1), (2, 0)]
    assert found.numa[2].memory_bytes == 512 << 30
    assert found.numa[:2] == machine_from(capture).numa
    assert found.memory_only == {2} and machine_from(capture).memory_only == frozenset()
    why = "numa:2 is measured because it is named: it has no CPUs of its own"
    assert found.notes == (why,)


def test_a_named_node_without_memory_is_no_place() -> None:
    """Nor does a name change a node with CPUs, or the node that a GPU is near."""
    capture = load_capture(CAPTURES / "gh200.json")
    usual, found = machine_from(capture), machine_from(capture, range(9))
    assert [node.index for node in found.numa] == [0, 1]
    assert "numa:2 is skipped: it has no memory" in found.notes
    assert "numa:1 is measured because it is named: it is a GPU's memory" in found.notes
    assert (found.numa[0], found.gpus) == (usual.numa[0], usual.gpus)
    assert machine_from(capture, {0}) == usual


def test_a_named_node_that_may_not_be_used_is_no_place() -> None:
    capture = load_capture(CAPTURES / "no-gpu.json")
    system = msgspec.structs.replace(capture.system, memory_nodes=(0, 1))
    found = machine_from(msgspec.structs.replace(capture, system=system), {2})
    assert [node.index for node in found.numa] == [0, 1]
    assert found.notes == ("numa:2 is skipped: this process may not allocate from it",)


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


def nodes_of(memory: tuple[int, ...], **system: object) -> Machine:
    """A machine with these bytes in its NUMA nodes, one CPU each; 0 writes what hwloc writes both
    for no memory and for memory that it cannot find out."""
    nodes = "".join(
        f'<object type="NUMANode" os_index="{n}" cpuset="{1 << n:#x}" nodeset="{1 << n:#x}"'
        + (f' local_memory="{size}"/>' if size else "/>")
        for n, size in enumerate(memory)
    )
    cpus = "".join(
        f'<object type="PU" os_index="{n}" cpuset="{1 << n:#x}"/>' for n in range(len(memory))
    )
    every = f"{(1 << len(memory)) - 1:#x}"
    xml = (
        f'<topology version="2.0"><object type="Machine" os_index="0" cpuset="{every}" '
        f'nodeset="{every}">{nodes}{cpus}</object></topology>'
    )
    return machine_from(Capture(hwloc=xml, system=SystemFacts(**system)))  # type: ignore[arg-type]


@given(st.integers(0, 2**45), st.integers(0, 2**45))
def test_the_only_node_has_the_memory_of_the_system_or_an_unknown_one(
    stated: int, system: int
) -> None:
    found = nodes_of((stated,), memory_bytes=system)
    assert [node.memory_bytes for node in found.numa] == [max(stated, system)]
    assert not any("skipped" in note for note in found.notes)


@given(st.lists(st.sampled_from([0, 2**30, 2**38]), min_size=2, max_size=8))
def test_nodes_without_memory_are_skipped_only_if_another_states_some(memory: list[int]) -> None:
    found = nodes_of(tuple(memory), memory_bytes=2**40)
    kept = [n for n, size in enumerate(memory) if size or not any(memory)]
    assert [node.index for node in found.numa] == kept
    assert [node.memory_bytes for node in found.numa] == [memory[n] for n in kept]
    skipped = [note for note in found.notes if note.endswith("it has no memory")]
    assert len(skipped) == len(memory) - len(kept)


def test_what_the_firmware_states_of_a_node_names_the_node_of_the_cpus() -> None:
    """Here the numbers of nodes have a gap, and node 4 has no CPUs of its own."""
    nodes = "".join(
        f'<object type="NUMANode" os_index="{index}" gp_index="{10 + index}" cpuset="{cpus}" '
        f'nodeset="{1 << index:#x}" local_memory="1024"/>'
        for index, cpus in ((0, "0x1"), (2, "0x2"), (4, "0x2"))
    )
    cpus = "".join(f'<object type="PU" os_index="{n}" cpuset="{1 << n:#x}"/>' for n in (0, 1))
    stated = "".join(
        f'<memattr name="{name}"><memattr_value target_obj_type="NUMANode" '
        f'target_obj_gp_index="{10 + node}" value="{value}" initiator_cpuset="{by}"/></memattr>'
        for name, node, by, value in (
            ("Bandwidth", 0, "0x1", 12800),
            ("Latency", 0, "0x1", 80),
            ("Bandwidth", 2, "0x2", 6400),
            ("Latency", 2, "0x1", 140),
            ("WriteLatency", 2, "0x2", 70),
            ("Latency", 4, "0x2", 90),
            ("Latency", 2, "0x3", 1),
        )
    )
    xml = (
        '<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x3" nodeset="0x15">'
        f"{nodes}{cpus}</object>{stated}</topology>"
    )
    found = machine_from(Capture(hwloc=xml, system=SystemFacts(cpu_nodes=(0, 2))))
    assert {node.index: node.stated for node in found.numa} == {
        0: (StatedAccess(by=0, bytes_per_second=12800 * 2**20, seconds=80e-9),),
        2: (
            StatedAccess(by=2, bytes_per_second=6400 * 2**20),
            StatedAccess(by=0, seconds=140e-9),
        ),
    }


def test_the_distances_of_nodes_are_those_between_places() -> None:
    """The node without CPUs is none; the file numbers nodes in another order."""
    nodes = "".join(
        f'<object type="NUMANode" os_index="{index}" cpuset="{cpus}" nodeset="{1 << index:#x}" '
        'local_memory="1024"/>'
        for index, cpus in ((0, "0x1"), (2, "0x2"), (4, "0x2"))
    )
    cpus = "".join(f'<object type="PU" os_index="{n}" cpuset="{1 << n:#x}"/>' for n in (0, 1))
    xml = (
        '<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x3" nodeset="0x15">'
        f'{nodes}{cpus}</object><distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" '
        'indexing="os"><indexes length="6">4 0 2 </indexes>'
        '<u64values length="27">10 17 28 17 10 21 28 22 10 </u64values></distances2></topology>'
    )
    found = machine_from(Capture(hwloc=xml, system=SystemFacts(cpu_nodes=(0, 2))))
    assert {node.index: node.distances for node in found.numa} == {0: ((2, 21),), 2: ((0, 22),)}
    assert [found.numa[0].distance(node) for node in (0, 2, 4)] == [None, 21, None]


@pytest.mark.parametrize(
    ("cpu_nodes", "hides"), [((0,), True), ((0, 1), False)], ids=["one node", "two nodes"]
)
def test_a_hypervisor_that_shows_another_node_with_cpus_hides_none(
    cpu_nodes: tuple[int, ...], hides: bool
) -> None:
    notes = nodes_of((2**30,), virtual="KVM", cpu_nodes=cpu_nodes).notes
    assert any("may hide sockets" in note for note in notes) == hides


@pytest.mark.parametrize("shown", [True, False, None])
def test_a_system_that_hides_its_cores_says_so(shown: bool | None) -> None:
    notes = nodes_of((0,), memory_bytes=2**30, cpu_topology=shown).notes
    assert notes.count(NO_CPU_TOPOLOGY) == (shown is False)


@pytest.mark.parametrize("links", range(1, 11))
@pytest.mark.parametrize("rate", [0, 45000, 50000])
def test_c2c_links_bound_what_a_module_moves_between_its_memories(links: int, rate: int) -> None:
    capture = load_capture(CAPTURES / "gh200.json")
    assert capture.nvml is not None
    gpu = msgspec.structs.replace(capture.nvml.gpus[0], c2c_mb_per_s=(rate,) * links)
    nvml = msgspec.structs.replace(capture.nvml, gpus=(gpu,))
    found = machine_from(msgspec.structs.replace(capture, nvml=nvml))
    assert found.gpus[0].pcie == PcieLink()
    peak = bound(found, H2D)
    if rate:
        assert peak is not None
        assert peak.bytes_per_second == pytest.approx(links * rate * 1e6)
        assert peak.narrowest == "NVLink-C2C to gpu:0"
    else:
        assert peak is None and why_unbounded(found, H2D)


@pytest.mark.parametrize(
    ("changes", "host"),
    [
        ({"c2c_mb_per_s": (), "c2c_links": 0}, "coherent"),
        ({"c2c_mb_per_s": (), "name": "NVIDIA GB200"}, "coherent"),
        ({"c2c_mb_per_s": (), "name": "NVIDIA GB300", "addressing": ""}, "coherent"),
        ({"c2c_mb_per_s": (), "name": "Some later GPU"}, "coherent"),
        ({"c2c_mb_per_s": (), "name": "Some GPU", "addressing": "", "memory_node": 1}, "coherent"),
        ({"c2c_mb_per_s": (), "name": "NVIDIA GB10", "memory_bytes": 0}, "integrated"),
        ({"c2c_mb_per_s": (), "name": "NVIDIA GB10", "addressing": ""}, "integrated"),
        ({"c2c_mb_per_s": (), "name": "Orin (nvgpu)", "addressing": ""}, "integrated"),
        ({"c2c_mb_per_s": (), "name": "NVIDIA Thor", "addressing": "none"}, "integrated"),
        ({"c2c_mb_per_s": (), "name": "Some GPU", "memory_bytes": 0}, "integrated"),
    ],
)
def test_no_pcie_link_bounds_a_gpu_on_a_module_with_the_cpu(
    changes: dict[str, object], host: str
) -> None:
    capture = load_capture(CAPTURES / "gh200.json")
    assert capture.nvml is not None
    apart = {"memory_node": -1, **changes}
    gpu = msgspec.structs.replace(capture.nvml.gpus[0], **apart)
    nvml = msgspec.structs.replace(capture.nvml, gpus=(gpu,))
    found = machine_from(msgspec.structs.replace(capture, nvml=nvml))
    assert found.gpus[0].on_module == host
    assert bound(found, H2D) is None
    assert "PCIe" not in why_unbounded(found, H2D)


@pytest.mark.parametrize("addressing", ["", "none", "hmm"])
def test_other_gpus_hang_on_pcie(addressing: str) -> None:
    capture = h200()
    assert capture.nvml is not None
    gpus = [msgspec.structs.replace(gpu, addressing=addressing) for gpu in capture.nvml.gpus]
    nvml = msgspec.structs.replace(capture.nvml, gpus=tuple(gpus))
    peak = bound(machine_from(msgspec.structs.replace(capture, nvml=nvml)), H2D)
    assert peak is not None and peak.narrowest == "PCIe to gpu:0"


def test_profiles_of_older_versions_know_modules_by_their_models() -> None:
    old = Gpu(0, "", "NVIDIA GH200 480GB", "", compute="9.0", pcie=PcieLink(5, 16, 5, 16))
    found = msgspec.structs.replace(machine("h200-vm-4gpu"), gpus=(old,))
    assert bound(found, H2D) is None
    assert list(links(Situation(found))) == []
