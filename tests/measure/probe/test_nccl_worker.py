"""Workers that measure with the fake NCCL over the fake GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from scripted_orders import PATIENCE_SECONDS, a_machine

from tree import FAKE_FOLDER
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.words import Workload
from waywiser.words.records import Order, Process, Rule, Visit

FAKE_NCCL = FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"

ALL = "device@gpu:0-2"
ALLREDUCE = f"{ALL} -> {ALL} by nccl[collective=allreduce] of 64KiB"
COPY = "device@gpu:0 -> device@gpu:1 by copy-engine of 64KiB"
SEND = "device@gpu:2 -> device@gpu:1 by nccl of 64KiB"

RULE = Rule(maximum=6, minimum_seconds=0.0, soft_seconds=0.02, hard_seconds=0.1)
NCCL = Process(loads="nccl")


def an_order(
    workload: str, process: Process = NCCL, timeout_seconds: float = PATIENCE_SECONDS
) -> Order:
    work = Workload.parse(workload)
    return Order(
        workload=work,
        block=process.block,
        process=process,
        rule=RULE,
        seed=1,
        buffer_bytes=6 * work.bytes,
        expected_seconds=0.2,
        timeout_seconds=timeout_seconds,
    )


Measure = Callable[..., list[Visit]]


@pytest.fixture
def measure(
    fake_native_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Measure:
    """Measures orders on three GPUs, and says by `loaded` which libraries each worker mapped."""
    for name in ("WAYWISER_NATIVE", "PYTHONPATH"):
        monkeypatch.setenv(name, fake_native_environment[name])
    monkeypatch.setenv("WAYWISER_FAKE", "devices=3")
    monkeypatch.setenv("WAYWISER_NCCL", str(FAKE_NCCL))
    machine = a_machine(gpus=3)
    gpus = tuple(
        msgspec.structs.replace(
            gpu,
            uuid=f"GPU-fake0000-0000-0000-0000-{gpu.index:012x}",
            peers=tuple(other for other in range(3) if other != gpu.index),
        )
        for gpu in machine.gpus
    )
    machine = msgspec.structs.replace(machine, gpus=gpus)

    def measure(*orders: Order, fault: str = "") -> list[Visit]:
        monkeypatch.setenv("WAYWISER_FAKE_NCCL", fault)
        visits: list[Visit] = []
        settings = ProbeOptions(startup_seconds=PATIENCE_SECONDS)
        run_orders(list(orders), machine, options=settings, on_visit=visits.append)
        return visits

    return measure


def test_every_gpu_of_a_collective_is_timed(measure: Measure) -> None:
    collective, send = measure(an_order(ALLREDUCE), an_order(SEND))
    assert (collective.failure, send.failure) == (None, None)
    assert collective.mode == send.mode == "device"
    for visit, gpus in ((collective, 3), (send, 2)):
        samples = visit.samples
        assert len(samples.lanes) == len(samples)
        for (lanes,), (seconds,) in zip(samples.lanes, samples.transfers, strict=True):
            assert len(lanes) == gpus and max(lanes) == seconds
    assert [buffer.memory for buffer in collective.buffers] == [ALL, ALL]


def test_a_set_keeps_the_times_of_its_members_apart(measure: Measure) -> None:
    (visit,) = measure(an_order(f"{ALLREDUCE}; {COPY}"))
    assert visit.failure is None and visit.mode == "host"
    samples = visit.samples
    assert len(samples.lanes) == len(samples.alone) == len(samples) > 0
    for row, seconds, alone in zip(samples.lanes, samples.transfers, samples.alone, strict=True):
        assert [len(lanes) for lanes in row] == [3, 1]
        assert row[1] == (seconds[1],)
        assert len(alone) == 2 and min(alone) > 0


def test_the_member_of_a_set_that_never_ends_is_named(measure: Measure) -> None:
    _, hung, after = measure(
        an_order(COPY),  # the first order of a worker has much more time
        an_order(f"{COPY}; {ALLREDUCE}", timeout_seconds=3.0),
        an_order(COPY),
        fault="miss=2",
    )
    assert hung.failure is not None and hung.failure.kind == "timeout"
    assert f"{Workload.parse(ALLREDUCE)} has been under way for" in hung.failure.reason
    assert after.failure is None


def test_what_cannot_be_repeated_is_in_no_set_with_a_collective(measure: Measure) -> None:
    (visit,) = measure(an_order(f"{ALLREDUCE}; {COPY} (flushed)"))
    assert visit.failure is not None and visit.failure.kind == "not-supported"
    assert "are repeated" in visit.failure.reason


def test_only_workers_whose_orders_name_it_have_it(measure: Measure) -> None:
    plain, with_nccl, beside = measure(
        an_order(COPY, Process()), an_order(ALLREDUCE), an_order(COPY)
    )
    assert plain.worker != with_nccl.worker
    assert beside.worker == with_nccl.worker, "members of a set are measured in its process"


def test_a_wrong_byte_of_any_gpu_is_found(measure: Measure) -> None:
    wrong, after = measure(an_order(ALLREDUCE), an_order(SEND), fault="flip=2")
    assert wrong.failure is not None and wrong.failure.kind == "wrong-bytes"
    assert "1 of 65536 bytes are wrong on gpu:1" in wrong.failure.reason
    assert after.failure is None


def test_a_gpu_that_does_not_take_part_is_a_hang(measure: Measure) -> None:
    _, hung, after = measure(
        an_order(COPY),  # the first order of a worker has much more time
        an_order(ALLREDUCE, timeout_seconds=2.0),
        an_order(COPY, Process()),
        fault="miss=2",
    )
    assert hung.failure is not None and hung.failure.kind == "timeout"
    assert after.failure is None


def test_a_library_that_does_not_load_is_the_reason(
    measure: Measure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "libnccl.so.2"
    broken.write_text("no library")
    monkeypatch.setenv("WAYWISER_NCCL", str(broken))
    (visit,) = measure(an_order(ALLREDUCE))
    assert visit.failure is not None and visit.failure.kind == "not-supported"
    assert visit.failure.reason.startswith("NCCL does not load: ") and str(broken) in (
        visit.failure.reason
    )
