from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from machine.fake_nvml import FakeNvml, h200_answers
from waywiser.machine.nvml import nvml, pci_address
from waywiser.machine.nvml_facts import read_nvml


def test_two_gpus_are_read_whole() -> None:
    library = FakeNvml([h200_answers(0), h200_answers(1)])
    facts = read_nvml(library)
    assert (facts.driver, facts.cuda_driver, facts.reason) == ("580.159.04", "13.0", "")
    gpu = facts.gpus[0]
    assert (gpu.name, gpu.pci, gpu.compute) == ("NVIDIA H200", "0000:00:06.0", "9.0")
    assert (gpu.pcie_generation_max, gpu.pcie_width_max) == (5, 16)
    assert len(gpu.lanes) == 18
    assert {(lane.remote, lane.remote_pci, lane.mb_per_s) for lane in gpu.lanes} == {
        ("switch", "", 26562)
    }
    assert gpu.peers == ("GPU-1",)
    assert (gpu.ecc, gpu.mig, gpu.persistence, gpu.addressing) == ("on", "off", "on", "none")
    assert gpu.throttle == ("power cap", "hardware thermal slowdown")
    assert (gpu.clock_sm_mhz, gpu.clock_memory_max_mhz, gpu.memory_bus_bits) == (345, 3201, 6016)
    assert gpu.power_w == pytest.approx(78.687)
    assert library.open == 0


def test_a_gpu_that_supports_nothing_is_listed_all_the_same() -> None:
    facts = read_nvml(FakeNvml([{"PciInfo": SimpleNamespace(busId="00000000:01:00.0")}]))
    assert facts.gpus[0].pci == "0000:01:00.0"
    assert facts.gpus[0].lanes == ()
    assert facts.gpus[0].memory_node == -1


def test_gpus_come_in_the_order_of_their_addresses() -> None:
    facts = read_nvml(FakeNvml([h200_answers(1), h200_answers(0)]))
    assert [gpu.uuid for gpu in facts.gpus] == ["GPU-0", "GPU-1"]


@pytest.mark.parametrize(
    ("code", "says"),
    [(12, "install the driver"), (9, "kernel module"), (4, "permission"), (999, "999")],
)
def test_a_driver_that_is_not_there_is_a_reason_with_a_remedy(code: int, says: str) -> None:
    facts = read_nvml(FakeNvml([], init_error=code))
    assert facts.gpus == ()
    assert says in facts.reason
    assert "(" in facts.reason and "\n" not in facts.reason


def test_a_driver_without_gpus_says_so() -> None:
    assert "finds no GPU" in read_nvml(FakeNvml([])).reason


def test_other_peoples_processes_are_listed_and_our_own_is_not() -> None:
    answers = h200_answers(0) | {
        "ComputeRunningProcesses": [
            SimpleNamespace(pid=os.getpid(), usedGpuMemory=1),
            SimpleNamespace(pid=2**22 + 1, usedGpuMemory=5 << 20),
        ],
        "GraphicsRunningProcesses": [SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None)],
    }
    (process,) = read_nvml(FakeNvml([answers])).gpus[0].processes
    assert process.pid == 2**22 + 1


def test_without_peer_rights_there_are_no_peers() -> None:
    answers = [h200_answers(0) | {"P2PStatus": lambda other, right: 5 * right}, h200_answers(1)]
    facts = read_nvml(FakeNvml(answers))
    assert [gpu.peers for gpu in facts.gpus] == [(), ("GPU-0",)]


def test_mig_instances_may_have_gaps() -> None:
    part = {"UUID": "MIG-1", "Name": "NVIDIA H200 MIG 1g.18gb"}
    answers = h200_answers(0) | {
        "MigMode": [1, 1],
        "MaxMigDeviceCount": 7,
        "MigDeviceHandleByIndex": lambda index: part if index == 3 else None,
    }
    gpu = read_nvml(FakeNvml([answers])).gpus[0]
    assert gpu.mig == "on"
    assert [instance.uuid for instance in gpu.mig_instances] == ["MIG-1"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        (b"0001A000:06:00.0", "1a000:06:00.0"),
        ("FFFFFFFF:FF:FF.0", ""),
        ("", ""),
    ],
)
def test_addresses_are_written_as_the_kernel_writes_them(text: str | bytes, address: str) -> None:
    assert pci_address(text) == address


def test_the_library_is_given_back_after_an_error() -> None:
    library = FakeNvml([])
    with pytest.raises(ZeroDivisionError), nvml(library):
        raise ZeroDivisionError
    assert library.open == 0
