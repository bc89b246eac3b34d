"""Readings of the GPUs while they work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from scripted_orders import PATH, a_machine, an_order

from waywiser.machine.machine import Gpu
from waywiser.measure.probe import load, supervisor
from waywiser.measure.probe.load import LoadReadings
from waywiser.words import Memory, Place
from waywiser.words.records import GpuState, Visit

TO_GPU = msgspec.structs.replace(PATH, destination=Memory("device", Place("gpu", 1)))


class Telemetry:
    """Stands in for NVML; remembers whether it was closed."""

    made: list[Telemetry]
    read_times = 0
    go_on: Path
    """Made at the third reading."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.gpus = [gpu.index for gpu in gpus]
        self.closed = False
        type(self).made.append(self)

    def read(self, indices: Sequence[int]) -> tuple[GpuState, ...]:
        self.read_times += 1
        if self.read_times == 3:
            self.go_on.touch()
        return tuple(GpuState(index, clock_sm_mhz=1980) for index in self.gpus if index in indices)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Telemetry]:
    Telemetry.made, Telemetry.go_on = [], tmp_path / "go-on"
    monkeypatch.setattr(supervisor, "GpuTelemetry", Telemetry)
    return Telemetry.made


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of readings to so many seconds, at first 0."""

    def now(seconds: float) -> None:
        monkeypatch.setattr(load, "time", SimpleNamespace(monotonic=lambda: seconds))

    now(0.0)
    return now


Run = Callable[..., list[Visit]]


def test_a_visit_holds_readings_of_its_own_gpus_under_load(
    run: Run, telemetry: list[Telemetry]
) -> None:
    order = an_order({"do": "wait", "when": "late"}, path=TO_GPU)  # for three readings
    machine = a_machine(gpus=2)
    (visit,) = run([order], "--backend", "cuda", machine=machine, telemetry_seconds=0.05)
    assert {state.index for state in visit.gpu_states} == {1}
    assert len(visit.gpu_states) >= 3
    assert [made.closed for made in telemetry] == [True]


def test_work_of_the_host_reads_no_gpu(run: Run, telemetry: list[Telemetry]) -> None:
    (visit,) = run([an_order()], "--backend", "cuda", machine=a_machine(gpus=1))
    assert visit.gpu_states == ()


def test_gpus_that_are_not_there_are_not_read(run: Run, telemetry: list[Telemetry]) -> None:
    (visit,) = run([an_order(path=TO_GPU)], "--backend", "replay", machine=a_machine(gpus=2))
    assert visit.gpu_states == ()
    assert telemetry == []


def made(interval: float, patience: float = 0.0) -> LoadReadings:
    gpus = Telemetry(a_machine(gpus=1).gpus)
    return LoadReadings(gpus, [0], interval, patience)  # type: ignore[arg-type]


@pytest.mark.usefixtures("telemetry")
def test_readings_are_due_at_the_first_load_and_then_at_intervals(
    now: Callable[[float], None],
) -> None:
    readings = made(60.0)
    now(1.0)
    assert readings.take() == 59.0
    assert readings.taken == ()
    readings.under_load()
    assert readings.take() == 60.0
    assert len(readings.taken) == 1
    now(2.0)
    readings.under_load()
    assert readings.take() == 59.0
    assert len(readings.taken) == 1
    now(61.0)
    assert readings.take() == 60.0
    assert len(readings.taken) == 2


@pytest.mark.usefixtures("telemetry")
def test_a_reading_is_taken_where_no_estimate_ever_comes(now: Callable[[float], None]) -> None:
    readings = made(60.0)
    now(60.0)
    readings.take()
    assert len(readings.taken) == 1


@pytest.mark.usefixtures("telemetry", "now")
def test_a_visit_that_is_over_at_once_is_read_at_its_end() -> None:
    readings = made(60.0)
    readings.take()
    assert not readings.taken
    readings.at_end()
    assert len(readings.taken) == 1
    readings.at_end()
    assert len(readings.taken) == 1


@pytest.mark.usefixtures("telemetry")
def test_small_transfers_are_not_disturbed_for_a_while(now: Callable[[float], None]) -> None:
    readings = made(60.0, patience=30.0)
    readings.under_load()
    assert readings.take() == 30.0
    now(29.0)
    assert readings.take() == 1.0
    assert not readings.taken
    now(30.0)
    readings.take()
    assert len(readings.taken) == 1
