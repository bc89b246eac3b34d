"""Whether cuFile would read files straight into GPU memory (GPUDirect Storage).

cuFile falls back to host memory ("compatibility mode") if neither the kernel module nvidia-fs is
loaded nor PCI P2PDMA is used, and if the file system does not support it. As one level of JSON
values, for `waywiser.machine.environment`.

Source: NVIDIA, GPUDirect Storage documentation: cuFile Compatibility Mode; Setting cufile.json
Configuration; NVMe P2PDMA Troubleshooting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from waywiser.machine.system_files import SystemFiles

CONFIGURATION = "/etc/cufile.json"
VARIABLE = "CUFILE_ENV_PATH_JSON"
"""The variable that names another file."""

_LIBRARIES = (
    "/usr/local/cuda*/lib64/libcufile.so*",
    "/usr/local/cuda*/targets/*/lib/libcufile.so*",
    "/usr/lib/*/libcufile.so*",
    "/usr/lib64/libcufile.so*",
)

_SWITCHES = {"allow_compat_mode": True, "use_pci_p2pdma": False}
"""Settings of cuFile with their defaults."""

_ON_NVME = ("ext4", "xfs")
_DISTRIBUTED = ("lustre", "wekafs", "gpfs", "beegfs")


def direct_storage(files: SystemFiles, variables: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Returns nothing if cuFile is not installed."""
    libraries = [path for pattern in _LIBRARIES for path in files.find(pattern)]
    if not libraries:
        return {}
    stats = files.text("/proc/driver/nvidia-fs/stats")
    path = variables.get(VARIABLE) or CONFIGURATION
    configuration = files.text(os.path.abspath(path)) or ""
    switches = {
        f"cufile_{name}": "on" if _switch(configuration, name, usual) else "off"
        for name, usual in _SWITCHES.items()
    }
    return {
        "cufile": libraries[0],
        "cufile_configuration": path,
        "nvidia_fs": _version(files, stats),
        "nvme_multipath": files.text("/sys/module/nvme_core/parameters/multipath"),
        "direct_storage_filesystems": sorted(set(_filesystems(files))),
        **switches,
    }


def _switch(configuration: str, name: str, usual: bool) -> bool:
    """A setting of the JSON file, which has comments that begin with ``//``."""
    for line in configuration.splitlines():
        code = line.split("//")[0]
        if match := re.search(rf'"{name}"\s*:\s*(true|false)', code):
            return match[1] == "true"
    return usual


def _version(files: SystemFiles, stats: str | None) -> str:
    """The version of nvidia-fs; ``loaded`` if it does not say, empty if it is not loaded."""
    if match := re.search(r"Driver\s*\(version: ([0-9.]+)\)", stats or ""):
        return match[1]
    is_there = stats is not None or bool(files.names("/sys/module/nvidia_fs"))
    return "loaded" if is_there else ""


def _filesystems(files: SystemFiles) -> Iterator[str]:
    """Kinds of mounted file systems that can be read directly."""
    for line in (files.text("/proc/self/mountinfo") or "").splitlines():
        kind, source, options = [*line.partition(" - ")[2].split(), "", "", ""][:3]
        if kind in _DISTRIBUTED or (kind.startswith("nfs") and "proto=rdma" in options):
            yield kind
        elif (
            kind in _ON_NVME
            and source.startswith("/dev/nvme")
            and (kind != "ext4" or not re.search(r"data=(journal|writeback)", options))
        ):
            yield f"{kind} on NVMe"
