from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fake_nvml import FakeNvml, h200_answers

from waywiser.machine.health import HealthWatch
from waywiser.machine.machine import Gpu
from waywiser.words.records import GpuHealth, Health

LINKS = range(18)


def gpus(count: int) -> list[Gpu]:
    return [Gpu(i, f"GPU-{i}", "H200", f"0000:00:{6 + i:02x}.0") for i in range(count)]


def well(index: int = 0) -> dict[str, Any]:
    """An H200 that answers everything, with nothing wrong."""
    answers = h200_answers(index)
    answers |= {
        "TotalEccErrors": lambda error, counter: 0,
        "RemappedRows": (0, 0, 0, 0),
        "PcieReplayCounter": 0,
        "xids": [],
    }
    answers["fields"] |= {(field, link): 0 for field in (161, 162, 163) for link in LINKS}
    return answers


def read(*answers: dict[str, Any]) -> Health:
    library = FakeNvml(list(answers))
    with HealthWatch(gpus(len(answers)), library) as watch:
        found = watch.read()
    assert library.open == 0 and library.event_sets == 0
    return found


def test_everything_is_counted_where_everything_answers() -> None:
    (gpu,) = read(well()).gpus
    assert not gpu.unavailable and set(gpu.counters.values()) == {0}
    assert len([name for name in gpu.counters if name.startswith("NVLink ")]) == 3 * len(LINKS)
    assert {"ECC corrected", "ECC uncorrected ever", "PCIe replays", "NVLinks down"} <= set(
        gpu.counters
    )


def test_counters_have_their_names_and_values() -> None:
    answers = well()
    answers["TotalEccErrors"] = lambda error, counter: 1 + error + 2 * counter
    answers["RemappedRows"] = (5, 6, 1, 0)
    answers["PcieReplayCounter"] = 7
    answers["fields"][162, 3] = 8
    answers["NvLinkState"] = lambda link: int(link != 17)
    (gpu,) = read(answers).gpus
    assert [
        gpu.counters[f"ECC {name}"]
        for name in ("corrected", "uncorrected", "corrected ever", "uncorrected ever")
    ] == [1, 2, 3, 4]
    assert gpu.counters["rows remapped after uncorrected errors"] == 6
    assert gpu.counters["row remapping pending"] == 1
    assert gpu.counters["PCIe replays"] == 7 and gpu.counters["NVLink 3 recoveries"] == 8
    assert gpu.counters["NVLinks down"] == 1 and "NVLink 17 replays" not in gpu.counters


@pytest.mark.parametrize("name", ["TotalEccErrors", "RemappedRows", "PcieReplayCounter", "xids"])
def test_what_a_gpu_does_not_count_has_the_reason_and_the_rest_is_read(name: str) -> None:
    answers = well()
    del answers[name]
    (gpu,) = read(answers).gpus
    assert set(gpu.unavailable.values()) == {"NVML error 3"}
    assert not set(gpu.unavailable) & set(gpu.counters)
    assert len(gpu.counters) + len(gpu.unavailable) == len(read(well()).gpus[0].counters)


def test_newer_links_count_by_other_fields_and_older_ones_by_a_call() -> None:
    newer = well()
    newer["fields"] = {(91, 0): 2} | {(208, link): 9 for link in range(2)}
    (gpu,) = read(newer).gpus
    assert gpu.counters["NVLink 1 receive errors"] == 9
    assert gpu.unavailable["NVLink 1 recoveries"] == "NVML error 3"
    older = well()
    older["fields"] = {(91, 0): 2}
    older["NvLinkErrorCounter"] = lambda link, counter: 10 * link + counter
    (gpu,) = read(older).gpus
    assert gpu.counters["NVLink 1 CRC errors"] == 12
    silent = well()
    silent["fields"] = {(91, 0): 2}
    (gpu,) = read(silent).gpus
    assert gpu.unavailable == {"NVLink errors": "NVML error 3"}


def test_xid_messages_are_those_since_the_start_and_of_their_gpu() -> None:
    answers = [well(0), well(1)]
    with HealthWatch(gpus(2), FakeNvml(answers)) as watch:
        assert [gpu.xids for gpu in watch.read().gpus] == [(), ()]
        answers[1]["xids"] += [79, 94]
        first, second = watch.read().gpus
    assert first.xids == () and first.counters["XID messages"] == 0
    assert second.xids == (79, 94) and second.counters["XID messages"] == 2


def test_without_a_driver_there_is_the_reason() -> None:
    with HealthWatch(gpus(1), FakeNvml([], init_error=12)) as watch:
        found = watch.read()
    assert not found.gpus and "no NVIDIA driver" in found.reason


def test_a_gpu_that_is_not_found_says_so() -> None:
    unknown = Gpu(0, "GPU-0", "H200", "0000:ff:00.0")
    with HealthWatch([unknown], FakeNvml([well()])) as watch:
        (gpu,) = watch.read().gpus
    assert gpu == GpuHealth(0, "GPU-0", unavailable={"all": "not found at 0000:ff:00.0"})


def test_instances_of_one_gpu_are_reported_once() -> None:
    (gpu,) = gpus(1)
    parts = [msgspec.structs.replace(gpu, index=i, uuid=f"MIG-{i}") for i in range(3)]
    with HealthWatch(parts, FakeNvml([well()])) as watch:
        assert [found.uuid for found in watch.read().gpus] == ["MIG-0"]


def test_a_reading_survives_being_stored() -> None:
    found = read(well())
    assert msgspec.json.decode(msgspec.json.encode(found), type=Health) == found
