from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine.facts import GpuFacts, MigInstance
from waywiser.machine.visible_devices import visible_devices

GPUS = tuple(
    GpuFacts(uuid=f"GPU-{letter}{index}", name="X", pci=f"0000:0{index}:00.0")
    for index, letter in enumerate("aabc")
)
PARTS = (MigInstance("MIG-p0", "X MIG 1g"), MigInstance("MIG-p1", "X MIG 1g"))
CUT = msgspec.structs.replace(GPUS[0], mig="on", mig_instances=PARTS)


def seen(setting: str | None, gpus: tuple[GpuFacts, ...] = GPUS) -> list[str]:
    return [device.uuid for device in visible_devices(gpus, setting).devices]


def test_unset_shows_all_in_pci_order() -> None:
    assert seen(None) == ["GPU-a0", "GPU-a1", "GPU-b2", "GPU-c3"]


def test_numbers_and_uuids_choose_and_order() -> None:
    assert seen("2, GPU-a0") == ["GPU-b2", "GPU-a0"]


def test_the_beginning_of_a_uuid_is_enough_where_it_is_unambiguous() -> None:
    assert seen("GPU-b") == ["GPU-b2"]
    assert seen("GPU-a") == []


def test_an_entry_that_names_nothing_ends_the_list() -> None:
    found = visible_devices(GPUS, "1,9,0")
    assert [device.uuid for device in found.devices] == ["GPU-a1"]
    assert "'9' names no GPU" in found.notes[0]


def test_nothing_and_minus_one_hide_all() -> None:
    assert seen("") == []
    assert seen("-1") == []
    assert seen("NoDevFiles") == []


def test_an_entry_named_twice_leaves_nothing() -> None:
    found = visible_devices(GPUS, "0,GPU-a0")
    assert found.devices == ()
    assert "twice" in found.notes[0]


def test_a_cut_gpu_stands_for_its_first_instance_and_hides_the_rest() -> None:
    found = visible_devices((CUT, GPUS[1]), None)
    assert [device.uuid for device in found.devices] == ["MIG-p0"]
    assert "one MIG instance" in found.notes[0]


def test_an_instance_is_chosen_by_its_uuid() -> None:
    assert seen("MIG-p1", (CUT,)) == ["MIG-p1"]


def test_an_instance_behind_a_whole_gpu_is_skipped() -> None:
    assert seen("1,0", (CUT, GPUS[1])) == ["GPU-a1"]


def test_a_cut_gpu_without_instances_is_not_shown() -> None:
    empty = msgspec.structs.replace(CUT, mig_instances=())
    found = visible_devices((empty, GPUS[1]), None)
    assert [device.uuid for device in found.devices] == ["GPU-a1"]
    assert "no instance" in found.notes[0]


@given(st.permutations(range(4)))
def test_any_order_of_numbers_is_the_order_seen(order: list[int]) -> None:
    assert seen(",".join(map(str, order))) == [GPUS[index].uuid for index in order]


@given(st.text("012349,-GPUabMIG ", max_size=12))
def test_no_setting_breaks_it_or_shows_a_gpu_twice(setting: str) -> None:
    uuids = seen(setting)
    assert len(uuids) == len(set(uuids)) <= len(GPUS)
