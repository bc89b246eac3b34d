from __future__ import annotations

import os
from pathlib import Path

import pytest

from machine.fake_nvml import FakeNvml
from machine.fake_system import system_of
from waywiser.machine.environment import environment, gpu_environment, host_environment
from waywiser.machine.isolation import acs_control, isolation
from waywiser.machine.system_files import SystemFiles

BRIDGE = "devices/pci0000:00/0000:00:01.0/0000:01:00.0"
"""A root port and the upstream port of a switch."""

GPU0 = f"{BRIDGE}/0000:02:00.0/0000:03:00.0"
GPU1 = f"{BRIDGE}/0000:02:01.0/0000:04:00.0"
ALONE = "devices/pci0000:80/0000:80:01.0/0000:81:00.0"


def space(control: int | None, size: int = 4096) -> bytes:
    """A configuration space: another capability, then ACS with this control register."""
    data = bytearray(size)
    if size > 0x110 and control is not None:
        data[0x100:0x104] = (0x0001 | 0x1 << 16 | 0x148 << 20).to_bytes(4, "little")
        data[0x148:0x14C] = (0x000D | 0x1 << 16).to_bytes(4, "little")
        data[0x14E:0x150] = control.to_bytes(2, "little")
    return bytes(data)


def machine_of(root: Path, configs: dict[str, bytes], gpus: tuple[str, ...]) -> SystemFiles:
    """A /sys with these GPUs, and configuration spaces by the last part of a path."""
    by_name = root / "sys/bus/pci/devices"
    by_name.mkdir(parents=True)
    for gpu in gpus:
        folder = root / "sys" / gpu
        folder.mkdir(parents=True)
        (folder / "class").write_text("0x030200\n")
        (folder / "vendor").write_text("0x10de\n")
        for device in (folder, *folder.parents):
            if device.name.count(":") == 2 and not (by_name / device.name).exists():
                (by_name / device.name).symlink_to(os.path.relpath(device, by_name))
    for name, config in configs.items():
        (by_name / name / "config").write_bytes(config)
    return SystemFiles(root)


@pytest.mark.parametrize(
    ("config", "control"),
    [
        (space(0b0101_1101), 0b0101_1101),
        (space(0), 0),
        (space(None), 0),
        (space(0b1100, size=64), None),
        (b"", None),
        (space(0b1100, size=256), None),
        (b"\xff" * 4096, 0),
    ],
)
def test_the_control_register_is_found_behind_other_capabilities(
    config: bytes, control: int | None
) -> None:
    assert acs_control(config) == control


def test_a_ring_of_capabilities_ends() -> None:
    data = bytearray(4096)
    data[0x100:0x104] = (0x0001 | 0x100 << 20).to_bytes(4, "little")
    assert acs_control(bytes(data)) == 0


def test_bridges_between_gpus_of_one_switch_are_read(tmp_path: Path) -> None:
    configs = {"0000:02:00.0": space(0b1101), "0000:02:01.0": space(0b0001)}
    found = isolation(machine_of(tmp_path, configs, (GPU0, GPU1, ALONE)))
    assert found["acs_redirects"] == ["0000:02:00.0"]
    assert found["acs_unreadable"] == []


def test_what_only_root_reads_is_unknown(tmp_path: Path) -> None:
    configs = {"0000:02:00.0": space(0b1101, size=64)}
    found = isolation(machine_of(tmp_path, configs, (GPU0, GPU1)))
    assert found["acs_redirects"] == []
    assert found["acs_unreadable"] == ["0000:02:00.0", "0000:02:01.0"]


def test_gpus_without_a_common_switch_need_no_acs(tmp_path: Path) -> None:
    found = isolation(machine_of(tmp_path, {}, (GPU0, ALONE)))
    assert (found["acs_redirects"], found["acs_unreadable"]) == ([], [])


def test_the_mode_of_the_iommu_is_that_of_the_groups_of_gpus(tmp_path: Path) -> None:
    files = machine_of(tmp_path, {}, (GPU0, GPU1))
    for gpu, kind in ((GPU0, "DMA-FQ"), (GPU1, "identity")):
        group = tmp_path / "sys" / gpu / "iommu_group"
        group.mkdir()
        (group / "type").write_text(f"{kind}\n")
    assert isolation(files)["iommu_types"] == ["DMA-FQ", "identity"]
    assert host_environment(files)["iommu_types"] == ["DMA-FQ", "identity"]


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"sys/class/misc/tdx_guest/dev": "10:1"}, "TDX"),
        ({"proc/cpuinfo": "flags : fpu tdx_guest hypervisor"}, "TDX"),
        ({"sys/class/misc/sev-guest/dev": "10:2"}, "SEV-SNP"),
        ({"proc/cpuinfo": "flags : fpu sev sev_es sev_snp"}, ""),
        ({}, ""),
    ],
)
def test_confidential_guests_are_known_by_device_or_flag(
    files: dict[str, str], kind: str, tmp_path: Path
) -> None:
    assert isolation(system_of(tmp_path, files))["confidential_guest"] == kind


class _State:
    def __init__(self, feature: int) -> None:
        self.ccFeature = feature


class _Confidential(FakeNvml):
    def __init__(self, feature: int) -> None:
        super().__init__([])
        self.feature = feature

    def nvmlSystemGetConfComputeState(self) -> _State:
        return _State(self.feature)


@pytest.mark.parametrize(("feature", "state"), [(1, "on"), (0, "off")])
def test_the_driver_says_whether_gpus_are_confidential(feature: int, state: str) -> None:
    assert gpu_environment(_Confidential(feature))["gpu_confidential"] == state


def test_a_driver_that_does_not_know_is_no_answer(tmp_path: Path) -> None:
    found = environment(system_of(tmp_path, {}), {}, FakeNvml([]))
    assert found["gpu_confidential"] == "unknown"
    gone = environment(system_of(tmp_path, {}), {}, FakeNvml([], init_error=12))
    assert "gpu_confidential" not in gone
    assert not found.keys() & {"confidential_guest", "iommu_types", "acs_redirects", "cufile"}
