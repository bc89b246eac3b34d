"""Which hypervisor this machine runs under, if any."""

from __future__ import annotations

import re

from waywiser.machine.machine import EMULATED
from waywiser.machine.system_files import SystemFiles

_PRODUCTS = (
    ("firecracker", "Firecracker"),
    ("cloud hypervisor", "Cloud Hypervisor"),
    ("google", "Google Compute Engine"),
    ("amazon", "Amazon EC2"),
    ("vmware", "VMware"),
    ("microsoft", "Hyper-V"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("openstack", "OpenStack"),
    ("xen", "Xen"),
    ("parallels", "Parallels"),
    ("kvm", "KVM"),
    ("qemu", "QEMU/KVM"),
)
_EMULATED_CPU = re.compile(r"model name\s*: QEMU TCG |CPU implementer\s*: 0x00$")
"""QEMU names its own processors so; the number on Arm is that of no manufacturer."""

_DMI = "/sys/class/dmi/id"


def hypervisor(files: SystemFiles) -> str:
    """The hypervisor's name, ``unknown hypervisor``, or empty on bare metal.

    On x86 the processor itself says that it is virtual (CPUID 1, ECX bit 31); the firmware's
    tables only name the product, since clouds rent bare metal under the same names.
    """
    kind = files.text("/sys/hypervisor/type")
    if kind:
        return kind.capitalize()
    tree = files.text("/proc/device-tree/hypervisor/compatible")
    if tree:
        return _named(tree) or tree.split("\0")[0]
    cpu = (files.text("/proc/cpuinfo") or "").splitlines()
    flags = [line.split() for line in cpu if line.startswith("flags")]
    firmware = " ".join(
        files.text(f"{_DMI}/{name}") or "" for name in ("sys_vendor", "product_name", "bios_vendor")
    )
    if any(_EMULATED_CPU.match(line) for line in cpu):
        return EMULATED
    if flags:
        is_virtual = any("hypervisor" in each for each in flags)
        return (_named(firmware) or "unknown hypervisor") if is_virtual else ""
    return _named(firmware) if _named(firmware) in ("QEMU/KVM", "KVM", "VMware") else ""


def _named(text: str) -> str:
    lowered = text.lower()
    return next((name for key, name in _PRODUCTS if key in lowered), "")
