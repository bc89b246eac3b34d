from __future__ import annotations

from typing import Any

import pytest

from machine.captured import machine
from machine.fake_nvml import FakeNvml, counting, h200_answers
from waywiser.machine.counters import LinkCounters

GPUS = machine("h200-vm-8gpu").gpus[:2]


def library() -> FakeNvml:
    return FakeNvml([counting(h200_answers(0)), counting(h200_answers(1))])


def count(gpu: dict[str, Any], field: int, scope: int, amount: int) -> None:
    gpu["fields"][field, scope] += amount


def test_what_moved_between_two_readings_is_reported_by_link() -> None:
    nvml = library()
    counters = LinkCounters(GPUS, nvml)
    assert counters.reason == "" and counters.reasons(0) == ()
    before = counters.read([0, 1])
    count(nvml.gpus[0], 138, 3, 100)
    count(nvml.gpus[0], 139, 17, 7)
    count(nvml.gpus[0], 197, 0, 4096)
    count(nvml.gpus[1], 198, 0, 512)
    after = counters.read([0, 1])
    first = counters.between(0, before[0], after[0])
    assert first.nvlink_tx == {3: 100 * 1024} and first.nvlink_rx == {17: 7 * 1024}
    assert (first.pcie_tx, first.pcie_rx) == (4096, 0)
    second = counters.between(1, before[1], after[1])
    assert second.nvlink_tx == {} and (second.pcie_tx, second.pcie_rx) == (0, 512)
    counters.close()
    assert nvml.open == 0


def test_pcie_counters_begin_anew_at_4_gib() -> None:
    nvml = library()
    nvml.gpus[0]["fields"][197, 0] = 2**32 - 100
    counters = LinkCounters(GPUS, nvml)
    before = counters.read([0])[0]
    nvml.gpus[0]["fields"][197, 0] = 2**28 - 100
    after = counters.read([0])[0]
    assert counters.between(0, before, after).pcie_tx == 2**28


def test_nvlink_counters_of_more_than_32_bits_are_read_whole() -> None:
    nvml = library()
    nvml.gpus[0]["fields"][138, 0] = 2**40
    counters = LinkCounters(GPUS, nvml)
    before = counters.read([0])[0]
    count(nvml.gpus[0], 138, 0, 2**33)
    after = counters.read([0])[0]
    assert counters.between(0, before, after).nvlink_tx == {0: 2**43}


def test_a_counter_that_was_reset_shows_nothing() -> None:
    nvml = library()
    nvml.gpus[0]["fields"][138, 5] = 1000
    counters = LinkCounters(GPUS, nvml)
    before = counters.read([0])[0]
    nvml.gpus[0]["fields"][138, 5] = 10
    assert counters.between(0, before, counters.read([0])[0]).nvlink_tx is None


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([(138, link) for link in range(18)], "NVLink sent (field 138) is not counted on 18 of 18"),
        ([(139, 4)], "NVLink received (field 139) is not counted on 1 of 18 links: NVML error 3"),
        ([(197, 0)], "PCIe sent (field 197) is not counted: NVML error 3"),
    ],
)
def test_a_counter_that_is_not_there_is_reported_and_the_others_are_read(
    fields: list[tuple[int, int]], says: str
) -> None:
    nvml = library()
    for field in fields:
        del nvml.gpus[0]["fields"][field]
    counters = LinkCounters(GPUS, nvml)
    assert len(counters.reasons(0)) == 1 and says in counters.reasons(0)[0]
    assert counters.reasons(1) == ()
    before = counters.read([0])[0]
    count(nvml.gpus[0], 198, 0, 9)
    assert counters.between(0, before, counters.read([0])[0]).pcie_rx == 9


def test_a_gpu_without_nvlink_says_so() -> None:
    answers = h200_answers(0)
    answers["fields"] = {(197, 0): 0, (198, 0): 0}
    counters = LinkCounters(GPUS[:1], FakeNvml([answers]))
    assert counters.reasons(0) == ("NVML shows no NVLink here",)
    reading = counters.read([0])[0]
    found = counters.between(0, reading, reading)
    assert found.nvlink_tx is None and found.pcie_tx == 0


def test_without_a_driver_the_reason_is_reported() -> None:
    counters = LinkCounters(GPUS, FakeNvml([], init_error=12))
    assert "no NVIDIA driver" in counters.reason
    assert counters.read([0]) == {}
    counters.close()


def test_a_gpu_that_nvml_does_not_know_is_reported() -> None:
    counters = LinkCounters(GPUS, FakeNvml([counting(h200_answers(0))]))
    assert "does not know the GPU" in counters.reasons(1)[0]
    assert list(counters.read([0, 1])) == [0]
