"""How long one execution of a workload is expected to take, before anything has been measured.

The constants are round, and each says where it comes from. Rates come from the link's theoretical
peak if topology knows it. An executor that is expected to be slower or faster than the runtime's
copies declares its pace (``Traits::pace``).
"""

from __future__ import annotations

import math

from waywiser.plan.catalogue import Catalogue, Pace
from waywiser.topology.bounds import bound
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Operation, Transfer, Workload

CALL_SECONDS = 10e-6
"""Of starting and completing one execution on a GPU: 8 B to an H200 takes 5.7 to 7.5 us."""

MEMCPY_CALL_SECONDS = 0.2e-6
"""The same for a copy by the CPU, which calls nobody."""

HOST_COPY_RATE = 8e9
"""Bytes per second of one core between two buffers beyond its caches: 5 to 12 GB/s on current
servers."""

PAGEABLE_RATE = 11e9
"""Bytes per second through the driver's staging: 7.2 and 13.5 GB/s on an H200 host."""

LINK_RATE = 25e9
"""Bytes per second to a GPU whose link is unknown: between generations 4 and 5 of PCIe."""

LINK_EFFICIENCY = 0.85
"""Of a link's theoretical peak: 55.4 of 63 GB/s for PCIe 5, 395 of 478 for NVLink 4."""

SHARED_WRITE_RATE = 0.4e9
"""Bytes per second of several GPUs together into one buffer of the host: what eight H200s reach."""

FILE_RATE = 1e9
"""Bytes per second to or from a file, made durable: cautious, half of what one disk read gave."""

FILE_CALL_SECONDS = 1e-3
"""Of the least that is done with a disk, made durable: 0.1 ms to read and 3 ms to write 64 KiB of a
virtual one."""


PASS_RATE = 500e9
"""Bytes per second of a pass by a GPU over its own memory, in runs."""

OPERATION_BYTE_SECONDS = 0.2e-9
"""Per byte of an operation that is told a number of them: pages pinned or touched by threads."""

CHASE_SECONDS = 1e-3
"""Of one sample of an operation that follows a chain: 256 loads of a microsecond three times."""

FAULTS_SECONDS = 5e-3
"""The same of page faults, 48 of 25 us: the pages have to be brought back as well."""


class Durations:
    """Of executions on one machine."""

    def __init__(self, machine: Machine, catalogue: Catalogue) -> None:
        self._machine = machine
        self._catalogue = catalogue
        self._rates: dict[str, float] = {}

    def of(self, workload: Workload) -> float:
        """Of one execution, from its start to its end."""
        if workload.operation is not None:
            return self._operation_seconds(workload.operation)
        alone = max(map(self._transfer_seconds, workload.transfers))
        return max(alone, self._together_seconds(workload))

    def _together_seconds(self, workload: Workload) -> float:
        """Of several transfers by what they share: a GPU's own links, or one buffer."""
        if len(workload.transfers) < 2:
            return 0.0
        peak = bound(self._machine, workload)
        by_link = workload.bytes / (LINK_EFFICIENCY * peak.bytes_per_second) if peak else 0.0
        if workload.shared and _write_one_host_buffer(workload):
            return max(by_link, workload.bytes / SHARED_WRITE_RATE)
        return by_link

    def rate(self, transfer: Transfer) -> float:
        """Bytes per second that the transfer is expected to reach when it is large."""
        if transfer.way not in self._rates:
            pace = self._pace(transfer)
            to_gpu = transfer.path.destination.place.kind == "gpu"
            share = pace.to_gpu if to_gpu else pace.from_gpu
            link = pace.of_links and not self.from_disk(transfer)
            rate = self._staged_rate(transfer) if link else self.copy_rate(transfer)
            self._rates[transfer.way] = rate * share
        return self._rates[transfer.way]

    def _pace(self, transfer: Transfer) -> Pace:
        return self._catalogue.executor(transfer.path.executor).pace

    def copy_rate(self, transfer: Transfer) -> float:
        """The same of the runtime's copies, whoever the executor is."""
        ends = (transfer.path.source, transfer.path.destination)
        if self.from_disk(transfer):
            return FILE_RATE
        if not any(memory.place.kind == "gpu" for memory in ends):
            return HOST_COPY_RATE
        traits = self._catalogue.traits
        if any(traits.memory(memory.kind).is_moved_by_cpus for memory in ends):
            return PAGEABLE_RATE
        return self._link_rate(transfer)

    def _link_rate(self, transfer: Transfer) -> float:
        """Of the links that the transfer takes, whatever memory is at their ends."""
        peak = bound(self._machine, Workload((transfer,)))
        return LINK_EFFICIENCY * peak.bytes_per_second if peak else LINK_RATE

    def _staged_rate(self, transfer: Transfer) -> float:
        """Of the links, or of the CPUs that fill and drain the slots where these are slower."""
        threads = self._catalogue.requirements(transfer).threads
        copied = threads * HOST_COPY_RATE if threads else math.inf
        return min(self._link_rate(transfer), copied)

    def on_disk(self, memory: Memory) -> bool:
        """Whether bytes come from a disk or go to one; a warm page cache is memory."""
        if memory.place.kind != "file" or memory.variant.get("state") == "warm":
            return False
        reached = self._catalogue.memories[memory.kind].cpu_accessible
        return bool(memory.variant) or not reached

    def from_disk(self, transfer: Transfer) -> bool:
        """Whether an end of it is on a disk; what is written may be brought there in any state."""
        source, destination = transfer.path.source, transfer.path.destination
        return any(map(self.on_disk, (source, destination))) or self._is_durable(destination)

    def _is_durable(self, memory: Memory) -> bool:
        """Whether bytes that are written there are brought to a disk."""
        if memory.place.kind != "file" or self._catalogue.memories[memory.kind].cpu_accessible:
            return False
        found = (file for file in self._machine.files if file.name == memory.place.file)
        return all(file.filesystem != "tmpfs" for file in found)

    def _transfer_seconds(self, transfer: Transfer) -> float:
        on_gpu = "gpu" in place_kinds(transfer)
        call = CALL_SECONDS if on_gpu else MEMCPY_CALL_SECONDS
        if self.from_disk(transfer):
            call = FILE_CALL_SECONDS
        seconds = call + max(transfer.bytes, 1) / self.rate(transfer)
        if layout := transfer.layout:
            pace = self._pace(transfer)
            each = pace.piece_seconds if layout.kind == "list" else pace.row_seconds
            pass_rate = PASS_RATE if on_gpu else HOST_COPY_RATE
            seconds += runs(transfer) * each + pace.passes * transfer.bytes / pass_rate
        return seconds

    def _operation_seconds(self, operation: Operation) -> float:
        if is_chase(operation):  # a few hundred steps, wherever in the range
            return FAULTS_SECONDS if operation.name.startswith("page-fault") else CHASE_SECONDS
        return CALL_SECONDS + self.operation_bytes(operation) * OPERATION_BYTE_SECONDS

    def operation_bytes(self, operation: Operation) -> int:
        """The number of bytes that it is told, or that is its default; 0 where it has none."""
        size = operation.parameters.get("bytes") or next(
            (
                parameter.choices[0]
                for parameter in self._catalogue.operation_parameters(operation)
                if parameter.name == "bytes"
            ),
            "0",
        )
        return int(size)


def _write_one_host_buffer(workload: Workload) -> bool:
    """Whether several transfers write into the same memory of the host."""
    ends = [transfer.path.destination for transfer in workload.transfers]
    written = [str(memory) for memory in ends if memory.place.kind == "numa"]
    return len(set(written)) < len(written)


def place_kinds(transfer: Transfer) -> tuple[str, str]:
    """Of the source and of the destination."""
    return transfer.path.source.place.kind, transfer.path.destination.place.kind


def is_chase(operation: Operation) -> bool:
    """Whether it follows a chain of loads or faults, one after the other."""
    return operation.name.endswith("-latency")


def runs(transfer: Transfer) -> int:
    """Pieces or rows that the bytes of a layout lie in."""
    run = transfer.layout.run if transfer.layout else 0
    return transfer.bytes // run if run else 1
