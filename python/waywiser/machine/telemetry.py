"""Readings of the GPUs' state while something is measured: cheap, through NVML alone."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.machine.nvml import Nvml, read_state
from waywiser.machine.nvml_reader import NvmlReader
from waywiser.words import GpuState


class GpuTelemetry(NvmlReader):
    """Reads the state of some GPUs; nothing if NVML or a GPU does not answer."""

    def read(self, indices: Sequence[int] | None = None) -> tuple[GpuState, ...]:
        """The state of the GPUs with these indices (of all by default), at this moment."""
        return tuple(
            _state(self._door, gpu.index, handle)
            for gpu, handle in self._handles
            if handle is not None and (indices is None or gpu.index in indices)
        )


def _state(door: Nvml, index: int, handle: object) -> GpuState:
    return GpuState(
        index=index,
        pcie_generation=door.ask("DeviceGetCurrPcieLinkGeneration", handle, default=0),
        pcie_width=door.ask("DeviceGetCurrPcieLinkWidth", handle, default=0),
        **read_state(door, handle),
    )
