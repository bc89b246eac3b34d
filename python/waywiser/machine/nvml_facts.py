"""What NVML says of each GPU, as it is kept in a capture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from waywiser.machine.facts import GpuFacts, GpuProcess, Lane, MigInstance, NvmlFacts
from waywiser.machine.nvml import (
    CLOCK_MEMORY,
    CLOCK_SM,
    Nvml,
    cuda_version,
    nvml,
    pci_address,
    read_pci_address,
    read_state,
)
from waywiser.machine.silent_gpus import find_gpus
from waywiser.machine.system_files import SystemFiles

_P2P_READ, _P2P_WRITE = 0, 1
_P2P_OK = 0
_FIELD_LINK_SPEED = 164
_FIELD_C2C_COUNT, _FIELD_C2C_STATUS, _FIELD_C2C_SPEED = 170, 171, 172
_MAX_LINKS = 36

_REMOTE = {0: "gpu", 1: "cpu", 2: "switch"}
_ADDRESSING = {0: "none", 1: "hmm", 2: "ats"}
_SWITCH = {0: "off", 1: "on"}


def read_nvml(library: Any | None = None, addresses: Sequence[str] = ()) -> NvmlFacts:
    """Everything a capture keeps of the GPUs, in the order of their PCI addresses. ``addresses``
    are those of the GPUs on the PCI bus: NVML need not know them all."""
    with nvml(library) as door:
        if isinstance(door, str):
            return NvmlFacts(reason=door)
        handles, silent = find_gpus(door, addresses)
        driver = door.text("SystemGetDriverVersion")
        return NvmlFacts(
            driver=driver,
            cuda_driver=cuda_version(door.ask("SystemGetCudaDriverVersion_v2", default=0)),
            gpus=tuple(sorted((_gpu(door, h, handles) for h in handles), key=lambda g: g.pci)),
            reason="" if handles else f"the NVIDIA driver {driver} finds no GPU (try nvidia-smi)",
            silent=silent,
        )


def _gpu(door: Nvml, handle: object, handles: list[object]) -> GpuFacts:
    compute = door.ask("DeviceGetCudaComputeCapability", handle)
    addressing = door.ask("DeviceGetAddressingMode", handle)
    return GpuFacts(
        uuid=door.text("DeviceGetUUID", handle),
        name=door.text("DeviceGetName", handle),
        pci=read_pci_address(door, handle),
        compute=".".join(map(str, compute)) if compute else "",
        pcie_generation_now=door.ask("DeviceGetCurrPcieLinkGeneration", handle, default=0),
        pcie_width_now=door.ask("DeviceGetCurrPcieLinkWidth", handle, default=0),
        pcie_generation_max=door.ask("DeviceGetMaxPcieLinkGeneration", handle, default=0),
        pcie_width_max=door.ask("DeviceGetMaxPcieLinkWidth", handle, default=0),
        memory_node=_node(door.ask("DeviceGetNumaNodeId", handle, default=-1)),
        addressing=_ADDRESSING.get(addressing, "") if isinstance(addressing, int) else "",
        clock_sm_max_mhz=door.ask("DeviceGetMaxClockInfo", handle, CLOCK_SM, default=0),
        clock_memory_max_mhz=door.ask("DeviceGetMaxClockInfo", handle, CLOCK_MEMORY, default=0),
        memory_bus_bits=door.ask("DeviceGetMemoryBusWidth", handle, default=0),
        ecc=_first_switch(door.ask("DeviceGetEccMode", handle)),
        persistence=_first_switch(door.ask("DeviceGetPersistenceMode", handle)),
        mig=_first_switch(door.ask("DeviceGetMigMode", handle)),
        mig_instances=_mig_instances(door, handle),
        processes=_processes(door, handle),
        lanes=_lanes(door, handle),
        peers=_peers(door, handle, handles),
        c2c_links=door.field(handle, _FIELD_C2C_COUNT),
        c2c_mb_per_s=_c2c_rates(door, handle),
        **_memory(door, handle),
        **read_state(door, handle),
    )


def _memory(door: Nvml, handle: object) -> dict[str, Any]:
    """The memory of a GPU or a MIG instance, by the names of its facts."""
    memory = door.ask("DeviceGetMemoryInfo", handle)
    total, free = (int(memory.total), int(memory.free)) if memory else (0, 0)
    return {"memory_bytes": total, "memory_free_bytes": free}


def _node(number: int) -> int:
    return number if 0 <= number < 1 << 16 else -1


def _first_switch(answer: object) -> str:
    """``on`` or ``off`` of a mode, or of the first (the current one) of [current, pending]."""
    current = answer[0] if isinstance(answer, (list, tuple)) and answer else answer
    return _SWITCH.get(current, "") if isinstance(current, int) else ""


def _mig_instances(door: Nvml, handle: object) -> tuple[MigInstance, ...]:
    found = []
    for index in range(door.ask("DeviceGetMaxMigDeviceCount", handle, default=0)):
        instance = door.ask("DeviceGetMigDeviceHandleByIndex", handle, index)
        if instance is None:
            continue  # slots need not be filled in order
        uuid, name = (door.text(f"DeviceGet{what}", instance) for what in ("UUID", "Name"))
        found.append(MigInstance(uuid, name, **_memory(door, instance)))
    return tuple(found)


def _processes(door: Nvml, handle: object) -> tuple[GpuProcess, ...]:
    found: dict[int, GpuProcess] = {}
    for kind in ("Compute", "Graphics"):
        for process in door.ask(f"DeviceGet{kind}RunningProcesses", handle, default=()):
            pid = int(process.pid)
            if pid != os.getpid():
                name = SystemFiles().text(f"/proc/{pid}/comm") or ""
                found[pid] = GpuProcess(pid, name, int(process.usedGpuMemory or 0))
    return tuple(found[pid] for pid in sorted(found))


def _lanes(door: Nvml, handle: object) -> tuple[Lane, ...]:
    lanes = []
    for link in range(door.links(handle) or _MAX_LINKS):
        if door.ask("DeviceGetNvLinkState", handle, link, default=0) != 1:
            continue
        remote = door.ask("DeviceGetNvLinkRemoteDeviceType", handle, link, default=-1)
        address = door.ask("DeviceGetNvLinkRemotePciInfo", handle, link)
        lanes.append(
            Lane(
                link=link,
                remote=_REMOTE.get(remote, ""),
                remote_pci=pci_address(getattr(address, "busId", "")),
                mb_per_s=door.field(handle, _FIELD_LINK_SPEED, link),
                version=door.ask("DeviceGetNvLinkVersion", handle, link, default=0),
            )
        )
    return tuple(lanes)


def _c2c_rates(door: Nvml, handle: object) -> tuple[int, ...]:
    """The rates of the C2C links that are active."""
    return tuple(
        door.field(handle, _FIELD_C2C_SPEED, link)
        for link in range(min(door.field(handle, _FIELD_C2C_COUNT), _MAX_LINKS))
        if door.field(handle, _FIELD_C2C_STATUS, link) == 1
    )


def _peers(door: Nvml, handle: object, handles: list[object]) -> tuple[str, ...]:
    def reaches(other: object) -> bool:
        return all(
            door.ask("DeviceGetP2PStatus", handle, other, right) == _P2P_OK
            for right in (_P2P_READ, _P2P_WRITE)
        )

    return tuple(
        door.text("DeviceGetUUID", other)
        for other in handles
        if other is not handle and reaches(other)
    )
