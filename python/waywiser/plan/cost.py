"""What a visit costs in time, before anything has been measured: the model behind the estimate.

A visit takes its buffers from a pool (which allocates, places and pins them at first), fills and
verifies them, samples until the rule is content, and verifies again. The constants are round, and
each says where it comes from; rates come from the link's theoretical peak where topology knows it.
"""

from __future__ import annotations

from typing import NamedTuple

from waywiser.plan.catalogue import Catalogue
from waywiser.plan.evidence import located_memories
from waywiser.plan.sizes import GROWING
from waywiser.records import Rule
from waywiser.topology.bounds import bound
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Operation, Transfer, Workload

VISIT_SECONDS = 0.004
"""Of a visit that moves nothing: order, answer, threads, and a commit that reaches the disk."""

WORKER_SECONDS = 0.6
"""Starting an interpreter with the native library, finding out the machine, and ending it."""

LOCATING_SECONDS = 0.3
"""More: timing how far blocks of memory are, as each worker begins. A third of it is waiting."""

GPU_CONTEXT_SECONDS = 0.4
"""More, per GPU, where a driver has to make a context and clocks have to rise."""

MOST_THREADS = 16
"""That the native library sets to fill, verify and touch a buffer."""

PASS_BYTE_SECONDS = 0.17e-9
"""Per byte and thread of one pass over a buffer in CPU memory, filling or verifying it: two cores
of a virtual machine took 0.55 s for the six passes over 1 GiB."""

PASS_BYTE_SECONDS_LEAST = 0.016e-9
"""The same with any number of threads: about 60 GB/s, what a socket's memory gives to one pass."""

PASSES = 3
"""Over source and destination, twice each, before the samples and after: written, written, read
and compared."""

TOUCH_BYTE_SECONDS = 1.5e-9
"""Per byte and thread of pages that are touched for the first time."""

PIN_BYTE_SECONDS = 0.17e-9
"""More, per byte of page-locked memory: 0.140 s to register 1 GiB and 0.032 s to release it, on
one H200 host."""

ALLOCATED_SHARE = 0.5
"""Of the visits beyond 64 MiB, how many find no buffer in the pool: the first ones."""

CALL_SECONDS = 10e-6
"""Of starting and completing one execution on a GPU: 8 B to an H200 takes 5.7 to 7.5 us."""

MEMCPY_CALL_SECONDS = 0.2e-6
"""The same for a copy by the CPU, which calls nobody."""

SHORTEST_SAMPLE_SECONDS = 150e-6
"""Small transfers are batched until the timer's own cost is under 5 % of the sample."""

CONDITION_SECONDS = 1e-3
"""Per sample, for bringing the caches into another state than warm."""

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

FILE_RESTLESS_SHARE = 0.5
"""Of visits of disks, the share that spends all its time: a disk is seldom ours alone."""


class Pace(NamedTuple):
    """How an executor compares with the runtime's copies, where that is known to differ."""

    to_gpu: float = 1.0
    """Share of the rate that a copy engine would reach, towards a GPU."""
    from_gpu: float = 1.0
    piece_seconds: float = 2.5e-6
    """Per piece of a list: what submitting one copy of a loop costs."""
    row_seconds: float = 20e-9
    """Per row of a box: 8-byte rows move at a few hundred MB/s."""
    passes: int = 0
    """More, over the bytes in the memory of a place, at each end."""


PACES = {
    "batch": Pace(piece_seconds=0.5e-6),
    "cpu": Pace(piece_seconds=50e-9, row_seconds=5e-9),
    "pack": Pace(piece_seconds=10e-9, row_seconds=1e-9, passes=2),
    # 46.6 and 18.1 GB/s on an H200; 9.0 and 4.6 with a fault for each page.
    "prefetch": Pace(to_gpu=0.84, from_gpu=0.33),
    "page-fault": Pace(to_gpu=0.16, from_gpu=0.083),
    # 50.9 and 52.3 GB/s.
    "sm": Pace(to_gpu=0.9, from_gpu=0.9, piece_seconds=10e-9, row_seconds=1e-9),
}
"""By executor; any other is taken for the runtime's copies."""

PASS_RATE = 500e9
"""Bytes per second of a pass by a GPU over its own memory, in runs."""

RESTORE = "prefetch"
"""Whose pace brings bytes back to where they were before each sample."""

RESTORE_SECONDS = 100e-6
"""More, per sample, for starting and awaiting it."""

RUN_SECONDS = 20e-9
"""Per run of a layout and pass, filling or verifying it."""

OPERATION_BYTE_SECONDS = 0.2e-9
"""Per byte of an operation that is told a number of them: pages pinned or touched by threads."""

CHASE_SECONDS = 1e-3
"""Of one sample of an operation that follows a chain: 256 loads of a microsecond three times, or 48
page faults of 25 us."""

CHASE_BYTE_SECONDS = 0.5e-9
"""Per byte of a range that a chase runs through, once: allocated, touched, and linked at random by
up to 16 threads; two cores took 0.3 to 0.6 s for 256 MiB."""

OPERATION_RESTLESS_SHARE = 0.1
"""Of operations, the share that spends all its time: allocators are as restless as their system."""

EXTRA_EXECUTIONS = 4
"""Besides the samples: the first, the last, and two that find the number of repetitions."""

SAMPLES = 18
"""That bring the interval of a usual series within 1 %."""

RESTLESS_SHARE = 0.08
"""Of visits in which CPUs move bytes, the share that spends all its time without getting quiet:
3, 5 and 10 % of them in four surveys of virtual machines with an H200."""

GROWING_SHARE_LINK = 0.2
"""Of the sizes beyond 64 MiB, how many are measured where a link limits: most saturate before."""

GROWING_SHARE_HOST = 0.9
"""The same where the host's memory limits, which goes on to change."""


class Cost:
    """Expected times on one machine."""

    def __init__(self, machine: Machine, catalogue: Catalogue) -> None:
        self._machine = machine
        self._catalogue = catalogue
        self._rates: dict[str, float] = {}
        cpus = min((len(node.cpus) for node in machine.numa), default=1)
        self._threads = max(1, min(cpus, MOST_THREADS))
        located = LOCATING_SECONDS * len(located_memories(machine))
        contexts = GPU_CONTEXT_SECONDS * len(machine.gpus)
        self.worker_seconds = WORKER_SECONDS + located + contexts

    def once_seconds(self, workload: Workload) -> float:
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

    def visit_seconds(self, workload: Workload, rule: Rule) -> float:
        """Of one visit, set-up and verification included."""
        once = self.once_seconds(workload)
        setup = self._setups_seconds(workload) + EXTRA_EXECUTIONS * once
        if workload.operation is not None and _is_chase(workload.operation):
            setup += self._operation_bytes(workload.operation) * CHASE_BYTE_SECONDS
        return VISIT_SECONDS + setup + self._sampling_seconds(workload, once, rule)

    def growing_share(self, workload: Workload) -> float:
        """Of visits beyond `waywiser.plan.sizes.GROWING`, the share expected to be measured."""
        return GROWING_SHARE_LINK if self._by_device(workload) else GROWING_SHARE_HOST

    def rate(self, transfer: Transfer) -> float:
        """Bytes per second that the transfer is expected to reach when it is large."""
        if transfer.way not in self._rates:
            pace = PACES.get(transfer.path.executor, Pace())
            to_gpu = transfer.path.destination.place.kind == "gpu"
            share = pace.to_gpu if to_gpu else pace.from_gpu
            self._rates[transfer.way] = self._copy_rate(transfer) * share
        return self._rates[transfer.way]

    def _copy_rate(self, transfer: Transfer) -> float:
        ends = (transfer.path.source, transfer.path.destination)
        if self._from_disk(transfer):
            return FILE_RATE
        if not any(memory.place.kind == "gpu" for memory in ends):
            return HOST_COPY_RATE
        if any(memory.kind == "pageable" or memory.place.kind == "file" for memory in ends):
            return PAGEABLE_RATE
        peak = bound(self._machine, Workload((transfer,)))
        return LINK_EFFICIENCY * peak.bytes_per_second if peak else LINK_RATE

    def _on_disk(self, memory: Memory) -> bool:
        """Whether bytes come from a disk or go to one; a warm page cache is memory."""
        if memory.place.kind != "file":
            return False
        reached = self._catalogue.memories[memory.kind].cpu_accessible
        return bool(memory.variant) or not reached

    def _from_disk(self, transfer: Transfer) -> bool:
        return self._on_disk(transfer.path.source) or self._on_disk(transfer.path.destination)

    def _transfer_seconds(self, transfer: Transfer) -> float:
        on_gpu = "gpu" in place_kinds(transfer)
        call = CALL_SECONDS if on_gpu else MEMCPY_CALL_SECONDS
        if self._from_disk(transfer):
            call = FILE_CALL_SECONDS
        seconds = call + max(transfer.bytes, 1) / self.rate(transfer)
        if layout := transfer.layout:
            pace = PACES.get(transfer.path.executor, Pace())
            each = pace.piece_seconds if layout.kind == "list" else pace.row_seconds
            pass_rate = PASS_RATE if on_gpu else HOST_COPY_RATE
            seconds += _runs(transfer) * each + pace.passes * transfer.bytes / pass_rate
        return seconds

    def _operation_seconds(self, operation: Operation) -> float:
        if _is_chase(operation):  # a few hundred steps, wherever in the range
            return CHASE_SECONDS
        return CALL_SECONDS + self._operation_bytes(operation) * OPERATION_BYTE_SECONDS

    def _operation_bytes(self, operation: Operation) -> int:
        size = operation.parameters.get("bytes") or next(
            (
                parameter.choices[0]
                for parameter in self._catalogue.operation_parameters(operation)
                if parameter.name == "bytes"
            ),
            "0",
        )
        return int(size)

    def _setups_seconds(self, workload: Workload) -> float:
        """Of all buffers; what is shared is set up once."""
        transfers = workload.transfers
        if workload.shared:
            transfers = tuple({str(t.path.destination): t for t in transfers}.values())
            if len(transfers) == len(workload.transfers):
                transfers = tuple({str(t.path.source): t for t in transfers}.values())
        return sum(map(self._setup_seconds, transfers))

    def _setup_seconds(self, transfer: Transfer) -> float:
        source, destination = self._catalogue.extents(transfer)
        seconds = self._buffer_seconds(transfer.path.source, source)
        if not self._catalogue.in_place(transfer):
            seconds += self._buffer_seconds(transfer.path.destination, destination)
        if transfer.layout:
            seconds += 2 * PASSES * _runs(transfer) * RUN_SECONDS / self._threads
        return seconds

    def _buffer_seconds(self, memory: Memory, size: int) -> float:
        """Of one buffer in CPU memory; a GPU passes over its own in no time worth telling."""
        if self._on_disk(memory):
            return PASSES * size / FILE_RATE
        if memory.place.kind == "gpu":
            return 0.0
        each = PASSES * max(PASS_BYTE_SECONDS / self._threads, PASS_BYTE_SECONDS_LEAST)
        if size > GROWING:
            pin = 0.0 if memory.kind == "pageable" else PIN_BYTE_SECONDS
            each += ALLOCATED_SHARE * (TOUCH_BYTE_SECONDS / self._threads + pin)
        return size * each

    def _sampling_seconds(self, workload: Workload, once: float, rule: Rule) -> float:
        between = CONDITION_SECONDS if workload.cache != "warm" else 0.0
        between += sum(map(self._restore_seconds, workload.transfers))
        # A device-timed sample is executed a second time for what an application sees.
        executions = 2 if self._by_device(workload) else 1
        sample = max(once * executions, SHORTEST_SAMPLE_SECONDS) + between * executions
        minimum = rule.slow_minimum if once > rule.slow_seconds else rule.minimum
        usual = min(SAMPLES * sample, max(rule.hard_seconds / 2, rule.soft_seconds))
        restless = self._restless_share(workload) * max(rule.hard_seconds - usual, 0.0)
        return max(minimum * sample, usual + restless, rule.minimum_seconds)

    def _restore_seconds(self, transfer: Transfer) -> float:
        """Of bringing bytes back that do not stay where they were."""
        if self._catalogue.repeatable(transfer):
            return 0.0
        back = transfer.path.destination.place.kind != "gpu"
        pace = PACES[RESTORE]
        rate = self._copy_rate(transfer) * (pace.to_gpu if back else pace.from_gpu)
        return RESTORE_SECONDS + transfer.bytes / rate

    def _restless_share(self, workload: Workload) -> float:
        if workload.operation is not None:
            return OPERATION_RESTLESS_SHARE
        if any(map(self._from_disk, workload.transfers)):
            return FILE_RESTLESS_SHARE
        return 0.0 if self._by_device(workload) else RESTLESS_SHARE

    def _by_device(self, workload: Workload) -> bool:
        """Whether devices time it, and nothing of the host's is in the way."""
        return all(self._catalogue.timing(transfer) == "device" for transfer in workload.transfers)


def _write_one_host_buffer(workload: Workload) -> bool:
    """Whether several transfers write into the same memory of the host."""
    ends = [transfer.path.destination for transfer in workload.transfers]
    written = [str(memory) for memory in ends if memory.place.kind == "numa"]
    return len(set(written)) < len(written)


def place_kinds(transfer: Transfer) -> tuple[str, str]:
    """Of the source and of the destination."""
    return transfer.path.source.place.kind, transfer.path.destination.place.kind


def _is_chase(operation: Operation) -> bool:
    return operation.name.endswith("-latency")


def _runs(transfer: Transfer) -> int:
    """Pieces or rows that the bytes of a layout lie in."""
    run = transfer.layout.run if transfer.layout else 0
    return transfer.bytes // run if run else 1
