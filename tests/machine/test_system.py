from __future__ import annotations

import os
from pathlib import Path

import pytest

from machine.fake_system import system_of
from waywiser.machine.facts import PciFacts
from waywiser.machine.system import read_pci, read_system


def test_nvidias_display_devices_are_found_with_their_links(tmp_path: Path) -> None:
    gpu = "sys/bus/pci/devices/0000:1b:00.0"
    bare = "sys/bus/pci/devices/0000:3d:00.0"
    audio = "sys/bus/pci/devices/0000:1b:00.1"
    other = "sys/bus/pci/devices/0000:05:00.0"
    files = system_of(
        tmp_path,
        {
            f"{gpu}/vendor": "0x10de",
            f"{gpu}/class": "0x030200",
            f"{gpu}/numa_node": "1",
            f"{gpu}/current_link_speed": "2.5 GT/s PCIe",
            f"{gpu}/current_link_width": "16",
            f"{gpu}/max_link_speed": "32.0 GT/s PCIe",
            f"{gpu}/max_link_width": "16",
            f"{bare}/vendor": "0x10de",
            f"{bare}/class": "0x030000",
            f"{bare}/max_link_width": "255",
            f"{audio}/vendor": "0x10de",
            f"{audio}/class": "0x040300",
            f"{other}/vendor": "0x1002",
            f"{other}/class": "0x030000",
        },
    )
    assert read_pci(files) == (
        PciFacts("0000:1b:00.0", 1, 1, 16, 5, 16),
        PciFacts("0000:3d:00.0"),
    )


def test_facts_of_the_system(tmp_path: Path) -> None:
    files = system_of(
        tmp_path,
        {
            "proc/cpuinfo": "processor : 0\nmodel name : Some Processor",
            "proc/self/status": "Mems_allowed_list:\t0-1",
            "proc/meminfo": "MemTotal:       1024 kB\nMemFree:         512 kB",
            "sys/devices/system/node/has_cpu": "0",
        },
    )
    facts = read_system(files)
    assert facts.cpu_model == "Some Processor"
    assert (facts.memory_nodes, facts.cpu_nodes, facts.pci) == ((0, 1), (0,), ())
    assert facts.memory_bytes == 2**20
    assert facts.affinity and facts.hostname


def gpus_of(root: Path, drivers: dict[str, str], files: dict[str, str]) -> tuple[PciFacts, ...]:
    """NVIDIA GPUs by address, each with the driver that holds it, or none."""
    devices = {
        f"sys/bus/pci/devices/{address}/{name}": text
        for address in drivers
        for name, text in (("vendor", "0x10de"), ("class", "0x030200"))
    }
    found = system_of(root, devices | files)
    for address, driver in drivers.items():
        if driver:
            link = root / f"sys/bus/pci/devices/{address}/driver"
            link.symlink_to(f"../../../bus/pci/drivers/{driver}")
    return read_pci(found)


def shown(*addresses: str) -> dict[str, str]:
    """What NVIDIA's driver shows of GPUs, whose device nodes are numbered from 0."""
    return {
        f"proc/driver/nvidia/gpus/{address}/information": (
            f"Model: \t\t NVIDIA H200\nBus Location: \t {address}\nDevice Minor: \t {minor}"
        )
        for minor, address in enumerate(addresses)
    }


A, B, C = "0000:17:00.0", "0000:31:00.0", "0000:b1:00.0"


def test_each_gpu_has_the_driver_that_holds_it(tmp_path: Path) -> None:
    found = gpus_of(tmp_path, {A: "nvidia", B: "vfio-pci", C: ""}, {})
    assert [device.driver for device in found] == ["nvidia", "vfio-pci", ""]


def test_where_no_device_shows_a_driver_it_is_unknown(tmp_path: Path) -> None:
    assert [device.driver for device in gpus_of(tmp_path, {A: "", B: ""}, {})] == [None, None]


def test_bare_metal_may_open_every_device_node(tmp_path: Path) -> None:
    nodes = {f"dev/nvidia{minor}": "" for minor in range(2)}
    found = gpus_of(tmp_path, {A: "nvidia", B: "nvidia"}, shown(A, B) | nodes)
    assert [device.access for device in found] == ["open", "open"]


def test_a_container_shows_the_gpus_that_it_was_given(tmp_path: Path) -> None:
    """The NVIDIA Container Toolkit hides the others from the driver's folder, or leaves out their
    device nodes."""
    drivers = dict.fromkeys((A, B, C), "nvidia")
    found = gpus_of(tmp_path, drivers, shown(A, B) | {"dev/nvidia0": ""})
    assert [device.access for device in found] == ["open", "absent", "hidden"]


def test_a_batch_job_may_not_open_the_nodes_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {f"dev/nvidia{minor}": "" for minor in range(2)}
    real = os.access

    def access(path: Path, mode: int, **options: bool) -> bool:
        return Path(path).name != "nvidia1" and real(path, mode, **options)

    monkeypatch.setattr(os, "access", access)
    found = gpus_of(tmp_path, {A: "nvidia", B: "nvidia"}, shown(A, B) | nodes)
    assert [device.access for device in found] == ["open", "denied"]


def test_without_the_drivers_folder_access_is_unknown(tmp_path: Path) -> None:
    (device,) = gpus_of(tmp_path, {A: "nvidia"}, {"dev/nvidia0": ""})
    assert device.access == ""


def test_virtual_functions_are_no_gpus_of_their_own(tmp_path: Path) -> None:
    link = tmp_path / f"sys/bus/pci/devices/{B}/physfn"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../{A}")
    assert [device.address for device in gpus_of(tmp_path, {A: "nvidia", B: "nvidia"}, {})] == [A]


@pytest.mark.parametrize(
    ("files", "shows"),
    [
        ({"sys/devices/system/cpu/cpu0/topology/core_id": "0"}, True),
        ({"sys/devices/system/cpu/cpu0/online": "1"}, False),
        ({"sys/devices/system/cpu/online": "0-1"}, None),
        ({}, None),
    ],
)
def test_whether_the_kernel_shows_cores(
    files: dict[str, str], shows: bool | None, tmp_path: Path
) -> None:
    assert read_system(system_of(tmp_path, files)).cpu_topology is shows
