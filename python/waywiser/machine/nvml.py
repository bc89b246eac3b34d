"""NVML, tolerantly: the driver's management library makes no CUDA context, so a supervisor may ask.

Whatever a GPU, a driver or a container does not answer reads as "unknown"; only the absence of
the whole library is reported, as one line with its remedy.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from waywiser.machine.facts import GpuFacts, GpuProcess, Lane, MigInstance, NvmlFacts
from waywiser.machine.system_files import SystemFiles

MODULE_VARIABLE = "WAYWISER_NVML"
"""Names another module in the place of ``pynvml``; the tests set it to a scripted one."""

_CLOCK_SM = 1
_CLOCK_MEMORY = 2
_TEMPERATURE_GPU = 0
_P2P_READ, _P2P_WRITE = 0, 1
_P2P_OK = 0
_FIELD_LINK_COUNT = 91
_FIELD_LINK_SPEED = 164
_MAX_LINKS = 36

_VALUE_MEMBERS = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}
"""Member of the union by ``nvmlValueType_t``; counters are whole numbers."""

_THROTTLE = {
    0x2: "clocks set by an administrator",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
"""NVML's clock event reasons; bit 0, an idle GPU, limits nothing that is measured."""

_REMOTE = {0: "gpu", 1: "cpu", 2: "switch"}
_ADDRESSING = {0: "none", 1: "hmm", 2: "ats"}
_SWITCH = {0: "off", 1: "on"}


class Nvml:
    """An initialised NVML whose every question has an answer: the library's, or a default."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def ask(self, function: str, *arguments: object, default: Any = None) -> Any:
        """The result of ``nvml<function>``, or ``default`` if it fails or does not exist."""
        answer, why = self.try_call(function, *arguments)
        return default if why else answer

    def try_call(self, function: str, *arguments: object) -> tuple[Any, str]:
        """The result of ``nvml<function>`` and no reason, or None and the reason why not."""
        call = getattr(self._library, f"nvml{function}", None)
        if call is None:
            return None, f"NVML's binding has no nvml{function}"
        try:
            return call(*arguments), ""
        except (self._library.NVMLError, TypeError, ValueError, UnicodeDecodeError) as error:
            return None, str(error) or type(error).__name__

    def text(self, function: str, *arguments: object) -> str:
        """The same for text, which older bindings return as bytes."""
        answer = self.ask(function, *arguments, default="")
        return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)

    def field(self, handle: object, identifier: int, scope: int = 0) -> int:
        """A field value as a whole number; 0 if the GPU does not know it."""
        values = self.ask("DeviceGetFieldValues", handle, [(identifier, scope)])
        if not values or values[0].nvmlReturn != 0:
            return 0
        return int(values[0].value.uiVal)

    def links(self, handle: object) -> int:
        """How many NVLinks a GPU has; 0 if it does not say."""
        return self.field(handle, _FIELD_LINK_COUNT)


def field_number(answer: Any) -> int:
    """The whole number in a field value."""
    return int(getattr(answer.value, _VALUE_MEMBERS.get(answer.valueType, "ullVal")))


@contextmanager
def nvml(library: Any | None = None) -> Iterator[Nvml | str]:
    """NVML initialised, or the reason why not; shut down again at the end.

    ``library`` stands in for the ``pynvml`` module.
    """
    module = library or _binding()
    if module is None:
        yield "NVML's Python binding is missing (pip install nvidia-ml-py)"
        return
    try:
        module.nvmlInit()
    except module.NVMLError as error:
        yield _no_driver(module, error)
        return
    try:
        yield Nvml(module)
    finally:
        with suppress(module.NVMLError):
            module.nvmlShutdown()


def _binding() -> Any | None:
    try:
        return importlib.import_module(os.environ.get(MODULE_VARIABLE) or "pynvml")
    except ImportError:
        return None


def _no_driver(library: Any, error: Exception) -> str:
    code = getattr(error, "value", None)
    if code == library.NVML_ERROR_LIBRARY_NOT_FOUND:
        return (
            "no NVIDIA driver: libnvidia-ml.so.1 is not found "
            "(install the driver; in a container, start it with access to the GPUs)"
        )
    if code == library.NVML_ERROR_DRIVER_NOT_LOADED:
        return "the NVIDIA kernel module is not loaded (load it, or look into the kernel's log)"
    if code == library.NVML_ERROR_NO_PERMISSION:
        return "no permission to talk to the NVIDIA driver (see the rights of /dev/nvidia*)"
    return f"the NVIDIA driver does not answer: {error} (try nvidia-smi)"


def read_nvml(library: Any | None = None) -> NvmlFacts:
    """Everything a capture keeps of the GPUs, in the order of their PCI addresses."""
    with nvml(library) as door:
        if isinstance(door, str):
            return NvmlFacts(reason=door)
        handles = [
            handle
            for index in range(door.ask("DeviceGetCount", default=0))
            if (handle := door.ask("DeviceGetHandleByIndex", index)) is not None
        ]
        driver = door.text("SystemGetDriverVersion")
        return NvmlFacts(
            driver=driver,
            cuda_driver=cuda_version(door.ask("SystemGetCudaDriverVersion_v2", default=0)),
            gpus=tuple(sorted((_gpu(door, h, handles) for h in handles), key=lambda g: g.pci)),
            reason="" if handles else f"the NVIDIA driver {driver} finds no GPU (try nvidia-smi)",
        )


def cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def _gpu(door: Nvml, handle: object, handles: list[object]) -> GpuFacts:
    compute = door.ask("DeviceGetCudaComputeCapability", handle)
    addressing = door.ask("DeviceGetAddressingMode", handle)
    return GpuFacts(
        uuid=door.text("DeviceGetUUID", handle),
        name=door.text("DeviceGetName", handle),
        pci=pci_address(getattr(door.ask("DeviceGetPciInfo", handle), "busId", "")),
        compute=".".join(map(str, compute)) if compute else "",
        pcie_generation_now=door.ask("DeviceGetCurrPcieLinkGeneration", handle, default=0),
        pcie_width_now=door.ask("DeviceGetCurrPcieLinkWidth", handle, default=0),
        pcie_generation_max=door.ask("DeviceGetMaxPcieLinkGeneration", handle, default=0),
        pcie_width_max=door.ask("DeviceGetMaxPcieLinkWidth", handle, default=0),
        memory_node=_node(door.ask("DeviceGetNumaNodeId", handle, default=-1)),
        addressing=_ADDRESSING.get(addressing, "") if isinstance(addressing, int) else "",
        clock_sm_max_mhz=door.ask("DeviceGetMaxClockInfo", handle, _CLOCK_SM, default=0),
        clock_memory_max_mhz=door.ask("DeviceGetMaxClockInfo", handle, _CLOCK_MEMORY, default=0),
        memory_bus_bits=door.ask("DeviceGetMemoryBusWidth", handle, default=0),
        ecc=_first_switch(door.ask("DeviceGetEccMode", handle)),
        persistence=_first_switch(door.ask("DeviceGetPersistenceMode", handle)),
        mig=_first_switch(door.ask("DeviceGetMigMode", handle)),
        mig_instances=_mig_instances(door, handle),
        processes=_processes(door, handle),
        lanes=_lanes(door, handle),
        peers=_peers(door, handle, handles),
        **_memory(door, handle),
        **read_state(door, handle),
    )


def _memory(door: Nvml, handle: object) -> dict[str, Any]:
    """The memory of a GPU or a MIG instance, by the names of its facts."""
    memory = door.ask("DeviceGetMemoryInfo", handle)
    total, free = (int(memory.total), int(memory.free)) if memory else (0, 0)
    return {"memory_bytes": total, "memory_free_bytes": free}


def read_state(door: Nvml, handle: object) -> dict[str, Any]:
    """What changes while a GPU works, by the names of `GpuFacts` and `GpuState`."""
    return {
        "clock_sm_mhz": door.ask("DeviceGetClockInfo", handle, _CLOCK_SM, default=0),
        "clock_memory_mhz": door.ask("DeviceGetClockInfo", handle, _CLOCK_MEMORY, default=0),
        "throttle": _throttle(door, handle),
        "temperature_c": door.ask("DeviceGetTemperature", handle, _TEMPERATURE_GPU, default=0),
        "power_w": door.ask("DeviceGetPowerUsage", handle, default=0) / 1000,
    }


def pci_address(text: str | bytes) -> str:
    """NVML's ``00000000:1B:00.0`` as the kernel's ``0000:1b:00.0``; empty for no address.

    A remote that a hypervisor hides has the address of all ones.
    """
    plain = text.decode(errors="replace") if isinstance(text, bytes) else text
    domain, _, rest = plain.lower().partition(":")
    if not rest or domain == "ffffffff" or rest.startswith("ff:ff"):
        return ""
    return f"{int(domain, 16):04x}:{rest}"


def _throttle(door: Nvml, handle: object) -> tuple[str, ...]:
    """What holds the clocks down at this moment, in words; an idle GPU is not a reason."""
    mask = door.ask("DeviceGetCurrentClocksEventReasons", handle)
    if mask is None:
        mask = door.ask("DeviceGetCurrentClocksThrottleReasons", handle, default=0)
    return tuple(text for bit, text in _THROTTLE.items() if mask & bit)


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
