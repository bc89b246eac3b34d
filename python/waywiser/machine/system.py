"""The operating system's part of a capture."""

from __future__ import annotations

import os
import platform
import re
import socket

from waywiser.machine.facts import DeviceAccess, PciFacts, SystemFacts
from waywiser.machine.hypervisor import hypervisor
from waywiser.machine.pcie import generation_of_speed
from waywiser.machine.system_files import SystemFiles, parse_list

_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")
_DRIVER_GPUS = "/proc/driver/nvidia/gpus"


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
        cpu_topology=_shows_cpu_topology(files),
        platform="tegra" if is_tegra(files) else "",
        kernel_driver=kernel_driver(files),
    )


def _shows_cpu_topology(files: SystemFiles) -> bool | None:
    """None if /sys shows no CPUs at all."""
    cpus = files.find("/sys/devices/system/cpu/cpu[0-9]*")
    if not cpus:
        return None
    return any(files.names(f"{cpu}/topology") for cpu in cpus)


def is_tegra(files: SystemFiles) -> bool:
    """Whether this is one of NVIDIA's systems on a chip, such as a Jetson."""
    compatible = files.text("/proc/device-tree/compatible") or ""
    return "nvidia,tegra" in compatible or files.text("/etc/nv_tegra_release") is not None


def kernel_driver(files: SystemFiles) -> str:
    """The version of NVIDIA's kernel module: ``580.95.05``; empty if none is loaded, or hidden."""
    found = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", files.text("/proc/driver/nvidia/version") or "")
    return found[0] if found else ""


def cpu_model(files: SystemFiles) -> str:
    """As /proc/cpuinfo names the first processor; empty if it does not (most of Arm)."""
    cpuinfo = files.fields("/proc/cpuinfo")
    return cpuinfo.get("model name") or cpuinfo.get("cpu") or ""


def read_pci(files: SystemFiles) -> tuple[PciFacts, ...]:
    """NVIDIA's display devices, in PCI order."""
    found = []
    devices = files.find("/sys/bus/pci/devices/*")
    shows_drivers = any(files.link(f"{device}/driver") for device in devices)
    for device in devices:
        kind = files.text(f"{device}/class") or ""
        if files.text(f"{device}/vendor") != _NVIDIA or not kind.startswith(_DISPLAY_CLASSES):
            continue
        if files.link(f"{device}/physfn"):
            continue  # a virtual function is a part of a GPU, for a virtual machine
        numa = files.integer(f"{device}/numa_node")
        address = device.rsplit("/", 1)[-1]
        found.append(
            PciFacts(
                address=address,
                numa=-1 if numa is None else numa,
                generation_now=generation_of_speed(files.text(f"{device}/current_link_speed")),
                width_now=_width(files, f"{device}/current_link_width"),
                generation_max=generation_of_speed(files.text(f"{device}/max_link_speed")),
                width_max=_width(files, f"{device}/max_link_width"),
                driver=files.link(f"{device}/driver") if shows_drivers else None,
                access=_access(files, address),
            )
        )
    return tuple(found)


def _access(files: SystemFiles, address: str) -> DeviceAccess:
    """By the device node whose number the driver shows for the address. In a container, the driver
    may show only the GPUs that the container was given."""
    shown = files.names(_DRIVER_GPUS)
    if address not in shown:
        return "hidden" if shown else ""
    number = files.fields(f"{_DRIVER_GPUS}/{address}/information").get("Device Minor", "")
    if not number.isdecimal():
        return ""
    may = files.may_open(f"/dev/nvidia{number}")
    return "absent" if may is None else "open" if may else "denied"


def _width(files: SystemFiles, path: str) -> int:
    width = files.integer(path) or 0
    return width if 0 < width <= 32 else 0  # 63 and 255 are how the kernel writes "unknown"
