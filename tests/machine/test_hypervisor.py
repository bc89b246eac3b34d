from __future__ import annotations

from pathlib import Path

import pytest

from machine.fake_system import system_of
from waywiser.machine.hypervisor import hypervisor
from waywiser.machine.machine import EMULATED

FLAGGED = "processor : 0\nflags : fpu hypervisor sse"
BARE = "processor : 0\nflags : fpu sse"
ARM = "processor : 0\nFeatures : fp asimd"
VENDOR = "sys/class/dmi/id/sys_vendor"


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"proc/cpuinfo": FLAGGED}, "unknown hypervisor"),
        ({"proc/cpuinfo": FLAGGED, VENDOR: "QEMU"}, "QEMU/KVM"),
        ({"proc/cpuinfo": FLAGGED, VENDOR: "Google"}, "Google Compute Engine"),
        ({"proc/cpuinfo": BARE, VENDOR: "Amazon EC2"}, ""),
        ({"proc/cpuinfo": ARM, VENDOR: "QEMU"}, "QEMU/KVM"),
        ({"proc/cpuinfo": ARM, VENDOR: "Amazon EC2"}, ""),
        ({"proc/cpuinfo": FLAGGED, "sys/hypervisor/type": "xen"}, "Xen"),
        ({"proc/device-tree/hypervisor/compatible": "linux,kvm"}, "KVM"),
        ({}, ""),
        ({"proc/cpuinfo": f"model name\t: QEMU TCG CPU version 7.2\n{FLAGGED}"}, EMULATED),
        ({"proc/cpuinfo": f"{ARM}\nCPU implementer\t: 0x00\n", VENDOR: "QEMU"}, EMULATED),
        ({"proc/cpuinfo": f"{ARM}\nCPU implementer\t: 0x41\n", VENDOR: "QEMU"}, "QEMU/KVM"),
        ({"proc/cpuinfo": f"model name\t: A QEMU TCG \n{FLAGGED}", VENDOR: "QEMU"}, "QEMU/KVM"),
    ],
)
def test_who_runs_the_machine(files: dict[str, str], name: str, tmp_path: Path) -> None:
    assert hypervisor(system_of(tmp_path, files)) == name
