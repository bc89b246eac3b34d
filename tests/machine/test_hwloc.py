from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import Capture
from waywiser.machine.hwloc import TopologyError, parse_bitmap, read_xml

PU = '<object type="PU" os_index="0" cpuset="0x1"/>'


def document(body: str, after: str = "") -> str:
    machine = f'<object type="Machine" cpuset="0x1">{body}</object>'
    return f'<topology version="2.0">{machine}{after}</topology>'


@given(st.sets(st.integers(0, 300)))
def test_a_bitmap_reads_back(numbers: set[int]) -> None:
    bits = sum(1 << number for number in numbers)
    words = [bits >> 32 * i & 0xFFFFFFFF for i in range(10)]
    text = ",".join(f"0x{word:08x}" if word else "" for word in reversed(words))
    assert parse_bitmap(text) == numbers


def test_an_infinite_bitmap_keeps_its_finite_words() -> None:
    assert parse_bitmap("0xf...f,0x00000005") == {0, 2}


def test_words_of_hwloc_1_become_those_of_hwloc_2() -> None:
    tree = read_xml(
        document(
            '<object type="Socket" os_index="0" cpuset="0x1">'
            '<object type="Cache" depth="3" cache_size="1024" cache_type="0" cpuset="0x1">'
            f'<object type="Cache" depth="1" cache_type="2" cpuset="0x1">{PU}</object></object>'
            "</object>"
        )
    )
    kinds = [item.type for item in tree.machine.walk()]
    assert kinds == ["Machine", "Package", "L3Cache", "L1iCache", "PU"]


def test_infos_are_found_at_the_machine_and_at_the_root() -> None:
    tree = read_xml(
        document(f'<info name="A" value="1"/>{PU}', '<info name="Architecture" value="arm"/>')
    )
    assert tree.infos == {"A": "1", "Architecture": "arm"}


def test_distances_are_read_in_pieces() -> None:
    tree = read_xml(
        document(
            PU,
            '<distances2hetero nbobjs="2" name="NVLinkBandwidth"><indexes>OSDev:7</indexes>'
            "<indexes>PCIDev:9</indexes><u64values>0 50000</u64values>"
            "<u64values>50000 0</u64values></distances2hetero>",
        )
    )
    (matrix,) = tree.distances
    assert matrix.keys == ["OSDev:7", "PCIDev:9"]
    assert matrix.values == [[0, 50000], [50000, 0]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<topology", "not XML"),
        ("<html/>", "its root is <html>"),
        (document(""), "without any processor"),
        (document('<object type="PU" cpuset="0xzz"/>'), "not a topology"),
        (document('<object type="PU" os_index="first"/>'), "not a topology"),
        (document("<object>" * 2000 + PU + "</object>" * 2000), "not a topology"),
        (document(PU, '<distances2 nbobjs="2"><indexes>0 1</indexes></distances2>'), "a matrix"),
        (document(PU, '<memattr><memattr_value value="-1"/></memattr>'), "an attribute of memory"),
        ('<!DOCTYPE t [<!ENTITY a "b">]>' + document(PU), "entities"),
    ],
)
def test_what_is_no_topology_is_an_error_in_one_line(text: str, why: str) -> None:
    with pytest.raises(TopologyError, match=why) as caught:
        read_xml(text, where="file.xml")
    assert "\n" not in str(caught.value)
    assert "file.xml" in str(caught.value)


def amd_topology(gpus: int, *, numbered: bool, device: str = "0380 [1002:7408]") -> str:
    """A machine with one GPU on each of some nodes, the first with the highest PCI address."""
    nodes = []
    for n in range(gpus):
        peers = " ".join(f"rsmi{other}" for other in range(gpus) if other != n)
        tool = (
            f'<object type="OSDev" gp_index="{50 + n}" name="rsmi{n}" subtype="RSMI">'
            '<info name="GPUModel" value="AMD Instinct MI250X"/>'
            f'<info name="AMDUUID" value="a{n}"/>'
            f'<info name="RSMIVRAMSize" value="67092480"/><info name="XGMIPeers" value="{peers} "/>'
            "</object>"
        )
        bus = f"0000:{0xE0 - 16 * n:02x}:00.0"
        nodes.append(
            f'<object type="Group" cpuset="{1 << n:#x}" nodeset="{1 << n:#x}">'
            f'<object type="NUMANode" os_index="{n}" cpuset="{1 << n:#x}" nodeset="{1 << n:#x}"/>'
            f'<object type="PU" os_index="{n}" cpuset="{1 << n:#x}" nodeset="{1 << n:#x}"/>'
            f'<object type="Bridge" bridge_type="0-1" depth="0"><object type="PCIDev" '
            f'pci_busid="{bus}" pci_type="{device} [1002:0b0c] 00" pci_link_speed="31.5">'
            f"{tool if numbered else ''}</object></object></object>"
        )
    machine = f'<object type="Machine" os_index="0" cpuset="0xff" nodeset="0xff">{"".join(nodes)}'
    return f'<topology version="2.0">{machine}</object></topology>'


@pytest.mark.parametrize("gpus", [1, 4])
def test_amd_gpus_of_a_topology_file_have_the_numbers_of_their_tools(gpus: int) -> None:
    found = machine_from(Capture(amd_topology(gpus, numbered=True)))
    assert [gpu.numa for gpu in found.gpus] == list(range(gpus)) and not found.gpu_reason
    first = found.gpus[0]
    assert (first.name, first.uuid, first.pci) == ("AMD Instinct MI250X", "a0", "0000:e0:00.0")
    assert first.memory_bytes == 67092480 * 1024 and first.pcie.gb_per_s_now == 31.5
    assert first.peers == tuple(range(1, gpus)) and first.nvlinks == ()
    assert any("xGMI" in note for note in found.notes)


@pytest.mark.parametrize("device", ["0380 [1002:740f]", "1200 [1002:74a1]", "0300 [1002:66af]"])
def test_amd_gpus_that_no_tool_numbered_are_in_the_order_of_their_addresses(device: str) -> None:
    found = machine_from(Capture(amd_topology(3, numbered=False, device=device)))
    assert [gpu.numa for gpu in found.gpus] == [2, 1, 0]
    assert {gpu.name for gpu in found.gpus} == {f"AMD GPU {device.split()[1]}"}


def test_amd_gpus_beside_those_of_nvidia_are_counted() -> None:
    text = amd_topology(2, numbered=True)
    nvidia = '<object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:2330] [0:0] a1"/>'
    found = machine_from(
        Capture(text.replace('<object type="Group"', f'{nvidia}<object type="Group"', 1))
    )
    assert [gpu.pci for gpu in found.gpus] == ["0000:01:00.0"]
    assert any("2 AMD GPUs" in note for note in found.notes)
