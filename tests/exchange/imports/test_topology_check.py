"""A topology of other hardware than the files is an error; what cannot be checked is said."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu
from waywiser.exchange.imports.topology_check import (
    BY_RANK,
    UNCHECKED,
    between_files,
    contradictions,
    unchecked,
)
from waywiser.machine.machine import Gpu, Machine, NumaNode, Package


def machine(addresses: list[str], model: str = "NVIDIA H100 80GB HBM3", cpus: int = 64) -> Machine:
    gpus = tuple(Gpu(n, "", model, address) for n, address in enumerate(addresses))
    package = Package(0, "CPU", cpus // 2, cpus)
    return Machine("node", "", "CPU", (package,), (NumaNode(0, (), 0, 0),), (), gpus)


def written(address: str, how: str) -> str:
    """A PCI address as one of the tools writes it."""
    domain, bus, device = address.removesuffix(".0").split(":")
    return {
        "kernel": address,
        "nvbandwidth": f"0000{domain}:{bus}:{device}",
        "nccl": f"{domain}:{bus}:{device}".upper(),
        "short": f"{bus}:{device}",
    }[how]


def file(gpus: list[ForeignGpu], **environment: int) -> ForeignFile:
    return ForeignFile("nvbandwidth", "nvbandwidth", gpus=tuple(gpus), environment=environment)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("how", ["kernel", "nvbandwidth", "nccl", "short"])
def test_the_same_addresses_agree_however_they_are_written(seed: int, how: str) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 8)
    addresses = [f"0000:{bus:02x}:00.0" for bus in rng.sample(range(1, 256), count)]
    here = machine(addresses)
    gpus = [ForeignGpu(n, "H100", written(each, how)) for n, each in enumerate(addresses)]
    assert contradictions([file(gpus)], here) == []
    assert contradictions([file(gpus[:1])], here) == []  # fewer may be visible to the tool
    moved = rng.randrange(count)
    gpus[moved] = replace(gpus[moved], pci=written("0000:00:1f.0", how))
    (fact,) = contradictions([file(gpus)], here)
    assert f"gpu:{moved} of the results is at 0000:00:1f, which it does not have" in fact


def test_another_order_of_gpus_is_a_contradiction() -> None:
    here = machine(["0000:01:00.0", "0000:02:00.0"])
    gpus = [ForeignGpu(0, pci="0000:02:00.0"), ForeignGpu(1, pci="0000:01:00.0")]
    facts = contradictions([file(gpus)], here)
    assert len(facts) == 2 and "where it has gpu:1" in facts[0]


@pytest.mark.parametrize("cpus", [1, 16, 63, 65, 96])
def test_more_gpus_other_models_and_other_cpus_are_contradictions(cpus: int) -> None:
    here = machine(["0000:01:00.0"])
    gpus = [ForeignGpu(n, "NVIDIA A100-SXM4-40GB") for n in range(2)]
    facts = contradictions([file(gpus, num_cpus=cpus)], here)
    assert "the results are of 2 GPUs, and the topology has 1" in facts
    assert f"the results are of {cpus} CPUs, and the topology has 64" in facts
    assert any("A100" in fact for fact in facts)
    assert contradictions([file([], num_cpus=64)], here) == []


def test_unknown_is_no_contradiction_and_is_said() -> None:
    here = machine(["0000:01:00.0", ""])
    gpus = [ForeignGpu(0, pci="0x00"), ForeignGpu(1)]
    assert contradictions([file(gpus)], here) == []
    assert unchecked([file(gpus)], here) == UNCHECKED
    assert unchecked([file([ForeignGpu(0, "H100")])], here) == ""


def test_of_ranks_on_several_hosts_the_models_alone_are_compared() -> None:
    gpus = [ForeignGpu(n, "H100", "0000:07:00", f"node{n}") for n in range(4)]
    here = machine(["0000:01:00.0"])
    assert contradictions([file(gpus)], here) == []
    assert unchecked([file(gpus)], here) == BY_RANK
    others = [replace(gpu, name="AMD Instinct MI250X") for gpu in gpus]
    (fact,) = contradictions([file(others)], here)
    assert (
        fact == "the results are of AMD Instinct MI250X, and the topology has " + here.gpus[0].name
    )


def test_files_of_one_tool_that_differ_in_a_gpu_are_of_two_machines() -> None:
    one = [ForeignGpu(n, "NVIDIA L4", f"0000:{n + 7:02x}:00") for n in range(3)]
    assert between_files([file(one), file(one[:2]), file(list(reversed(one)))]) == ""
    model = [replace(gpu, name="NVIDIA L40S") for gpu in one]
    said = between_files([file(one), file(model)])
    assert said == "gpu:0 is NVIDIA L4 in one and NVIDIA L40S in another"
    moved = [one[0], replace(one[1], pci="0000:3f:00")]
    assert (
        between_files([file(one), file(moved)])
        == "gpu:1 is at 0000:08:00 in one and at 0000:3f:00 in another"
    )
    ranks = replace(file(moved), format="nccl")  # of ranks, which are no numbers of GPUs
    assert between_files([file(one), ranks]) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("NVIDIA H20", "NVIDIA H200"), ("A10", "NVIDIA A100-SXM4-40GB"), ("T4", "T400")],
)
def test_a_name_that_another_one_begins_with_is_another_model(one: str, other: str) -> None:
    assert contradictions([file([ForeignGpu(0, one)])], machine(["0000:01:00.0"], other))
    assert contradictions([file([ForeignGpu(0, other)])], machine(["0000:01:00.0"], one))
