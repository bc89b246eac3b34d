from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ('<!DOCTYPE t [<!ENTITY a "b">]>' + document(PU), "entities"),
    ],
)
def test_what_is_no_topology_is_an_error_in_one_line(text: str, why: str) -> None:
    with pytest.raises(TopologyError, match=why) as caught:
        read_xml(text, where="file.xml")
    assert "\n" not in str(caught.value)
    assert "file.xml" in str(caught.value)
