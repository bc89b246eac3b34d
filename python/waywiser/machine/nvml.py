"""NVML, tolerantly: the driver's management library makes no CUDA context, so a supervisor may ask.

Whatever a GPU, a driver or a container does not answer reads as "unknown"; only the absence of
the whole library is reported, as one line with its remedy.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

MODULE_VARIABLE = "WAYWISER_NVML"
"""Names another module in the place of ``pynvml``; the tests set it to a scripted one."""


CLOCK_SM = 1
CLOCK_MEMORY = 2
_TEMPERATURE_GPU = 0
_FIELD_LINK_COUNT = 91

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


NO_LIBRARY = (
    "no NVIDIA driver: libnvidia-ml.so.1 is not found "
    "(install the driver; in a container, start it with access to the GPUs)"
)
"""Why NVML cannot be used where its library is missing."""

_VERSION_MISMATCH = 18

MISMATCH = (
    "the loaded NVIDIA kernel module and the user-space library libnvidia-ml.so.1 are of different "
    "versions (restart the machine, or load the driver's modules again; in a container, give it "
    "the libraries of the host's driver)"
)


def is_mismatch(reason: str) -> bool:
    """Whether NVML failed as module and library differ, in words of any version."""
    return reason == MISMATCH or "version mismatch" in reason.lower()


def is_scripted() -> bool:
    """Whether another module plays the part of NVML, as tests have it."""
    return bool(os.environ.get(MODULE_VARIABLE))


class NvmlAnswer(NamedTuple):
    """What a function of NVML returned, or why it failed."""

    value: Any = None
    reason: str = ""
    error: int = 0
    """NVML's error number; 0 if it returned, or failed otherwise."""


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
        return self.answer(function, *arguments)[:2]

    def answer(self, function: str, *arguments: object) -> NvmlAnswer:
        """The result of ``nvml<function>``, or why not with NVML's number for it."""
        call = getattr(self._library, f"nvml{function}", None)
        if call is None:
            return NvmlAnswer(None, f"NVML's binding has no nvml{function}")
        try:
            return NvmlAnswer(call(*arguments))
        except (self._library.NVMLError, TypeError, ValueError, UnicodeDecodeError) as error:
            number = getattr(error, "value", 0)
            why = str(error) or type(error).__name__
            return NvmlAnswer(None, why, number if isinstance(number, int) else 0)

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
        return NO_LIBRARY
    if code == library.NVML_ERROR_DRIVER_NOT_LOADED:
        return "the NVIDIA kernel module is not loaded (load it, or look into the kernel's log)"
    if code == library.NVML_ERROR_NO_PERMISSION:
        return "no permission to talk to the NVIDIA driver (see the rights of /dev/nvidia*)"
    if code == _VERSION_MISMATCH:
        return MISMATCH
    return f"the NVIDIA driver does not answer: {error} (try nvidia-smi)"


def cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def read_state(door: Nvml, handle: object) -> dict[str, Any]:
    """What changes while a GPU works, by the names of `GpuFacts` and `GpuState`."""
    return {
        "clock_sm_mhz": door.ask("DeviceGetClockInfo", handle, CLOCK_SM, default=0),
        "clock_memory_mhz": door.ask("DeviceGetClockInfo", handle, CLOCK_MEMORY, default=0),
        "throttle": _throttle(door, handle),
        "temperature_c": door.ask("DeviceGetTemperature", handle, _TEMPERATURE_GPU, default=0),
        "power_w": door.ask("DeviceGetPowerUsage", handle, default=0) / 1000,
    }


def read_pci_address(door: Nvml, handle: object) -> str:
    """``0000:1b:00.0``, as the kernel writes it; empty if unknown."""
    return pci_address(getattr(door.ask("DeviceGetPciInfo", handle), "busId", ""))


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
