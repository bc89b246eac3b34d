"""What reads some GPUs through NVML again and again: opened once, closed at the end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from waywiser.machine.machine import Gpu
from waywiser.machine.nvml import nvml
from waywiser.words import Closeable


class NvmlReader(Closeable):
    """NVML while it is open, and the handles of some GPUs; without GPUs it is not opened.

    The GPUs are found by PCI address, so that a MIG instance stands for the GPU that it is a part
    of; the handle of one that NVML does not know is None. If NVML does not answer, ``reason`` says
    why, and there are no handles. ``library`` stands in for the ``pynvml`` module.
    """

    def __init__(self, gpus: Sequence[Gpu], library: Any | None = None) -> None:
        self.reason = ""
        self._handles: list[tuple[Gpu, Any]] = []
        self._stack = ExitStack()
        door = self._stack.enter_context(nvml(library)) if gpus else ""
        if isinstance(door, str):
            self.reason = door
            return
        self._door = door
        self._handles = [(gpu, door.ask("DeviceGetHandleByPciBusId", gpu.pci)) for gpu in gpus]

    def close(self) -> None:
        """Gives NVML back; reads nothing from then on. May be called twice."""
        self._handles.clear()
        self._stack.close()
