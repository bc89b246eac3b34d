"""Workers with the native library over the fake GPU: each injected fault costs one workload."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from scripted_orders import PATIENCE_SECONDS, a_machine, is_alive

from waywiser.machine.machine import Machine
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.words import Operation, Place, Workload
from waywiser.words.records import Order, Process, Rule, Visit

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine of 1MiB"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine of 1MiB"
HOST = "pageable@numa:0 -> pageable@numa:0 by cpu of 64KiB"

RULE = Rule(maximum=10, minimum_seconds=0.0, soft_seconds=0.02, hard_seconds=0.1)


def an_order(
    workload: str | Workload, *, block: int = 0, timeout_seconds: float = PATIENCE_SECONDS
) -> Order:
    work = Workload.parse(workload) if isinstance(workload, str) else workload
    return Order(
        workload=work,
        block=block,
        process=Process(),
        rule=RULE,
        seed=1,
        buffer_bytes=2 * work.bytes,
        expected_seconds=0.2,
        timeout_seconds=timeout_seconds,
    )


def fake_machine() -> Machine:
    machine = a_machine(gpus=2)
    gpus = tuple(
        msgspec.structs.replace(
            gpu,
            uuid=f"GPU-fake0000-0000-0000-0000-{gpu.index:012x}",
            peers=(1 - gpu.index,),
        )
        for gpu in machine.gpus
    )
    return msgspec.structs.replace(machine, gpus=gpus)


Measure = Callable[..., list[Visit]]


def _children() -> set[int]:
    """The children of this process; tests before may have left helpers of multiprocessing."""
    return {
        int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    }


@pytest.fixture
def measure(
    fake_native_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Measure]:
    """Measures orders with a fault that strikes once; afterwards no child of it may be left."""
    before = _children()
    for name in ("WAYWISER_NATIVE", "PYTHONPATH"):
        monkeypatch.setenv(name, fake_native_environment[name])

    def measure(orders: list[Order], fault: str = "", **options: object) -> list[Visit]:
        once = f"once={tmp_path / 'struck'};" if fault else ""
        monkeypatch.setenv("WAYWISER_FAKE", f"h2d=40;d2h=40;latency=1;{once}{fault}")
        visits: list[Visit] = []
        settings = ProbeOptions(**{"startup_seconds": PATIENCE_SECONDS, **options})  # type: ignore[arg-type]
        run_orders(orders, fake_machine(), options=settings, on_visit=visits.append)
        return visits

    yield measure
    assert not any(is_alive(child) for child in _children() - before)


def test_paths_of_host_and_gpu_are_measured_by_one_worker(measure: Measure) -> None:
    empty = Workload(operation=Operation("empty-interval", Place("gpu", 1)))
    visits = measure([an_order(HOST), an_order(H2D), an_order(f"{H2D}; {D2H}"), an_order(empty)])
    assert [visit.failure for visit in visits] == [None] * 4
    assert [visit.mode for visit in visits] == ["host", "device", "device", "device"]
    assert {visit.worker for visit in visits} == {1}
    for visit in visits:
        samples = visit.samples
        assert len(samples) >= RULE.slow_minimum
        *columns, lanes, alone = msgspec.structs.astuple(samples)
        assert {len(c) for c in columns} == {len(samples)} and not lanes and not alone
        assert min(samples.span) > 0
    assert len(visits[2].samples.transfers[0]) == 2
    assert [buffer.memory for buffer in visits[1].buffers] == ["pinned@numa:0", "device@gpu:0"]


def test_a_path_that_cannot_be_run_fails_in_the_worker(measure: Measure) -> None:
    unsupported_paths, after = measure(
        [an_order("device@gpu:7 -> device@gpu:0 by copy-engine of 8"), an_order(H2D)]
    )
    assert unsupported_paths.failure is not None
    assert unsupported_paths.failure.kind == "not-supported"
    assert "gpu:7" in unsupported_paths.failure.reason
    assert (after.failure, after.worker) == (None, 1)


def test_an_operation_that_nobody_knows_is_an_error(measure: Measure) -> None:
    (visit,) = measure([an_order(Workload(operation=Operation("levitate", Place("gpu", 0))))])
    assert visit.failure is not None
    assert visit.failure.kind == "not-supported"
    assert "no operation 'levitate'" in visit.failure.reason


FAULTS = [
    ("sticky=copy@3", "sticky", ""),
    ("sticky=event@1", "sticky", ""),
    ("lost=copy@2", "sticky", ""),
    ("hang=copy@1", "timeout", "took too long and was killed, while "),
    ("hang=copy@9", "timeout", "took too long and was killed, while "),
    ("crash=copy@2", "crash", "killed by SIGSEGV, while measuring"),
    ("gate=stuck", "timeout", "took too long and was killed, while "),
]


@pytest.mark.parametrize(("fault", "kind", "reason"), FAULTS)
def test_a_fault_costs_one_workload_and_the_next_is_measured_afresh(
    measure: Measure, fault: str, kind: str, reason: str
) -> None:
    hangs = kind == "timeout"
    seconds = 2.0 if hangs else PATIENCE_SECONDS
    orders = [an_order(HOST), an_order(H2D, timeout_seconds=seconds), an_order(D2H)]
    before, lost, after = measure(
        orders, fault, watchdog_seconds=1.0 if hangs else PATIENCE_SECONDS
    )
    assert before.failure is None
    assert lost.failure is not None
    assert lost.failure.kind == kind
    assert reason in lost.failure.reason
    assert (lost.worker, after.worker) == (1, 2)
    assert after.failure is None


@pytest.mark.parametrize("number", range(1, 5))
def test_out_of_memory_at_any_allocation_costs_one_workload(measure: Measure, number: int) -> None:
    lost, after = measure([an_order(H2D), an_order(H2D, block=1)], f"oom_at={number}")
    if number <= 2:  # the two buffers, for which one asks again when idle memory is given up
        assert lost.failure is None
    else:
        assert lost.failure is not None
        assert lost.failure.kind == "out-of-memory"
    assert after.failure is None


@pytest.mark.parametrize("gpus", [(0,), (1, 0), (0, 9)])
def test_contexts_that_are_made_before_the_first_order_cost_no_order(
    measure: Measure, gpus: tuple[int, ...]
) -> None:
    """One of a GPU that is not there is left out."""
    visits = measure([an_order(H2D), an_order(HOST), an_order(D2H)], gpus=gpus)
    assert [(visit.failure, visit.worker) for visit in visits] == [(None, 1)] * 3


@pytest.mark.parametrize("gpus", [(), (0,)])
def test_a_worker_uses_the_gpus_that_are_named_before_the_first_order(
    measure: Measure, tmp_path: Path, gpus: tuple[int, ...]
) -> None:
    """Each worker calls both GPUs for their names; the fault strikes the next call of one, which an
    order of the host does not make."""
    (visit,) = measure([an_order(HOST)], "sticky=call@3", gpus=gpus)
    assert visit.failure is None
    assert (tmp_path / "struck").exists() == bool(gpus)


@pytest.mark.parametrize("gpus", [(), (0, 1)])
def test_a_context_that_fails_costs_the_order_that_needs_it(
    measure: Measure, gpus: tuple[int, ...]
) -> None:
    orders = [an_order(HOST), an_order(H2D), an_order(D2H)]
    before, lost, after = measure(orders, "sticky=call@1", gpus=gpus)
    assert (before.failure, before.worker) == (None, 1)
    assert lost.failure is not None
    assert lost.failure.kind == "sticky"
    assert (after.failure, after.worker) == (None, 2)


def test_out_of_memory_that_lasts_costs_the_workload(measure: Measure) -> None:
    (lost,) = measure([an_order(H2D)], "oom_at=1+")
    assert lost.failure is not None
    assert lost.failure.kind == "out-of-memory"


def test_an_error_that_the_context_survives_costs_no_worker(measure: Measure) -> None:
    lost, after = measure([an_order(H2D), an_order(D2H)], "fail=copy@1")
    assert lost.failure is not None
    assert lost.failure.kind == "gpu"
    assert (after.failure, after.worker) == (None, 1)


@pytest.mark.parametrize("fault", ["flip=copy@1+", "drop=copy@1+;only_bytes=1048576"])
def test_wrong_bytes_are_no_number(measure: Measure, fault: str) -> None:
    lost, after = measure([an_order(H2D), an_order(HOST)], fault)
    assert lost.failure is not None
    assert lost.failure.kind == "wrong-bytes"
    assert len(lost.samples) == 0
    assert (after.failure, after.worker) == (None, 1)


def test_a_path_that_blocks_behind_the_gate_is_timed_by_the_host_from_then_on(
    measure: Measure,
) -> None:
    other = an_order(H2D.replace("1MiB", "2MiB"), block=1)
    other = msgspec.structs.replace(other, process=Process(block=1))
    first, later = measure([an_order(H2D), other], "block=copy@2+", watchdog_seconds=0.2)
    assert (first.failure, first.mode, first.stop != "failed") == (None, "host", True)
    assert "timed by the host, since it blocks behind a closed gate" in first.notes[-1]
    assert (later.failure, later.mode, later.worker) == (None, "host", 2)


def test_without_a_gpu_the_host_is_measured_and_each_gpu_path_says_why_not(
    measure: Measure,
) -> None:
    lost, after = measure([an_order(H2D), an_order(HOST)], "unavailable=no driver is loaded")
    assert lost.failure is not None
    assert "no driver is loaded" in lost.failure.reason
    assert after.failure is None


def test_more_memory_than_allowed_is_an_error(measure: Measure) -> None:
    (visit,) = measure([an_order(H2D)], memory_bytes=1 << 20)
    assert visit.failure is not None
    assert visit.failure.kind in ("not-supported", "out-of-memory")
    assert visit.failure.reason
