"""Readings of the GPUs while they work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
import pytest
from scripted_orders import PATH, a_machine, an_order

from waywiser.probe import supervisor
from waywiser.probe.load import LoadReadings
from waywiser.records import GpuState, Visit
from waywiser.topology.machine import Gpu
from waywiser.words import Memory, Place

TO_GPU = msgspec.structs.replace(PATH, destination=Memory("device", Place("gpu", 1)))


class Telemetry:
    """Stands in for NVML; remembers whether it was closed."""

    made: list[Telemetry]

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.gpus = [gpu.index for gpu in gpus]
        self.closed = False
        type(self).made.append(self)

    def read(self, indices: Sequence[int]) -> tuple[GpuState, ...]:
        return tuple(GpuState(index, clock_sm_mhz=1980) for index in self.gpus if index in indices)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> list[Telemetry]:
    Telemetry.made = []
    monkeypatch.setattr(supervisor, "GpuTelemetry", Telemetry)
    return Telemetry.made


Run = Callable[..., list[Visit]]


def test_a_visit_holds_readings_of_its_own_gpus_under_load(
    run: Run, telemetry: list[Telemetry]
) -> None:
    order = an_order({"do": "sleep", "when": "late"}, path=TO_GPU)
    machine = a_machine(gpus=2)
    (visit,) = run([order], "--backend", "cuda", machine=machine, telemetry_seconds=0.2)
    assert {state.index for state in visit.gpu_states} == {1}
    assert 2 <= len(visit.gpu_states) <= 4  # at the first estimate, then two in half a second
    assert [made.closed for made in telemetry] == [True]


def test_work_of_the_host_reads_no_gpu(run: Run, telemetry: list[Telemetry]) -> None:
    (visit,) = run([an_order()], "--backend", "cuda", machine=a_machine(gpus=1))
    assert visit.gpu_states == ()


def test_gpus_that_are_not_there_are_not_read(run: Run, telemetry: list[Telemetry]) -> None:
    (visit,) = run([an_order(path=TO_GPU)], "--backend", "replay", machine=a_machine(gpus=2))
    assert visit.gpu_states == ()
    assert telemetry == []


def test_readings_are_due_at_the_first_load_and_then_at_intervals(
    telemetry: list[Telemetry],
) -> None:
    readings = LoadReadings(Telemetry(a_machine(gpus=1).gpus), [0], 60.0)  # type: ignore[arg-type]
    assert 59.0 < readings.take() <= 60.0
    assert readings.taken == ()
    readings.under_load()
    assert 59.0 < readings.take() <= 60.0
    readings.under_load()
    readings.take()
    assert len(readings.taken) == 1


def test_a_reading_is_taken_where_no_estimate_ever_comes(telemetry: list[Telemetry]) -> None:
    readings = LoadReadings(Telemetry(a_machine(gpus=1).gpus), [0], 0.01)  # type: ignore[arg-type]
    time.sleep(0.02)
    readings.take()
    assert len(readings.taken) == 1


def test_a_visit_that_is_over_at_once_is_read_at_its_end(telemetry: list[Telemetry]) -> None:
    readings = LoadReadings(Telemetry(a_machine(gpus=1).gpus), [0], 60.0)  # type: ignore[arg-type]
    readings.take()
    assert not readings.taken
    readings.at_end()
    assert len(readings.taken) == 1
    readings.at_end()
    assert len(readings.taken) == 1


def test_small_transfers_are_left_in_peace_for_a_while(telemetry: list[Telemetry]) -> None:
    gpus = Telemetry(a_machine(gpus=1).gpus)
    readings = LoadReadings(gpus, [0], 60.0, patience_seconds=30.0)  # type: ignore[arg-type]
    readings.under_load()
    assert 29.0 < readings.take() <= 30.0
    assert not readings.taken
