"""Which places and how many bytes a benchmark of Comm|Scope is about.

Counters have priority over the name: its arguments changed their order between versions, and
counters were named differently in each family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from waywiser.exchange.imports.benchmark_name import BenchmarkName

NUMA_COUNTERS = ("numa_id", "numaId", "src_numa", "dst_numa", "numa")
GPU_COUNTERS = ("cuda_id", "cudaId", "hip_id", "hipId", "gpu_id", "dst_cuda", "src_cuda", "dst_hip",
                "src_hip", "src_gpu", "dst_gpu", "gpu")  # fmt: skip
SOURCE_COUNTERS = ("src_gpu", "srcGpu", "src_id", "src_cuda", "src_hip", "src_numa", "gpu0", "src")
DESTINATION_COUNTERS = ("dst_gpu", "dstGpu", "dst_id", "dst_cuda", "dst_hip", "dst_numa", "gpu1",
                        "dst")  # fmt: skip

MOST_PLACES = 4096
"""More GPUs or NUMA nodes than any machine has."""

MOST_EXPONENT = 50


class NoCounterpart(Exception):
    """Why a benchmark means nothing that Waywiser measures; its text is the reason."""


class Benchmark:
    """One benchmark: its name and its counters."""

    def __init__(self, name: BenchmarkName, counters: Mapping[str, float]) -> None:
        self.name = name
        self.counters = counters

    @property
    def sized_first(self) -> bool:
        """Whether the size comes before the places, as in the ancestor's names. If only one end
        of the arguments fits the counter of bytes, that one is the size."""
        arguments = self.name.arguments
        counted = self.counters.get("bytes", 0.0)
        if arguments and 1 <= counted <= 2**MOST_EXPONENT:
            first, last = (
                counted == 2.0 ** min(max(n, 0), 99) for n in (arguments[0], arguments[-1])
            )
            if first != last:
                return first
        return not self.name.family.startswith(("Comm", "libc"))

    @property
    def ids(self) -> tuple[int, ...]:
        """Arguments that name places, in order."""
        arguments = self.name.arguments
        if self.name.exponent is not None or not arguments:
            return arguments
        return arguments[1:] if self.sized_first else arguments[:-1]

    @property
    def bytes(self) -> int:
        """The bytes of one transfer. Raises `NoCounterpart` if nothing states them or they are
        impossible."""
        counted = self.counters.get("bytes", 0.0)
        if counted >= 1:
            if counted != int(counted) or counted > 2**MOST_EXPONENT:
                raise NoCounterpart("its counter 'bytes' is not a size")
            return int(counted)
        exponent = self.name.exponent
        if exponent is None and self.name.arguments:
            exponent = self.name.arguments[0 if self.sized_first else -1]
        if exponent is None:
            raise NoCounterpart("neither its name nor a counter gives how many bytes it moves")
        if not 0 <= exponent <= MOST_EXPONENT:
            raise NoCounterpart(f"2^{exponent} is not a size")
        return 1 << exponent

    def host_and_gpu(self) -> tuple[int, int]:
        """(NUMA node, GPU)."""
        node, gpu = self._counted(NUMA_COUNTERS), self._counted(GPU_COUNTERS)
        if node is None and gpu is None:
            return self._two("which NUMA node and which GPU")
        if node is None or gpu is None:
            node, gpu = self._two("which NUMA node and which GPU")
        return node, gpu

    def source_and_destination(self) -> tuple[int, int]:
        """Two GPUs, or two NUMA nodes."""
        source, destination = self._counted(SOURCE_COUNTERS), self._counted(DESTINATION_COUNTERS)
        if source is None or destination is None:
            return self._two("which two places")
        return source, destination

    def toucher_and_owner(self) -> tuple[int, int]:
        """Two GPUs of which one accesses memory of the other."""
        toucher, owner = self._counted(("wr_gpu", "rd_gpu")), self._counted(("own_gpu",))
        if toucher is None or owner is None:
            return self._two("which two GPUs")
        return toucher, owner

    @property
    def steps(self) -> int:
        """The steps of a walk: as its counter says, else as the ancestor's names begin."""
        counted = self.counters.get("strides", math.nan)
        if not math.isfinite(counted) and self.sized_first and self.name.arguments:
            counted = self.name.arguments[0]
        if not 1 <= counted < 2**31 or counted != int(counted):
            raise NoCounterpart("neither a counter 'strides' nor its name gives how many faults")
        return int(counted)

    def gpu(self) -> int:
        """The GPU of a benchmark that is about one GPU; the first if nothing says which."""
        found = self._counted(GPU_COUNTERS)
        return found if found is not None else 0

    def node(self) -> int:
        """The NUMA node of a benchmark that is about one node."""
        found = self._counted(NUMA_COUNTERS)
        if found is None and self.ids:
            found = _place(self.ids[0])
        return 0 if found is None else found

    def _two(self, what: str) -> tuple[int, int]:
        if len(self.ids) < 2:
            raise NoCounterpart(f"neither its name nor a counter says {what} it is about")
        return _place(self.ids[-2]), _place(self.ids[-1])

    def _counted(self, names: Sequence[str]) -> int | None:
        for name in names:
            value = self.counters.get(name, math.nan)
            if math.isfinite(value):
                return _place(value)
        return None


def _place(value: float) -> int:
    if value != int(value) or not 0 <= value < MOST_PLACES:
        raise NoCounterpart(f"{value:g} is not the number of a GPU or NUMA node")
    return int(value)
