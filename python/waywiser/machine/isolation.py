"""What keeps devices from memory that is not theirs, and costs bandwidth: confidential virtual
machines, the IOMMU, and access control services (ACS) of PCIe switches.

As one level of JSON values, for `waywiser.machine.environment`. What cannot be read is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from waywiser.machine.system import read_pci
from waywiser.machine.system_files import SystemFiles

CONFIG_BYTES = 4096
"""The configuration space of a PCIe device."""

_EXTENDED = 0x100
"""Where extended capabilities begin. Only root reads further than 64 bytes."""

_ACS = 0x000D
_ACS_CONTROL = 6
_REDIRECTS = 0b1100
"""Peer-to-peer requests, and their completions, go to the root complex."""

_GUESTS = {"tdx_guest": "TDX", "sev-guest": "SEV-SNP"}
"""Devices of a confidential guest, below /sys/class/misc."""

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


def isolation(files: SystemFiles) -> dict[str, Any]:
    """``confidential_guest``, ``iommu_types``, ``acs_redirects``, ``acs_unreadable``."""
    gpus = [device.address for device in read_pci(files)]
    redirects, unreadable = _acs(files, gpus)
    return {
        "confidential_guest": _confidential_guest(files),
        "iommu_types": _iommu_types(files, gpus),
        "acs_redirects": redirects,
        "acs_unreadable": unreadable,
    }


def _confidential_guest(files: SystemFiles) -> str:
    """``TDX``, ``SEV-SNP``, or empty if the system shows no such device or flag."""
    devices = files.names("/sys/class/misc")
    flags = files.fields("/proc/cpuinfo").get("flags", "").split()
    return next((kind for name, kind in _GUESTS.items() if name in (*devices, *flags)), "")


def _iommu_types(files: SystemFiles, gpus: Sequence[str]) -> list[str]:
    """How the IOMMU treats the GPUs: ``identity`` (passthrough), ``DMA``, ``DMA-FQ``."""
    types = (files.text(f"/sys/bus/pci/devices/{gpu}/iommu_group/type") for gpu in gpus)
    return sorted({kind for kind in types if kind})


def _acs(files: SystemFiles, gpus: Sequence[str]) -> tuple[list[str], list[str]]:
    """The bridges between GPUs of one switch that redirect, and those that cannot be read."""
    chains = [_chain(files, gpu) for gpu in gpus]
    between: set[str] = set()
    for one, other in combinations(chains, 2):
        shared = sum(a == b for a, b in zip(one[:-1], other[:-1], strict=False))
        if shared:
            between |= {*one[shared:-1], *other[shared:-1]}
    redirects, unreadable = [], []
    for bridge in sorted(between):
        config = files.data(f"/sys/bus/pci/devices/{bridge}/config", CONFIG_BYTES)
        control = acs_control(config)
        if control is None:
            unreadable.append(bridge)
        elif control & _REDIRECTS:
            redirects.append(bridge)
    return redirects, unreadable


def _chain(files: SystemFiles, device: str) -> list[str]:
    """The bridges above a device, from the root port on, and the device."""
    path = files.real(f"/sys/bus/pci/devices/{device}")
    return [part for part in path.split("/") if _ADDRESS.fullmatch(part)]


def acs_control(config: bytes) -> int | None:
    """The ACS control register of a configuration space; 0 if the device has no ACS, None if the
    space ends before its extended capabilities."""
    if len(config) < _EXTENDED + 4:
        return None
    at, seen = _EXTENDED, set()
    while at and at not in seen and at + 8 <= len(config):
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == _ACS:
            register = config[at + _ACS_CONTROL : at + _ACS_CONTROL + 2]
            return int.from_bytes(register, "little")
        at = header >> 20 & 0xFFC
    return 0
