"""A worker that measures this machine with the native library.

    python -m waywiser.measure.probe.worker --read-fd N --write-fd M [--parent PID]

The supervisor starts one for each member of a group; it holds one native session at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import msgspec

from waywiser.machine import (
    LinkCounters,
    Machine,
    Requirements,
    native,
    native_machine,
    native_memory,
)
from waywiser.machine.met_limit import met_limit
from waywiser.machine.native_words import native_operation, native_transfer
from waywiser.measure.probe.protocol import (
    OTHER_MEMBER,
    Hello,
    Locate,
    Located,
    MeasuredVisit,
    Observe,
    Observed,
    Ready,
)
from waywiser.measure.probe.serve import Estimate, OrderFailed, parser, serve
from waywiser.measure.probe.share import share_of
from waywiser.measure.probe.watch import Watch, gpus_of
from waywiser.words import LIMIT, MESSAGES, LinkEvidence, Order, Transfer, Workload

_GPU_KINDS = {
    "out_of_memory": "out-of-memory",
    "sticky": "sticky",
    "unavailable": "gpu",
    "other": "gpu",
}
"""Kinds of native GPU errors as kinds of `waywiser.words.records.Failure`."""


def order_failed(error: Exception, library: ModuleType) -> OrderFailed:
    """The failure that an exception raised while preparing or measuring amounts to.

    The worker is lost after a sticky error or without a driver. It is also given up after running
    out of memory, which can leave half-made allocations, and after any unexpected error.
    """
    if isinstance(error, OrderFailed):
        return error
    if isinstance(error, library.NotSupported):
        return OrderFailed("not-supported", str(error))
    if isinstance(error, library.WrongBytes):
        return OrderFailed("wrong-bytes", str(error))
    if isinstance(error, library.OtherRankFailed):
        return OrderFailed(OTHER_MEMBER, f"{error} failed")
    if isinstance(error, library.MessengerError):
        return OrderFailed(MESSAGES, f"messages between ranks: {error}", fatal=True)
    if isinstance(error, library.NcclError):
        return OrderFailed("gpu", str(error), fatal=True)
    if isinstance(error, library.GpuError):
        message, kind = error.args[0], error.args[1]
        why = library.gpu_unavailable_reason() if kind == "unavailable" else ""
        reason = f"{why} ({message})" if why else str(message)
        return OrderFailed(_GPU_KINDS[kind], reason, fatal=kind != "other")
    if isinstance(error, library.NodeFull):  # nothing was allocated
        return OrderFailed("out-of-memory", str(error))
    if isinstance(error, MemoryError):
        return OrderFailed("out-of-memory", f"host memory: {str(error) or 'none left'}", fatal=True)
    if limit := met_limit(error):
        return OrderFailed(LIMIT, str(limit), fatal=True)
    return OrderFailed("crash", f"{type(error).__name__}: {error}", fatal=True)


class NativeMeasurer:
    """Answers orders with the native library; one group member's share of them."""

    def __init__(self, hello: Hello, messenger: Any = None) -> None:
        """``messenger`` is that of a rank, which measures its ends of whole workloads."""
        self._hello = hello
        self._messenger = messenger
        self._library = native.load()
        self._machine = native_machine(hello.machine)
        self._host_timed: tuple[Transfer, ...] = ()
        self._session: Any = None
        self._links: LinkCounters | None = None

    def open(self) -> None:
        """Makes contexts. A GPU that fails is left to the orders that need it: they fail with the
        reason, and no others do."""
        if self._hello.gpus:
            with suppress(self._library.GpuError):
                self._session = self._new_session()
                self._session.open(list(self._hello.gpus))

    def prepare(self, order: Order, host_timed: Sequence[Transfer] = ()) -> None:
        """Makes the session; raises `OrderFailed` for what cannot be run."""
        try:
            if news := tuple(each for each in host_timed if each not in self._host_timed):
                self._host_timed += news
                self._session = None  # its contexts stay
            for transfer in self._share(order).transfers:
                unsupported = self._library.unsupported_reason(
                    native_transfer(transfer), self._machine
                )
                if unsupported is not None:
                    raise OrderFailed("not-supported", unsupported)
            if self._session is None:
                self._session = self._new_session()
        except Exception as error:
            raise self.failed(error) from error

    def measure(self, order: Order, estimate: Estimate) -> MeasuredVisit:
        """One visit. A path that blocks behind a closed gate is measured again by the host."""
        share = self._share(order)
        try:
            try:
                return self._measure(share, order, estimate)
            except self._library.BlocksBehindGate as blocked:
                return self._measure_by_host(share, order, estimate, str(blocked))
        except Exception as error:
            raise self.failed(error) from error

    def locate(self, request: Locate) -> Located:
        """How far blocks of a memory are from GPUs and CPUs."""
        try:
            if self._session is None:
                self._session = self._new_session()
            found = self._session.locality(native_memory(request.memory), cpus=list(request.cpus))
        except Exception as error:
            raise self.failed(error) from error
        return msgspec.convert({"id": request.id, **found}, Located)

    def observe(self, request: Observe) -> Observed:
        """Whether transfers of a GPU need multiprocessors."""
        try:
            if self._session is None:
                self._session = self._new_session()
            transfers = [native_transfer(transfer) for transfer in request.transfers]
            found = self._session.who_copies(request.gpu, transfers)
        except Exception as error:
            raise self.failed(error) from error
        return msgspec.convert({"id": request.id, **found}, Observed)

    def failed(self, error: Exception) -> OrderFailed:
        """The failure that an exception of the native library amounts to."""
        return order_failed(error, self._library)

    def underway(self) -> str:
        """The transfer of a set that has run longest."""
        session = self._session
        return "" if session is None else str(session.underway())

    def _measure_by_host(
        self, share: Workload, order: Order, estimate: Estimate, reason: str
    ) -> MeasuredVisit:
        self._host_timed += share.transfers
        self._session = None  # the old one must give its memory back first
        self._session = self._new_session()
        found = self._measure(share, order, estimate)
        note = f"timed by the host, since it blocks behind a closed gate: {reason}"
        return msgspec.structs.replace(
            found, notes=(*found.notes, note), host_timed=share.transfers
        )

    def _measure(self, share: Workload, order: Order, estimate: Estimate) -> MeasuredVisit:
        watch = self._watch(share) if order.evidence else None
        outcome = self._session.measure(
            [native_transfer(transfer) for transfer in share.transfers],
            operation=share.operation and native_operation(share.operation),
            cache=share.cache,
            shared=share.shared,
            rule=self._library.StopRule(**msgspec.structs.asdict(order.rule)),
            seed=order.seed,
            progress=estimate,
            evidence=watch,
        )
        outcome["held_bytes"] = outcome.pop("pool_peak_bytes")
        found = msgspec.convert(outcome, MeasuredVisit)
        if watch:
            return msgspec.structs.replace(found, evidence=watch.found)
        if order.evidence and self._links:
            nothing = LinkEvidence(0, 0.0, 0.0, reason=self._links.reason)
            return msgspec.structs.replace(found, evidence=nothing)
        return found

    def _watch(self, share: Workload) -> Watch | None:
        """Counters of links for the workload; None if NVML does not answer. They are opened
        when the first evidence is asked for."""
        if self._links is None:
            self._links = LinkCounters(self._hello.machine.gpus)
        if self._links.reason:
            return None
        transfers = map(native_transfer, share.transfers)
        found = (self._library.requirements(transfer, self._machine) for transfer in transfers)
        needs = (msgspec.convert(each, Requirements) for each in found)
        return Watch(self._links, gpus_of(share, needs))

    def _new_session(self) -> Any:
        return self._library.Session(
            self._machine,
            peer_access=self._hello.process.peer_access,
            memory_bytes=self._hello.memory_bytes,
            watchdog_seconds=self._hello.watchdog_seconds,
            host_timed=[native_transfer(transfer) for transfer in self._host_timed],
            sides=self._hello.sides,
            messenger=self._messenger,
        )

    def _share(self, order: Order) -> Workload:
        if self._messenger is not None:
            return order.workload
        return share_of(order.workload, self._hello.rank, self._hello.size)


def use_cpus(machine: Machine) -> None:
    """Runs on the machine's CPUs and no others: the supervisor's own was left out of them, and a
    worker starts out with the supervisor's."""
    cpus = {cpu for node in machine.numa for cpu in node.cpus}
    with suppress(OSError):  # not allowed everywhere; then the worker stays where it may be
        os.sched_setaffinity(0, cpus)


def make(hello: Hello) -> tuple[NativeMeasurer, Ready]:
    """Gets ready to measure for the supervisor that said hello."""
    use_cpus(hello.machine)
    measurer = NativeMeasurer(hello)
    measurer.open()
    return measurer, ready_of(hello)


def ready_of(hello: Hello, **other: Any) -> Ready:
    """What this process says when it is ready; ``other`` are further fields."""
    library = native.load()
    versions = {"cuda-runtime": library.runtime_version, "hwloc": library.hwloc_version}
    uuids = _uuids(hello.machine, library)
    return Ready(os.getpid(), library.backend, versions, uuids, **other)


def _uuids(machine: Machine, library: ModuleType) -> tuple[str, ...]:
    """The UUIDs of the GPUs as CUDA counts them; none if none is asked for or none answers, which
    then is a failure of the orders that need one and of no others."""
    try:
        return tuple(library.gpu_uuids()) if machine.gpus else ()
    except library.GpuError:
        return ()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``python -m waywiser.measure.probe.worker``."""
    serve(parser("measures for a supervisor").parse_args(arguments), make)


if __name__ == "__main__":
    main()
