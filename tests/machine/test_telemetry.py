from __future__ import annotations

from machine.captured import machine
from machine.fake_nvml import FakeNvml, h200_answers
from waywiser.machine.telemetry import GpuTelemetry

GPUS = machine("h200-vm-8gpu").gpus[:2]


def test_states_of_some_or_all() -> None:
    library = FakeNvml([h200_answers(0), h200_answers(1)])
    with GpuTelemetry(GPUS, library) as telemetry:
        assert [state.index for state in telemetry.read()] == [0, 1]
        (state,) = telemetry.read([1])
        assert (state.index, state.clock_sm_mhz, state.pcie_width) == (1, 345, 16)
        assert state.throttle == ("power cap", "hardware thermal slowdown")
        assert library.open == 1
    assert library.open == 0
    assert telemetry.read() == ()


def test_a_gpu_that_is_gone_is_skipped() -> None:
    with GpuTelemetry(GPUS, FakeNvml([h200_answers(1)])) as telemetry:
        assert [state.index for state in telemetry.read()] == [1]


def test_without_a_driver_nothing_is_read() -> None:
    with GpuTelemetry(GPUS, FakeNvml([], init_error=12)) as telemetry:
        assert telemetry.read() == ()


def test_without_gpus_the_library_is_not_even_opened() -> None:
    library = FakeNvml([h200_answers(0)])
    with GpuTelemetry((), library) as telemetry:
        assert telemetry.read() == () and library.open == 0
