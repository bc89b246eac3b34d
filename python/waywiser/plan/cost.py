"""What a visit costs in time, before anything has been measured: the model behind the estimate.

A visit takes its buffers from a pool (which allocates, places and pins them at first), fills and
verifies them, samples until the rule is content, and verifies again. The constants are round, and
each says where it comes from; how long one execution takes is told by `waywiser.plan.duration`.
"""

from __future__ import annotations

from waywiser.plan.catalogue import Catalogue
from waywiser.plan.duration import FILE_RATE, Durations, is_chase, runs
from waywiser.plan.evidence import located_memories
from waywiser.plan.sizes import GROWING
from waywiser.records import Rule
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Operation, Transfer, Workload

VISIT_SECONDS = 0.0065
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

SHORTEST_SAMPLE_SECONDS = 150e-6
"""Small transfers are batched until the timer's own cost is under 5 % of the sample."""

CONDITION_SECONDS = 1e-3
"""Per sample, for bringing the caches into another state than warm."""

FILE_RESTLESS_SHARE = 0.5
"""Of visits of disks, the share that spends all its time: a disk is seldom ours alone."""

MIGRATING_RESTLESS_SHARE = 0.7
"""Of visits of managed memory from 1 MiB on, in which a driver decides page by page what to do: in
surveys of one and four H200s most of them, and few of smaller ones."""

MIGRATING_RESTLESS_BYTES = 2**20

RESTORE_TO_GPU, RESTORE_FROM_GPU = 0.84, 0.33
"""Shares of the rate of a copy engine at which a driver brings bytes back to where they were before
each sample: 46.6 and 18.1 GB/s on an H200."""

RESTORE_SECONDS = 100e-6
"""More, per sample, for starting and awaiting it."""

RUN_SECONDS = 20e-9
"""Per run of a layout and pass, filling or verifying it."""

CHASE_BYTE_SECONDS = 2e-9
"""Per byte and thread of a range that a chase runs through, once: allocated, touched, and linked at
random; two cores took 0.3 to 0.6 s for 256 MiB, sixteen 0.02 to 0.03."""

OPERATION_SECONDS = 0.015
"""More, of a visit of an operation: what it needs is made, and tried before it is timed."""

OPERATION_RESTLESS_SHARE = 0.05
"""Of operations, the share that spends all its time: allocators are as restless as their system."""

EXTRA_EXECUTIONS = 4
"""Besides the samples: the first, the last, and two that find the number of repetitions."""

SAMPLES = 18
"""That bring the interval of a usual series within 1 %."""

RESTLESS_SHARE = 0.09
"""Of visits in which CPUs move bytes, the share that spends all its time without getting quiet: of
those that move `RESTLESS_BYTES` or more 9 % with one H200 and with four."""

RESTLESS_BYTES = 16 * 2**20

RESTLESS_SHARE_SMALL = 0.01
"""The same of smaller ones: 1 % of them."""

RESTLESS_SHARE_DIRTIED = 0.35
"""The same where the caches hold changed lines of the source, whoever moves the bytes: 25 and 37 %
of them."""

GROWING_SHARE_LINK = 0.2
"""Of the sizes beyond 64 MiB, how many are measured where a link limits: most saturate before."""

GROWING_SHARE_HOST = 0.9
"""The same where the host's memory limits, which goes on to change."""


class Cost:
    """Expected times on one machine."""

    def __init__(self, machine: Machine, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._durations = Durations(machine, catalogue)
        cpus = min((len(node.cpus) for node in machine.numa), default=1)
        self._threads = max(1, min(cpus, MOST_THREADS))
        located = LOCATING_SECONDS * len(located_memories(machine))
        contexts = GPU_CONTEXT_SECONDS * len(machine.gpus)
        self.worker_seconds = WORKER_SECONDS + located + contexts

    def once_seconds(self, workload: Workload) -> float:
        """Of one execution, from its start to its end."""
        return self._durations.of(workload)

    def visit_seconds(self, workload: Workload, rule: Rule) -> float:
        """Of one visit, set-up and verification included."""
        once = self._durations.of(workload)
        setup = self._setups_seconds(workload) + EXTRA_EXECUTIONS * once
        if workload.operation is not None:
            setup += self._operation_seconds(workload.operation)
        return VISIT_SECONDS + setup + self._sampling_seconds(workload, once, rule)

    def growing_share(self, workload: Workload) -> float:
        """Of visits beyond `waywiser.plan.sizes.GROWING`, the share expected to be measured."""
        return GROWING_SHARE_LINK if self._by_device(workload) else GROWING_SHARE_HOST

    def _operation_seconds(self, operation: Operation) -> float:
        """Of making what an operation needs."""
        if not is_chase(operation):
            return OPERATION_SECONDS
        size = self._durations.operation_bytes(operation)
        return OPERATION_SECONDS + size * CHASE_BYTE_SECONDS / self._threads

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
            seconds += 2 * PASSES * runs(transfer) * RUN_SECONDS / self._threads
        return seconds

    def _buffer_seconds(self, memory: Memory, size: int) -> float:
        """Of one buffer in CPU memory; a GPU passes over its own in no time worth telling."""
        if self._durations.on_disk(memory):
            return PASSES * size / FILE_RATE
        if memory.place.kind == "gpu":
            return 0.0
        each = PASSES * max(PASS_BYTE_SECONDS / self._threads, PASS_BYTE_SECONDS_LEAST)
        if size > GROWING:
            needs_gpu = self._catalogue.memories[memory.kind].needs_gpu
            pin = PIN_BYTE_SECONDS if needs_gpu else 0.0
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
        share = RESTORE_TO_GPU if back else RESTORE_FROM_GPU
        rate = self._durations.copy_rate(transfer) * share
        return RESTORE_SECONDS + transfer.bytes / rate

    def _restless_share(self, workload: Workload) -> float:
        if workload.operation is not None:
            return OPERATION_RESTLESS_SHARE
        if any(map(self._durations.from_disk, workload.transfers)):
            return FILE_RESTLESS_SHARE
        if not all(map(self._catalogue.repeatable, workload.transfers)):
            return MIGRATING_RESTLESS_SHARE * (workload.bytes >= MIGRATING_RESTLESS_BYTES)
        if workload.cache == "dirtied":
            return RESTLESS_SHARE_DIRTIED
        if self._by_device(workload):
            return 0.0
        return RESTLESS_SHARE if workload.bytes >= RESTLESS_BYTES else RESTLESS_SHARE_SMALL

    def _by_device(self, workload: Workload) -> bool:
        """Whether devices time it, and nothing of the host's is in the way."""
        return all(self._catalogue.timing(transfer) == "device" for transfer in workload.transfers)
