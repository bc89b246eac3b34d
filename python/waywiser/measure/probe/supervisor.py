"""Runs orders in worker processes and survives what happens to them.

A crash, a hang, a device out of memory or a lost context costs the order it happened to; the next
one is measured by a fresh worker. The supervisor itself never opens a GPU's context, and sleeps
while its workers measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property

from waywiser.machine.catalogue import Catalogue
from waywiser.machine.machine import Machine
from waywiser.machine.telemetry import GpuTelemetry
from waywiser.measure.probe.aside import off_measured_cpus
from waywiser.measure.probe.group import WorkerGroup
from waywiser.measure.probe.load import LARGE_BYTES, PEACE_SECONDS, LoadReadings
from waywiser.measure.probe.member import MemberLost
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import Hello, Progressed, Ready
from waywiser.measure.probe.teams import Teams, Workers
from waywiser.measure.probe.watch import gpus_of
from waywiser.measure.probe.worker_process import LimitReached, ProbeError
from waywiser.words import Transfer, Value, Workload
from waywiser.words.records import KILLED, LIMIT, Locality, Order, Process, Visit, WhoCopies


class Progress(Value, frozen=True):
    """The current estimate of the visit that is being measured, in seconds.

    ``low`` and ``high`` bound the 95 % interval of the median, None while samples are too few.
    """

    order: Order
    n: int
    median: float
    low: float | None = None
    high: float | None = None


OnProgress = Callable[[Progress], None]
OnLocality = Callable[[Locality], None]


def run_orders(
    orders: Iterable[Order],
    machine: Machine,
    *,
    options: ProbeOptions | None = None,
    on_visit: Callable[[Visit], None],
    on_progress: OnProgress | None = None,
    on_locality: OnLocality | None = None,
    teams: Teams | None = None,
) -> None:
    """Measures the orders one after the other; ``on_visit`` gets each visit as it is finished, and
    ``on_locality`` what a worker found out about memory before its first order.

    ``orders`` may be lazy: the next order is asked for only after ``on_visit`` has seen the visit
    before. Consecutive orders with equal `waywiser.words.records.Process` share a worker. What was
    being measured when an exception passes through (Ctrl-C, an error of ``on_visit``) is dropped,
    and whatever the way out, no worker is left. ``teams`` are of other workers than those that
    ``options`` describe. Raises `ProbeError` when no worker gets ready."""
    with (
        off_measured_cpus(machine),
        closing(Supervisor(machine, options, on_locality, teams)) as supervisor,
    ):
        for order in orders:
            on_visit(supervisor.measure(order, on_progress))
        supervisor.end()


def observe_copies(
    requests: Mapping[int, Sequence[Transfer]],
    machine: Machine,
    options: ProbeOptions,
    on_found: Callable[[WhoCopies], None],
) -> None:
    """Asks for each GPU whether its transfers need multiprocessors, in a worker of its own, so that
    nothing which is measured depends on it. ``on_found`` gets what was seen, or why nothing was.
    Raises `ProbeError` when no worker gets ready."""
    with (
        off_measured_cpus(machine),
        closing(Supervisor(machine, options)) as supervisor,
    ):
        for gpu, transfers in requests.items():
            on_found(supervisor.observe(gpu, transfers))
        supervisor.end()


class Supervisor:
    """The current group of workers, and what is remembered from one group to the next."""

    def __init__(
        self,
        machine: Machine,
        options: ProbeOptions | None = None,
        on_locality: OnLocality | None = None,
        teams: Teams | None = None,
    ) -> None:
        self._machine = machine
        self._options = options or ProbeOptions()
        self._teams = teams or Workers(self._options.command, self._options.size)
        self._on_locality = on_locality
        self._located: set[Process] = set()
        self._killing: set[str] = set()
        """Memories whose location the kernel, out of memory, has killed a worker for."""
        self._group: WorkerGroup | None = None
        self._process: Process | None = None
        self._next_number = self._options.first_worker
        self._host_timed: list[Transfer] = []
        self._telemetry: GpuTelemetry | None = None

    def measure(self, order: Order, on_progress: OnProgress | None = None) -> Visit:
        """One visit, in a worker with the order's process settings."""
        group = self._group_for(order.process)

        def heard(said: Progressed) -> None:
            if on_progress:
                on_progress(Progress(order, said.n, said.median, said.low, said.high))

        visit, parts = group.measure(
            order,
            allowance_seconds=self._options.startup_seconds,
            readings=self._readings(order.workload),
            heard=heard,
        )
        found = (transfer for part in parts for transfer in part.host_timed)
        self._host_timed += (transfer for transfer in found if transfer not in self._host_timed)
        if group.lost:
            self._drop()
        return visit

    def observe(self, gpu: int, transfers: Sequence[Transfer]) -> WhoCopies:
        """Whether transfers of a GPU need multiprocessors."""
        group = self._group_for(Process())
        found = group.observe(gpu, transfers, self._options.observing_seconds)
        if group.lost:
            self._drop()
        return found

    def end(self) -> None:
        """Ends the workers politely."""
        if self._group:
            self._group.end(self._options.ending_seconds)
            self._group = None

    def close(self) -> None:
        """Kills the workers, and gives NVML back."""
        self._drop()
        if self._telemetry:
            self._telemetry.close()

    def _drop(self) -> None:
        if self._group:
            self._group.close()
            self._group = None

    def _group_for(self, process: Process) -> WorkerGroup:
        if self._group and self._group.usable and self._process == process:
            return self._group
        self.end()
        for _ in range(self._options.startup_attempts):
            try:
                self._group = self._start_group(process)
            except MemberLost as lost:
                reason = lost.failure.reason
                if lost.failure.kind == LIMIT:
                    raise LimitReached(reason) from lost
            else:
                self._process = process
                lost_locating = self._locate(process)
                if self._group.usable:
                    return self._group
                reason = lost_locating or "it ended before its first order"
                self._drop()
        raise self._teams.unready(self._options.startup_attempts, reason)

    def _locate(self, process: Process) -> str:
        """Once for each kind of process: a worker that it costs is not asked again. Returns the
        last reason why a memory was not located."""
        reason = ""
        if self._group is None or process in self._located:
            return reason
        self._located.add(process)
        for memory in self._options.located:
            if self._group.usable and str(memory) not in self._killing:
                found = self._group.locate(
                    memory, self._options.located_cpus, self._options.locating_seconds
                )
                reason = found.failure.reason if found.failure else reason
                if found.failure and found.failure.kind == KILLED:
                    self._killing.add(str(memory))
                if self._on_locality:
                    self._on_locality(found)
        return reason

    def _start_group(self, process: Process) -> WorkerGroup:
        options = self._options
        group = WorkerGroup(self._teams, self._next_number)
        self._next_number += 1

        def hello(rank: int) -> Hello:
            return Hello(
                self._machine,
                process,
                options.memory_bytes,
                options.watchdog_seconds,
                rank,
                self._teams.size,
                tuple(self._host_timed),
                options.sides,
            )

        try:
            ready = group.start(hello, options.startup_seconds)
            self._know(ready)
        except BaseException:
            group.close()
            raise
        return group

    def _know(self, ready: Iterable[Ready]) -> None:
        """Checks that workers and capture mean the same GPUs, and opens telemetry once."""
        for said in ready:
            for gpu in self._machine.gpus:
                counted = said.gpus[gpu.index] if gpu.index < len(said.gpus) else gpu.uuid
                if counted != gpu.uuid and gpu.uuid.startswith("GPU-"):  # CUDA names no MIG part
                    raise ProbeError(
                        f"gpu:{gpu.index} is {gpu.uuid} in the capture, but {counted} to CUDA",
                        remedy="capture again in the same environment (CUDA_VISIBLE_DEVICES)",
                    )
            if said.backend == "cuda" and self._machine.gpus and not self._telemetry:
                self._telemetry = GpuTelemetry(self._machine.gpus)

    @cached_property
    def _catalogue(self) -> Catalogue:
        return Catalogue(self._machine)

    def _readings(self, workload: Workload) -> LoadReadings | None:
        if not self._telemetry:
            return None
        gpus = gpus_of(workload, map(self._catalogue.requirements, workload.transfers))
        if not gpus:
            return None
        patience = 0.0 if workload.bytes >= LARGE_BYTES else PEACE_SECONDS
        return LoadReadings(self._telemetry, gpus, self._options.telemetry_seconds, patience)
