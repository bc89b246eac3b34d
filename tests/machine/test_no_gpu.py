"""The true reason why a machine has no GPU, in places where another one suggests itself."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from machine.captured import CAPTURES
from machine.fake_nvml import FakeNvml
from machine.fake_system import system_of
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import Capture, load_capture
from waywiser.machine.facts import NvmlFacts, PciFacts, SystemFacts
from waywiser.machine.machine import Machine
from waywiser.machine.nvml import MISMATCH, NO_LIBRARY
from waywiser.machine.nvml_facts import read_nvml
from waywiser.machine.system import is_tegra, kernel_driver
from waywiser.machine.unusable_gpus import lost_text

H200 = load_capture(CAPTURES / "h200-vm-8gpu.json")


def without_gpus(nvml: NvmlFacts, **system: object) -> Machine:
    """The H200s' machine, whose GPUs are not on its PCI bus unless ``system`` says so."""
    facts = msgspec.structs.replace(H200.system, **{"pci": (), **system})
    tree = H200.hwloc.replace("0302 [10de", "0200 [10de")
    return machine_from(Capture(hwloc=tree, system=facts, nvml=nvml))


@pytest.mark.parametrize(
    "nvml",
    [
        H200.nvml or NvmlFacts(),
        NvmlFacts("580.95.05", "13.0", reason="the NVIDIA driver 580.95.05 finds no GPU"),
        NvmlFacts(reason=NO_LIBRARY),
    ],
)
def test_in_a_job_without_gpus_slurm_is_the_reason(nvml: NvmlFacts) -> None:
    found = without_gpus(nvml, visible_devices="NoDevFiles")
    assert found.gpus == ()
    assert found.gpu_reason.startswith("Slurm gave this job no GPU: CUDA_VISIBLE_DEVICES is")
    assert "--gres=gpu:N" in found.gpu_reason and "unset" not in found.gpu_reason
    assert not any("NoDevFiles" in note for note in found.notes)


@pytest.mark.parametrize("setting", ["", "-1", "nodevfiles", "none", "8"])
def test_other_settings_that_hide_all_are_to_be_unset(setting: str) -> None:
    found = without_gpus(H200.nvml or NvmlFacts(), visible_devices=setting)
    assert found.gpu_reason == f"CUDA_VISIBLE_DEVICES={setting!r} hides all 8 GPUs (unset it)"


@pytest.mark.parametrize(
    ("system", "says"),
    [
        ({}, "install the driver"),
        ({"platform": "tegra"}, "JetPack has it from version 6 on"),
        ({"kernel_driver": "580.95.05"}, "kernel module 580.95.05 is loaded"),
        ({"platform": "tegra", "kernel_driver": "540.4.0"}, "Jetson"),
    ],
)
def test_a_missing_library_has_a_reason_by_the_system(system: dict[str, str], says: str) -> None:
    reason = without_gpus(NvmlFacts(reason=NO_LIBRARY), **system).gpu_reason
    assert says in reason and "libnvidia-ml.so.1" in reason
    assert "(" in reason and "\n" not in reason


def test_a_driver_of_another_version_than_the_library_is_the_reason() -> None:
    reason = read_nvml(FakeNvml([], init_error=18)).reason
    assert "different versions" in reason and "restart" in reason


@pytest.mark.parametrize("driver", ["535.183.01", ""])
@pytest.mark.parametrize("said", [MISMATCH, "Driver/library version mismatch"])
def test_gpus_of_another_driver_than_the_library_are_not_lost(driver: str, said: str) -> None:
    pci = tuple(PciFacts(f"0000:0{n}:00.0", driver="nvidia", access="open") for n in range(4))
    found = without_gpus(NvmlFacts(driver=driver, reason=said), pci=pci)
    assert found.unusable_gpus == () and lost_text(found) == ""
    assert found.gpu_reason == f"4 NVIDIA GPUs on the PCI bus, but {MISMATCH}"


@pytest.mark.parametrize(
    ("files", "tegra"),
    [
        ({"proc/device-tree/compatible": "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0"}, True),
        ({"proc/device-tree/compatible": "nvidia,tegra264\0"}, True),
        ({"etc/nv_tegra_release": "# R35 (release), REVISION: 4.1"}, True),
        ({"proc/device-tree/compatible": "nvidia,grace\0"}, False),
        ({"proc/device-tree/compatible": "raspberrypi,4-model-b\0"}, False),
        ({}, False),
    ],
)
def test_systems_on_a_chip_are_recognised(
    files: dict[str, str], tegra: bool, tmp_path: Path
) -> None:
    assert is_tegra(system_of(tmp_path, files)) == tegra


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12", "535.183.01"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Rel", "580.95.05"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82  Thu", "470.82"),
        ("something else", ""),
    ],
)
def test_the_version_of_the_kernel_module_is_read(text: str, version: str, tmp_path: Path) -> None:
    assert kernel_driver(system_of(tmp_path, {"proc/driver/nvidia/version": text})) == version
    assert kernel_driver(system_of(tmp_path / "bare", {})) == ""


def test_facts_of_an_old_capture_are_unknown() -> None:
    assert SystemFacts().platform == SystemFacts().kernel_driver == ""
    assert SystemFacts().cpu_topology is None
