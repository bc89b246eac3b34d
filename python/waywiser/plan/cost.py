"""What a visit costs in time, before anything has been measured: the model behind the estimate.

A visit prepares its buffers (allocate, place, pin, fill), copies and verifies once, samples until
the rule is content, and verifies again. The constants are deliberately round and their sources
named; rates come from the link's theoretical peak where the topology knows it.
"""

from __future__ import annotations

from waywiser.records import Rule
from waywiser.topology.bounds import bound
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Transfer, Workload

VISIT_SECONDS = 0.004
"""Order, answer, threads and streams of a visit that moves nothing; two processes and a file."""

WORKER_SECONDS = 0.6
"""Starting an interpreter with the native library, finding out the machine, and ending it."""

GPU_CONTEXT_SECONDS = 0.4
"""More, per GPU, where a driver has to make a context."""

HOST_BYTE_SECONDS = 1.6e-9
"""Per byte of a buffer in CPU memory: page faults at first touch, the pattern, two verifications;
a few passes of one core at some GB/s."""

PIN_BYTE_SECONDS = 0.17e-9
"""More, per byte of page-locked memory: 0.140 s to register 1 GiB and 0.032 s to release it, on
one H200 host."""

GPU_BYTE_SECONDS = 0.3e-9
"""Per byte of a buffer in GPU memory: pattern and verification pass through the host link."""

CALL_SECONDS = 10e-6
"""Of starting and completing one execution on a GPU: 8 B to an H200 takes 5.7 to 7.5 us."""

MEMCPY_CALL_SECONDS = 0.2e-6
"""The same for a copy by the CPU, which calls nobody."""

SHORTEST_SAMPLE_SECONDS = 150e-6
"""Small transfers are batched until the timer's own cost is under 5 % of the sample."""

HOST_COPY_RATE = 8e9
"""Bytes per second of one core between two buffers beyond its caches: 5 to 12 GB/s on current
servers."""

PAGEABLE_RATE = 9e9
"""Bytes per second through the driver's staging: 7.2 and 13.5 GB/s on an H200 host."""

LINK_RATE = 25e9
"""Bytes per second to a GPU whose link is unknown: between generations 4 and 5 of PCIe."""

LINK_EFFICIENCY = 0.85
"""Of a link's theoretical peak: 55.4 of 63 GB/s for PCIe 5, 395 of 478 for NVLink 4."""

SAMPLES = 40
"""To bring the interval of a quiet series within 1 %; the rule's minimum where it is slow."""

GROWING_SHARE = 0.5
"""Of the sizes beyond 64 MiB, how many are measured: links saturate before, memory often after."""


class Cost:
    """Expected times on one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.worker_seconds = WORKER_SECONDS + GPU_CONTEXT_SECONDS * len(machine.gpus)

    def visit_seconds(self, workload: Workload, rule: Rule) -> float:
        """Of one visit, set-up and verification included."""
        setup = sum(map(self._setup_seconds, workload.transfers))
        return VISIT_SECONDS + setup + self._sampling_seconds(workload, rule)

    def _sampling_seconds(self, workload: Workload, rule: Rule) -> float:
        once = max(map(self._transfer_seconds, workload.transfers), default=CALL_SECONDS)
        if workload.cache != "warm":
            once += workload.bytes * HOST_BYTE_SECONDS
        # Each sample is executed a second time, unbatched, for the time an application sees.
        sample = max(2 * once, SHORTEST_SAMPLE_SECONDS)
        minimum = rule.slow_minimum if once > rule.slow_seconds else rule.minimum
        return max(minimum * sample, min(SAMPLES * sample, rule.soft_seconds))

    def _transfer_seconds(self, transfer: Transfer) -> float:
        path = transfer.path
        on_gpu = "gpu" in (path.source.place.kind, path.destination.place.kind)
        return (CALL_SECONDS if on_gpu else MEMCPY_CALL_SECONDS) + transfer.bytes / self.rate(
            transfer
        )

    def rate(self, transfer: Transfer) -> float:
        """Bytes per second that the transfer is expected to reach when it is large."""
        source, destination = transfer.path.source.place, transfer.path.destination.place
        if source.kind == destination.kind == "numa":
            return HOST_COPY_RATE
        if "pageable" in (transfer.path.source.kind, transfer.path.destination.kind):
            return PAGEABLE_RATE
        peak = bound(self._machine, Workload((transfer,)))
        return LINK_EFFICIENCY * peak.bytes_per_second if peak else LINK_RATE

    def _setup_seconds(self, transfer: Transfer) -> float:
        ends = (transfer.path.source, transfer.path.destination)
        return transfer.bytes * sum(map(self._byte_seconds, ends))

    def _byte_seconds(self, memory: Memory) -> float:
        if memory.place.kind == "gpu":
            return GPU_BYTE_SECONDS
        return HOST_BYTE_SECONDS + (0.0 if memory.kind == "pageable" else PIN_BYTE_SECONDS)
