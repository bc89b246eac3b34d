"""The operating system's part of a capture."""

from __future__ import annotations

import os
import platform
import socket

from waywiser.machine.facts import PciFacts, SystemFacts
from waywiser.machine.hypervisor import hypervisor
from waywiser.machine.pcie import generation_of_speed
from waywiser.machine.system_files import SystemFiles, parse_list

_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")


def read_system(files: SystemFiles | None = None) -> SystemFacts:
    """Host name, hypervisor, what this process may use, and the GPUs' PCI links."""
    files = files or SystemFiles()
    status = files.fields("/proc/self/status")
    return SystemFacts(
        hostname=socket.gethostname(),
        architecture=platform.machine(),
        cpu_model=cpu_model(files),
        virtual=hypervisor(files),
        affinity=tuple(sorted(os.sched_getaffinity(0))),
        cpu_nodes=parse_list(files.text("/sys/devices/system/node/has_cpu") or ""),
        memory_nodes=parse_list(status.get("Mems_allowed_list", "")),
        memory_bytes=files.kibibytes("/proc/meminfo").get("MemTotal", 0) * 1024,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        pci=read_pci(files),
    )


def cpu_model(files: SystemFiles) -> str:
    """As /proc/cpuinfo names the first processor; empty if it does not (most of Arm)."""
    cpuinfo = files.fields("/proc/cpuinfo")
    return cpuinfo.get("model name") or cpuinfo.get("cpu") or ""


def read_pci(files: SystemFiles) -> tuple[PciFacts, ...]:
    """NVIDIA's display devices, in PCI order."""
    found = []
    for device in files.find("/sys/bus/pci/devices/*"):
        kind = files.text(f"{device}/class") or ""
        if files.text(f"{device}/vendor") != _NVIDIA or not kind.startswith(_DISPLAY_CLASSES):
            continue
        numa = files.integer(f"{device}/numa_node")
        found.append(
            PciFacts(
                address=device.rsplit("/", 1)[-1],
                numa=-1 if numa is None else numa,
                generation_now=generation_of_speed(files.text(f"{device}/current_link_speed")),
                width_now=_width(files, f"{device}/current_link_width"),
                generation_max=generation_of_speed(files.text(f"{device}/max_link_speed")),
                width_max=_width(files, f"{device}/max_link_width"),
            )
        )
    return tuple(found)


def _width(files: SystemFiles, path: str) -> int:
    width = files.integer(path) or 0
    return width if 0 < width <= 32 else 0  # 63 and 255 are how the kernel writes "unknown"
