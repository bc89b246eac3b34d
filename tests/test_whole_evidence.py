"""Surveys over the fake GPU with a scripted NVML: where memory is and which links moved, from the
worker to what is shown, exported, resumed and replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import replaying
from machine.scripted_nvml import LINKS, MOVED
from own_lock import commands, finish, with_nvml
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.profile import Profile
from waywiser.words import Workload
from waywiser.words.records import Locality, Order, Process, Rule, Visit

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def surveyed(
    fake_native_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A profile of two paths, with everything looked at."""
    folder = tmp_path_factory.mktemp("evidence")
    environment = {
        **with_nvml(fake_native_environment, "machine.scripted_nvml", TESTS),
        "WAYWISER_FAKE": "latency=1;event=1;h2d=40;d2h=40;peer=40",
    }
    peer = "device@gpu:0 -> device@gpu:1 by copy-engine"
    arguments = ["survey", "--preset", "quick", "--sizes", "2MiB", "-o", "a.wwp"]
    arguments += ["--workload", H2D, "--workload", peer]
    with commands(folder, environment) as start:
        for more in (
            arguments,
            ["survey", "--resume", "-o", "a.wwp"],
            ["export", "a.wwp", "--format", "json", "-o", "a.json"],
            ["show", "a.wwp", "--all"],
        ):
            code, out, err = finish(start(*more))
            assert code == 0, err
    (folder / "shown").write_text(out)
    return folder / "a.wwp"


def visits(file: Path) -> dict[str, Visit]:
    with Profile.open(file) as profile:
        return {visit.workload.curve: visit for visit in profile.visits()}


def test_what_was_counted_around_the_work_is_in_the_profile(surveyed: Path) -> None:
    found = visits(surveyed)[H2D].evidence
    assert found is not None and found.executions >= 1 and found.reason == ""
    (gpu,) = found.gpus
    assert gpu.index == 0 and gpu.reasons == ()
    # the 32 bits of PCIe began anew in between
    assert (gpu.work.pcie_rx, gpu.work.pcie_tx) == (MOVED, MOVED)
    assert gpu.work.nvlink_tx == dict.fromkeys(range(LINKS), MOVED // LINKS)
    assert (gpu.idle.pcie_rx, gpu.idle.nvlink_rx) == (0, {})


def test_a_counter_that_is_not_there_is_reported(surveyed: Path) -> None:
    (found,) = [v for curve, v in visits(surveyed).items() if "gpu:1" in curve]
    assert found.evidence is not None
    first, second = found.evidence.gpus
    assert first.reasons == () and second.index == 1
    assert second.work.nvlink_rx is None and second.work.nvlink_tx is not None
    (reason,) = second.reasons
    assert reason.startswith("NVLink received (field 139) is not counted on 18 of 18 links")


def test_it_is_shown_and_exported(surveyed: Path) -> None:
    shown = surveyed.with_name("shown").read_text()
    assert "2 MiB went through NVLink and PCIe: gpu:0 sent" in shown
    # which of them is a matter of how loaded this host is
    assert "GPUs 0-1 have equal latency to host memory" in shown or "are on two sides" in shown
    exported = json.loads(surveyed.with_name("a.json").read_text())
    assert exported["locality"][0]["gpus"] == [0, 1]
    assert exported["sides"]["gpus"] == [0, 1]
    assert all(series["visits"][0]["evidence"]["gpus"] for series in exported["series"])
    buffers = exported["series"][-1]["visits"][0]["buffers"]
    assert {len(b["gpu_seconds"]) for b in buffers if "pinned" in b["memory"]} == {2}


def test_each_worker_begins_by_looking_where_memory_is(surveyed: Path) -> None:
    with Profile.open(surveyed) as profile:
        (found,) = profile.localities()
    assert (found.worker, found.memory, found.failure) == (1, "pinned@numa:0", None)
    assert len(found.blocks) == 6
    for block in found.blocks:
        assert {len(row) for row in block.copies} == {2}
        assert {len(row) for row in block.reads} == {len(found.cpus)}


def test_a_replay_carries_both(surveyed: Path) -> None:
    again: list[Visit] = []
    located: list[Locality] = []
    with Profile.open(surveyed) as profile:
        machine = profile.machine
        (before,) = profile.localities()
    work = visits(surveyed)[H2D].workload
    order = Order(work, 0, Process(), Rule(), 1, 0, 1.0, 60.0, evidence=True)
    pinned = Workload.parse(f"{H2D} of 8").transfers[0].path.source
    options = ProbeOptions(command=replaying.command(surveyed), located=(pinned,))
    run_orders([order], machine, options=options, on_visit=again.append, on_locality=located.append)
    assert again[0].evidence == visits(surveyed)[H2D].evidence
    assert [each.blocks for each in located] == [before.blocks]
