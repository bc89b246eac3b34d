"""Simulated machines: their times, their noise, and what they do not know."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from pathlib import Path

import msgspec
import pytest

from kept import RESULTS, unpacked
from waywiser.model.capacity import CapacityModel
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import profile_capacities
from waywiser.model.recorded_noise import RecordedNoise, drawn, middle_of
from waywiser.model.simulation import SimulatedMachine, Simulation
from waywiser.model.whatif import Change, MachineChanges
from waywiser.profile import Profile
from waywiser.words import Operation, Workload
from waywiser.words.records import Process, Samples

CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine of 67108864"
BOTH = f"{H2D}; device@gpu:0 -> pinned@numa:0 by copy-engine of 67108864"
THREE = "; ".join(f"pinned@numa:0 -> device@gpu:{n} by copy-engine of 67108864" for n in range(3))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(CHECK, tmp_path_factory.mktemp("check") / "check.wwp")


@pytest.fixture(scope="module")
def model(file: Path) -> CapacityModel:
    with Profile.open(file) as profile:
        return profile_capacities(profile)


def simulated(
    file: Path, model: CapacityModel, *changes: str, gpus: int | None = None, seed: int = 1
) -> SimulatedMachine:
    changed = MachineChanges(tuple(map(Change.parse, changes)), gpus).applied(model)
    return SimulatedMachine(Simulation(str(file), model, changed, seed))


def measured(file: Path, text: str) -> float:
    with Profile.open(file) as profile:
        found = RecordedNoise(profile, profile.machine).recorded(Workload.parse(text))
    assert found is not None
    return found.seconds


@pytest.mark.parametrize("text", [H2D, BOTH])
def test_a_measured_workload_keeps_its_time(file: Path, model: CapacityModel, text: str) -> None:
    times = simulated(file, model).times(Workload.parse(text))
    assert times.span == pytest.approx(measured(file, text), rel=1e-9)


def test_a_faster_link_saves_the_time_of_the_bytes_on_it(file: Path, model: CapacityModel) -> None:
    before = simulated(file, model).times(Workload.parse(H2D)).span
    after = simulated(file, model, "PCIe to gpu:*=70GB/s").times(Workload.parse(H2D)).span
    link = next(
        c.bytes_per_second
        for c in model.capacities
        if c.resource == "PCIe to gpu:*" and c.basis == "one transfer"
    )
    assert after / before == pytest.approx(1 - 2**26 * (1 / link - 1 / 70e9) / before, rel=0.02)


def test_a_further_gpu_is_like_the_measured_ones(file: Path, model: CapacityModel) -> None:
    machine = simulated(file, model, gpus=4)
    new = H2D.replace("gpu:0", "gpu:3")
    assert machine.times(Workload.parse(new)).span == pytest.approx(measured(file, H2D), rel=0.02)


def test_a_limit_that_was_not_measured_is_a_note(file: Path, model: CapacityModel) -> None:
    bare = msgspec.structs.replace(
        model, capacities=tuple(c for c in model.capacities if c.basis == "one transfer")
    )
    visit = simulated(file, bare, gpus=4).visit(Workload.parse(THREE), Process())
    assert any("was not measured" in note for note in visit.notes)


@pytest.mark.parametrize(
    "text",
    [
        f"{H2D} (flushed)",
        f"{BOTH} (shared)",
        "pinned@numa:0 -> device@gpu:0 by sm of 1024",
    ],
)
def test_what_the_model_does_not_know_is_not_in_it(
    file: Path, model: CapacityModel, text: str
) -> None:
    with pytest.raises(ModelError, match="not in the model"):
        simulated(file, model).times(Workload.parse(text))


def test_an_operation_that_was_not_measured_is_not_in_it(file: Path, model: CapacityModel) -> None:
    workload = Workload(operation=Operation.parse("malloc[bytes=65536]@numa:0"))
    with pytest.raises(ModelError, match="not in the model"):
        simulated(file, model).times(workload)


def test_noise_follows_from_the_seed(file: Path, model: CapacityModel) -> None:
    workload = Workload.parse(BOTH)

    def visit(seed: int, block: int = 0) -> Samples:
        return simulated(file, model, seed=seed).visit(workload, Process(block=block)).samples

    assert visit(1) == visit(1)
    assert visit(1) != visit(2)
    assert visit(1) != visit(1, block=1)


def test_processes_scatter_as_in_the_recording(file: Path, model: CapacityModel) -> None:
    workload = Workload.parse(BOTH)
    with Profile.open(file) as profile:
        recorded = RecordedNoise(profile, profile.machine).recorded(workload)
    assert recorded is not None
    expected = statistics.stdev(map(math.log, recorded.medians))
    machine = simulated(file, model)
    logs = [
        math.log(middle_of(machine.visit(workload, Process(block=n)).samples)) for n in range(200)
    ]
    assert statistics.stdev(logs) == pytest.approx(expected, rel=0.25)
    mean = math.log(recorded.seconds)
    assert statistics.fmean(logs) == pytest.approx(mean, abs=4 * expected / math.sqrt(200))


def test_samples_are_drawn_in_runs() -> None:
    samples = Samples(span=tuple(float(n + 1) for n in range(100)))
    found = drawn(samples, random.Random(1)).span
    assert len(found) == 100
    assert set(found) <= set(samples.span)
    following = sum(b - a in (1.0, -99.0) for a, b in itertools.pairwise(found))
    assert following >= 90 - 1


@pytest.mark.parametrize(
    ("text", "pattern", "value"),
    [
        ("PCIe to gpu:*=126GB/s", "PCIe to gpu:*", 126e9),
        ("reads of numa:0 = 5e2 MB/s", "reads of numa:0", 5e8),
        ("latency a -> b by c[d=1]=1.5us", "a -> b by c[d=1]", 1.5e-6),
        ("latency *=2µs", "*", 2e-6),
    ],
)
def test_changes_are_read(text: str, pattern: str, value: float) -> None:
    change = Change.parse(text)
    assert (change.pattern, change.value) == (pattern, pytest.approx(value))
    assert change.is_latency == text.startswith("latency")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "=5GB/s",
        "PCIe",
        "PCIe=",
        "PCIe=5",
        "PCIe=5us",
        "PCIe=-5GB/s",
        "PCIe=nanGB/s",
        "PCIe=infGB/s",
        "PCIe=0GB/s",
        "PCIe=1e400GB/s",
        "PCIe=1.2.3GB/s",
        "latency a=5GB/s",
        "latency a=1e9s",
        "latency =1us",
    ],
)
def test_absurd_changes_are_errors(text: str) -> None:
    with pytest.raises(ModelError, match="--set"):
        Change.parse(text)


def test_an_unknown_resource_is_an_error_that_names_the_known_ones(model: CapacityModel) -> None:
    with pytest.raises(ModelError, match=r"use one of: .*PCIe to gpu:"):
        Change.parse("PCI to gpu:9=1GB/s").applied(model)
