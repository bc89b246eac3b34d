"""What a visit costs in time, before anything has been measured: the model behind the estimate.

A visit takes its buffers from a pool (which allocates, places and pins them at first), fills and
verifies them, samples until the rule is content, and verifies again. The constants are round, and
each says where it comes from; rates come from the link's theoretical peak where topology knows it.
"""

from __future__ import annotations

from waywiser.plan.sizes import GROWING
from waywiser.records import Rule
from waywiser.topology.bounds import bound
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Transfer, Workload

VISIT_SECONDS = 0.004
"""Of a visit that moves nothing: order, answer, threads, and a commit that reaches the disk."""

WORKER_SECONDS = 0.6
"""Starting an interpreter with the native library, finding out the machine, and ending it."""

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

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        cpus = min((len(node.cpus) for node in machine.numa), default=1)
        self._threads = max(1, min(cpus, MOST_THREADS))
        self.worker_seconds = WORKER_SECONDS + GPU_CONTEXT_SECONDS * len(machine.gpus)

    def visit_seconds(self, workload: Workload, rule: Rule) -> float:
        """Of one visit, set-up and verification included."""
        once = max(map(self._transfer_seconds, workload.transfers), default=CALL_SECONDS)
        setup = sum(map(self._setup_seconds, workload.transfers)) + EXTRA_EXECUTIONS * once
        return VISIT_SECONDS + setup + _sampling_seconds(workload, once, rule)

    def growing_share(self, workload: Workload) -> float:
        """Of visits beyond `waywiser.plan.sizes.GROWING`, the share expected to be measured."""
        by_link = all(map(_limited_by_link, workload.transfers))
        return GROWING_SHARE_LINK if by_link else GROWING_SHARE_HOST

    def rate(self, transfer: Transfer) -> float:
        """Bytes per second that the transfer is expected to reach when it is large."""
        if not _on_gpu(transfer):
            return HOST_COPY_RATE
        if not _limited_by_link(transfer):
            return PAGEABLE_RATE
        peak = bound(self._machine, Workload((transfer,)))
        return LINK_EFFICIENCY * peak.bytes_per_second if peak else LINK_RATE

    def _transfer_seconds(self, transfer: Transfer) -> float:
        call = CALL_SECONDS if _on_gpu(transfer) else MEMCPY_CALL_SECONDS
        return call + max(transfer.bytes, 1) / self.rate(transfer)

    def _setup_seconds(self, transfer: Transfer) -> float:
        ends = (transfer.path.source, transfer.path.destination)
        return sum(self._buffer_seconds(memory, transfer.bytes) for memory in ends)

    def _buffer_seconds(self, memory: Memory, size: int) -> float:
        """Of one buffer in CPU memory; a GPU passes over its own in no time worth telling."""
        if memory.place.kind != "numa":
            return 0.0
        each = PASSES * max(PASS_BYTE_SECONDS / self._threads, PASS_BYTE_SECONDS_LEAST)
        if size > GROWING:
            pin = 0.0 if memory.kind == "pageable" else PIN_BYTE_SECONDS
            each += ALLOCATED_SHARE * (TOUCH_BYTE_SECONDS / self._threads + pin)
        return size * each


def _sampling_seconds(workload: Workload, once: float, rule: Rule) -> float:
    if workload.cache != "warm":
        once += CONDITION_SECONDS
    # A device-timed sample is executed a second time for what an application sees.
    twice = all(map(_limited_by_link, workload.transfers))
    sample = max(once * (2 if twice else 1), SHORTEST_SAMPLE_SECONDS)
    minimum = rule.slow_minimum if once > rule.slow_seconds else rule.minimum
    usual = min(SAMPLES * sample, max(rule.hard_seconds / 2, rule.soft_seconds))
    restless = 0.0 if twice else RESTLESS_SHARE * max(rule.hard_seconds - usual, 0.0)
    return max(minimum * sample, usual + restless, rule.minimum_seconds)


def _on_gpu(transfer: Transfer) -> bool:
    return "gpu" in (transfer.path.source.place.kind, transfer.path.destination.place.kind)


def _limited_by_link(transfer: Transfer) -> bool:
    """Whether the bytes meet nothing slower than what connects the places, as a staging buffer."""
    kinds = (transfer.path.source.kind, transfer.path.destination.kind)
    return _on_gpu(transfer) and "pageable" not in kinds
