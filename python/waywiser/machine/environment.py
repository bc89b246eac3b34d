"""Everything about the surroundings that could explain a number, as plain JSON values.

Unknown and absent things are left out, so that two profiles differ only where the machines did.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from typing import Any

from waywiser.machine.direct_storage import direct_storage
from waywiser.machine.hypervisor import hypervisor
from waywiser.machine.isolation import isolation
from waywiser.machine.limits import cpu_quota, memlock, memory_limit
from waywiser.machine.nvml import Nvml, cuda_version, nvml
from waywiser.machine.system_files import SystemFiles
from waywiser.version import __version__

SWAPPED_FRACTION = 0.01
"""Share of the memory that is swapped out; a few unused pages always are."""

BOOT_PARAMETERS = (
    "amd_iommu",
    "cgroup_disable",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "isolcpus",
    "mitigations",
    "nohz_full",
    "nosmt",
    "nps",
    "numa",
    "numa_balancing",
    "pci",
    "pcie_acs_override",
    "pcie_aspm",
    "processor.max_cstate",
    "swiotlb",
    "transparent_hugepage",
)
"""Kernel parameters that change how bytes move; the rest of the command line is private
and may hold names of hosts."""

_VARIABLES = ("LD_PRELOAD", "OMP_NUM_THREADS", "MALLOC_CONF", "GLIBC_TUNABLES")
_VARIABLE_PREFIXES = ("CUDA_", "GOMP_", "KMP_", "MALLOC_")

_OF_MESSAGES = ("UCX_", "OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "FI_")
"""The first letters of variables by which libraries of MPI choose their transport."""


def environment(
    files: SystemFiles | None = None,
    variables: Mapping[str, str] = os.environ,
    library: Any | None = None,
) -> dict[str, Any]:
    """One level of JSON values by name. Reads files and NVML; changes nothing, starts nothing."""
    files = files or SystemFiles()
    found: dict[str, Any] = {
        **_software(files),
        **gpu_environment(library),
        **host_environment(files, variables),
        "virtualisation": hypervisor(files),
        "container": _container(files, variables),
        "boot_parameters": boot_parameters(files),
        "variables": {
            name: value
            for name, value in sorted(variables.items())
            if name in _VARIABLES or name.startswith(_VARIABLE_PREFIXES)
        },
    }
    return _known(found)


def message_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that set how an MPI library sends messages, by name."""
    return {
        name: value for name, value in sorted(variables.items()) if name.startswith(_OF_MESSAGES)
    }


def host_environment(
    files: SystemFiles, variables: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """The part of it that files say: the state of CPUs and memory, limits, what keeps devices from
    memory, and GPUDirect Storage."""
    return _known(
        {
            **_cpu(files),
            **_memory(files),
            **_limits(files),
            **isolation(files),
            **direct_storage(files, variables),
        }
    )


def _known(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value not in (None, "", {}, [])}


def _software(files: SystemFiles) -> dict[str, Any]:
    return {
        "waywiser": __version__,
        "python": platform.python_version(),
        "kernel": files.text("/proc/sys/kernel/osrelease"),
        "distribution": files.fields("/etc/os-release").get("PRETTY_NAME"),
        "libc": " ".join(platform.libc_ver()),
        "byte_order": sys.byteorder,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
    }


def gpu_environment(library: Any | None = None) -> dict[str, Any]:
    """The part of it that NVML says."""
    with nvml(library) as door:
        if isinstance(door, str):
            return {"driver_reason": door}
        return {
            "driver": door.text("SystemGetDriverVersion"),
            "cuda_driver": cuda_version(door.ask("SystemGetCudaDriverVersion_v2", default=0)),
            "gpu_confidential": _confidential(door),
        }


def _confidential(library: Nvml) -> str:
    """Whether GPUs encrypt what they exchange with the host: ``on``, ``off`` or ``unknown``."""
    state = library.ask("SystemGetConfComputeState")
    feature = getattr(state, "ccFeature", None)
    return "unknown" if feature is None else "on" if feature else "off"


def _cpu(files: SystemFiles) -> dict[str, Any]:
    cpuinfo = files.fields("/proc/cpuinfo")
    return {
        "microcode": cpuinfo.get("microcode"),
        "governor": sorted(governors(files)),
        "cpu_driver": files.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
        "turbo": turbo(files),
        "smt": {"1": "on", "0": "off"}.get(files.text("/sys/devices/system/cpu/smt/active") or ""),
        "isolated_cpus": files.text("/sys/devices/system/cpu/isolated"),
    }


def governors(files: SystemFiles) -> set[str]:
    """The frequency governors of all CPUs; empty if the system has no cpufreq."""
    names = (
        files.text(p) for p in files.find("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
    )
    return {name for name in names if name}


def turbo(files: SystemFiles) -> str:
    """``on``, ``off``, or empty if the system does not say."""
    intel = files.integer("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if intel is not None:
        return "off" if intel else "on"
    boost = files.integer("/sys/devices/system/cpu/cpufreq/boost")
    return "" if boost is None else "on" if boost else "off"


def _memory(files: SystemFiles) -> dict[str, Any]:
    kib = files.kibibytes("/proc/meminfo")
    return {
        "numa_balancing": files.integer("/proc/sys/kernel/numa_balancing"),
        "transparent_huge_pages": files.chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages": kib.get("HugePages_Total"),
        "memory_total_bytes": kib["MemTotal"] * 1024 if "MemTotal" in kib else None,
        "memory_available_bytes": kib["MemAvailable"] * 1024 if "MemAvailable" in kib else None,
        "swap_used_bytes": (
            (kib["SwapTotal"] - kib["SwapFree"]) * 1024 if "SwapFree" in kib else None
        ),
        "iommu": files.names("/sys/class/iommu"),
    }


def _limits(files: SystemFiles) -> dict[str, Any]:
    status = files.fields("/proc/self/status")
    return {
        "cpus_allowed": status.get("Cpus_allowed_list"),
        "memory_nodes_allowed": status.get("Mems_allowed_list"),
        "cgroup_memory_bytes": memory_limit(files),
        "cgroup_cpus": cpu_quota(files),
        "memlock_bytes": memlock(files),
    }


def boot_parameters(files: SystemFiles) -> dict[str, str]:
    """Those of `BOOT_PARAMETERS` on the kernel's command line."""
    words = (files.text("/proc/cmdline") or "").split(" -- ")[0].split()
    pairs = (word.partition("=") for word in words)
    return {name: value or "set" for name, _, value in pairs if name in BOOT_PARAMETERS}


def _container(files: SystemFiles, variables: Mapping[str, str]) -> str:
    if files.text("/run/.containerenv") is not None:
        return "podman"
    if files.text("/.dockerenv") is not None:
        return "docker"
    for name, kind in (
        ("APPTAINER_CONTAINER", "apptainer"),
        ("SINGULARITY_CONTAINER", "singularity"),
        ("KUBERNETES_SERVICE_HOST", "kubernetes"),
    ):
        if variables.get(name):
            return kind
    return variables.get("container", "")
