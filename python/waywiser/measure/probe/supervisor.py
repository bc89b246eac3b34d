"""Runs orders in worker processes and survives what happens to them.

Workers of processes that come next are started side by side, wait, and take turns: nothing is
measured while one starts. A crash, a hang, a device out of memory or a lost context costs the order
it happened to; the next one is measured by a fresh worker. The supervisor itself never opens a
GPU's context, and sleeps while its workers measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property, partial

from waywiser.machine import Catalogue, GpuTelemetry, Machine
from waywiser.measure.probe.aside import off_measured_cpus
from waywiser.measure.probe.group import WorkerGroup
from waywiser.measure.probe.load import LARGE_BYTES, PEACE_SECONDS, LoadReadings
from waywiser.measure.probe.member import MemberLost
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import Hello, Progressed, Ready
from waywiser.measure.probe.teams import Teams, Workers
from waywiser.measure.probe.watch import gpus_of
from waywiser.measure.probe.worker_process import LimitReached, ProbeError
from waywiser.measure.supervise import Deadline
from waywiser.words import (
    KILLED,
    LIMIT,
    Locality,
    Order,
    Process,
    Transfer,
    Value,
    Visit,
    WhoCopies,
    Workload,
)


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
Coming = Callable[[], Sequence[Process]]


def run_orders(
    orders: Iterable[Order],
    machine: Machine,
    *,
    options: ProbeOptions | None = None,
    on_visit: Callable[[Visit], None],
    on_progress: OnProgress | None = None,
    on_locality: OnLocality | None = None,
    teams: Teams | None = None,
    coming: Coming = tuple,
) -> None:
    """Measures the orders one after the other; ``on_visit`` gets each visit as it is finished, and
    ``on_locality`` what a worker found out about memory before its first order.

    ``orders`` may be lazy: the next order is asked for only after ``on_visit`` has seen the visit
    before. Consecutive orders with equal `waywiser.words.records.Process` share a worker. When one
    is started, so are those of the processes that are ``coming`` next. What was
    being measured when an exception passes through (Ctrl-C, an error of ``on_visit``) is dropped,
    and whatever the way out, no worker is left. ``teams`` are of other workers than those that
    ``options`` describe. Raises `ProbeError` when no worker gets ready."""
    with (
        off_measured_cpus(machine),
        closing(Supervisor(machine, options, on_locality, teams, coming)) as supervisor,
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
    """The current group of workers, those that wait for their turn, and what is remembered from one
    group to the next."""

    def __init__(
        self,
        machine: Machine,
        options: ProbeOptions | None = None,
        on_locality: OnLocality | None = None,
        teams: Teams | None = None,
        coming: Coming = tuple,
    ) -> None:
        self._machine = machine
        self._coming = coming
        self._options = options or ProbeOptions()
        self._teams = teams or Workers(self._options.command, self._options.size)
        self._on_locality = on_locality
        self._located: set[Process] = set()
        self._killing: set[str] = set()
        """Memories whose location the kernel, out of memory, has killed a worker for."""
        self._group: WorkerGroup | None = None
        self._process: Process | None = None
        self._waiting: dict[Process, WorkerGroup] = {}
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
            host_timed=self._host_timed,
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
        self._end_current()
        self._end_waiting()

    def close(self) -> None:
        """Kills the workers, and gives NVML back."""
        with ExitStack() as stack:
            if self._telemetry:
                stack.callback(self._telemetry.close)
            for group in self._waiting.values():
                stack.callback(group.close)
            stack.callback(self._drop)

    def _end_waiting(self) -> None:
        while self._waiting:
            _, group = self._waiting.popitem()
            group.end(self._options.ending_seconds)

    def _end_current(self) -> None:
        if self._group:
            self._group.end(self._options.ending_seconds)
            self._group = None

    def _drop(self) -> None:
        if self._group:
            self._group.close()
            self._group = None

    def _group_for(self, process: Process) -> WorkerGroup:
        if self._group and self._group.usable and self._process == process:
            return self._group
        self._end_current()
        for attempt in range(self._options.startup_attempts):
            try:
                self._group = self._waiting_group(process) or self._start(process, attempt)
            except MemberLost as lost:
                reason = lost.failure.reason
                if lost.failure.kind == LIMIT:
                    if attempt or self._options.together == 1:
                        raise LimitReached(reason) from lost
                    self._end_waiting()  # they may be what is too much
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

    def _waiting_group(self, process: Process) -> WorkerGroup | None:
        """The group that waits for this turn, if it is well."""
        for each, group in list(self._waiting.items()):
            if not group.usable:
                self._waiting.pop(each).close()
        return self._waiting.pop(process, None)

    def _start(self, process: Process, attempt: int) -> WorkerGroup:
        """Starts a group for a process, and as many of those that come next as may wait beside it.
        What is lost of these starts again at its turn. Further attempts are of one group, which
        leaves contexts to its orders: these fail by what a context does."""
        processes = [process]
        if attempt == 0:
            others = (each for each in self._coming() if each not in self._waiting)
            processes += [each for each in dict.fromkeys(others) if each != process]
        room = max(self._options.together - len(self._waiting), 1)
        groups: dict[Process, WorkerGroup] = {}
        with ExitStack() as stack:
            for each in processes[:room]:
                try:
                    groups[each] = WorkerGroup(self._teams, self._next_number)
                except LimitReached:
                    if each == process:
                        raise
                    break
                stack.callback(groups[each].close)
                self._next_number += 1
            lost = self._get_ready(groups, attempt)
            self._waiting |= groups
            stack.pop_all()
        for each in lost:
            self._waiting.pop(each).close()
        if process in lost:
            raise lost[process]
        return self._waiting.pop(process)

    def _get_ready(
        self, groups: Mapping[Process, WorkerGroup], attempt: int
    ) -> dict[Process, MemberLost]:
        """Waits until all are ready; returns those that never will be."""
        deadline = Deadline(self._options.startup_seconds)
        lost: dict[Process, MemberLost] = {}
        for each, group in groups.items():
            try:
                group.greet(partial(self._hello, each, attempt), deadline)
            except MemberLost as error:
                lost[each] = error
        for each, group in groups.items():
            try:
                if each not in lost:
                    self._know(group.await_ready(deadline))
            except MemberLost as error:
                lost[each] = error
        return lost

    def _hello(self, process: Process, attempt: int, rank: int) -> Hello:
        options = self._options
        return Hello(
            self._machine,
            process,
            options.memory_bytes,
            options.watchdog_seconds,
            rank,
            self._teams.size,
            options.sides,
            options.gpus if attempt == 0 else (),
        )

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
