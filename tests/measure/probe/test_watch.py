from __future__ import annotations

from machine.captured import machine
from machine.fake_nvml import FakeNvml, counting, h200_answers
from waywiser.machine.catalogue import Requirements
from waywiser.machine.counters import LinkCounters
from waywiser.measure.probe.watch import SETTLE_SECONDS, Watch, gpus_of
from waywiser.words import Operation, Place, Workload

H2D = Workload.parse("pinned@numa:0 -> device@gpu:1 by copy-engine of 1MiB")
GPUS = machine("h200-vm-8gpu").gpus[:2]


class Time:
    """A clock that only sleeping moves; PCIe of GPU 1 receives a byte per microsecond."""

    def __init__(self, nvml: FakeNvml) -> None:
        self.now = 100.0
        self._nvml = nvml

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._nvml.gpus[1]["fields"][198, 0] += round(seconds * 1e6)


def test_work_and_as_long_a_time_without_it_are_counted() -> None:
    nvml = FakeNvml([counting(h200_answers(0)), counting(h200_answers(1))])
    time = Time(nvml)
    watch = Watch(LinkCounters(GPUS, nvml), gpus_of(H2D), time.clock, time.sleep)
    watch(0)
    assert watch.found is None
    time.sleep(0.5)
    nvml.gpus[1]["fields"][198, 0] += 4 << 20
    watch(4)
    found = watch.found
    assert found is not None and found.executions == 4
    assert abs(found.seconds - 0.5 - SETTLE_SECONDS) < 1e-9
    assert abs(found.idle_seconds - found.seconds) < 1e-9
    (gpu,) = found.gpus
    assert gpu.index == 1
    background = round((0.5 + SETTLE_SECONDS) * 1e6)
    assert gpu.work.pcie_rx == (4 << 20) + background
    assert gpu.idle.pcie_rx == background
    assert gpu.work.nvlink_tx == {} and gpu.reasons == ()


def test_gpus_of_a_workload() -> None:
    assert gpus_of(H2D) == (1,)
    assert gpus_of(Workload.parse("device@gpu:3 -> device@gpu:0 by copy-engine of 8")) == (0, 3)
    assert gpus_of(Workload.parse("pageable@numa:0 -> pageable@numa:0 by cpu of 8")) == ()
    relayed = Workload.parse("pinned@numa:0 -> device@gpu:1 by relay of 8")
    needs = Requirements(device_bytes={3: 8}, peers=((1, 3),), host_links=(1, 3))
    assert gpus_of(relayed, [needs]) == (1, 3)
    assert gpus_of(Workload(operation=Operation("empty-interval", Place("gpu", 2)))) == (2,)
