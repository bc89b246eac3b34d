"""Readings of the GPUs' state while something is measured: cheap, through NVML alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from waywiser.machine.machine import Gpu
from waywiser.machine.nvml import Nvml, nvml, read_throttle
from waywiser.words.closeable import Closeable
from waywiser.words.records import GpuState

_CLOCK_SM = 1
_CLOCK_MEMORY = 2
_TEMPERATURE_GPU = 0


class GpuTelemetry(Closeable):
    """Handles of some GPUs, opened once; reads nothing if NVML or a GPU does not answer.

    A context manager. The GPUs are found by PCI address, so that a MIG instance gives the state
    of the GPU that it is a part of. ``library`` stands in for the ``pynvml`` module.
    """

    def __init__(self, gpus: Sequence[Gpu], library: Any | None = None) -> None:
        self._handles: list[tuple[int, object]] = []
        self._door: Nvml | None = None
        self._stack = ExitStack()
        if not gpus:
            return
        door = self._stack.enter_context(nvml(library))
        if isinstance(door, str):
            return
        self._door = door
        for gpu in gpus:
            handle = door.ask("DeviceGetHandleByPciBusId", gpu.pci)
            if handle is not None:
                self._handles.append((gpu.index, handle))

    def read(self, indices: Sequence[int] | None = None) -> tuple[GpuState, ...]:
        """The state of the GPUs with these indices (of all by default), at this moment."""
        if self._door is None:
            return ()
        return tuple(
            _state(self._door, index, handle)
            for index, handle in self._handles
            if indices is None or index in indices
        )

    def close(self) -> None:
        """Gives NVML back; reads nothing from then on. May be called twice."""
        self._door = None
        self._stack.close()


def _state(door: Nvml, index: int, handle: object) -> GpuState:
    return GpuState(
        index=index,
        clock_sm_mhz=door.ask("DeviceGetClockInfo", handle, _CLOCK_SM, default=0),
        clock_memory_mhz=door.ask("DeviceGetClockInfo", handle, _CLOCK_MEMORY, default=0),
        throttle=read_throttle(door, handle),
        pcie_generation=door.ask("DeviceGetCurrPcieLinkGeneration", handle, default=0),
        pcie_width=door.ask("DeviceGetCurrPcieLinkWidth", handle, default=0),
        temperature_c=door.ask("DeviceGetTemperature", handle, _TEMPERATURE_GPU, default=0),
        power_w=door.ask("DeviceGetPowerUsage", handle, default=0) / 1000,
    )
