"""The nightly check and named workloads, whole: command line, workers, the fake GPU, fake NVML."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree

import pytest
from msgspec.structs import replace

from damaging import reseal
from own_lock import commands, finish, with_nvml
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.profile.writable import write_profile

NVML = """
import sys
from types import SimpleNamespace
from fake_nvml import FakeNvml, h200_answers

readings = {"replays": 0}

def replays():
    readings["replays"] += 1
    return readings["replays"]

def answers(index):
    known = h200_answers(index, 8)
    # where the fake GPU says that it is
    known["PciInfo"] = SimpleNamespace(busId=f"00000000:{16 + 2 * index:02x}:00.0")
    known["TotalEccErrors"] = lambda error, counter: 0
    known["PcieReplayCounter"] = replays if index == 1 else 0
    return known

library = FakeNvml([answers(index) for index in range(4)])
NVMLError = library.NVMLError

def __getattr__(name):
    return getattr(library, name)
"""
"""A ``pynvml`` whose second GPU counts a replay each time it is asked."""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(fake_native_environment: dict[str, str], tmp_path: Path) -> Iterator[Run]:
    """Runs ``waywiser`` over four fake GPUs in ``tmp_path``: code, output and messages."""
    with runs_in(tmp_path, fake_native_environment) as run:
        yield run


@contextmanager
def runs_in(folder: Path, environment: dict[str, str]) -> Iterator[Run]:
    (folder / "scripted_nvml.py").write_text(NVML)
    topology = Path(__file__).parent / "machine"
    over = {
        **with_nvml(environment, "scripted_nvml", folder, topology),
        "WAYWISER_FAKE": "devices=4;latency=1;event=1",
    }
    with commands(folder, over) as start:
        yield lambda *arguments: finish(start(*arguments))


@pytest.fixture(scope="module")
def slower(
    fake_native_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with a check, ``a.wwp``, and an earlier one of the same machine when it was faster,
    ``base.wwp``."""
    folder = tmp_path_factory.mktemp("slower")
    paths = ("--only", "H2D", "--sizes", "4KiB", "--gpus", "0")
    with runs_in(folder, fake_native_environment) as run:
        assert run("survey", "--preset", "check", *paths, "-o", "a.wwp")[0] == 0
    faster(folder / "a.wwp", folder / "base.wwp")
    return folder


@pytest.mark.slow
def test_a_check_measures_every_link_and_shows_what_the_counters_did(
    run: Run, tmp_path: Path
) -> None:
    small = ("--sizes", "64KiB", "--gpus", "0,1", "-o", "a.wwp")
    code, out, err = run("survey", "--preset", "check", *small)
    assert code == 0, err
    # 2 links: to, from and both; 2 pairs of GPUs; 3 sets
    series, processes = 11, 8
    assert f"check: {series} series in {series * processes} visits" in err
    assert "host-and-all pinned@numa:0 <-> device@gpu:0,1 by copy-engine" in out
    with Profile.open(tmp_path / "a.wwp") as profile:
        visits = list(profile.visits())
        (health,) = profile.health()
        counts = list(SeriesFrame.read(profile).counts)
    # On a busy machine the time of a check may be over before all of its processes have measured.
    measured = [visit for visit in visits if visit.stop != "skipped"]
    assert len(visits) == series * processes
    assert sorted(counts) == sorted(len(visit.samples) for visit in visits)
    assert all(len(visit.samples) >= 6 for visit in measured), [v.failure for v in measured]
    assert len({visit.workload.identity for visit in measured}) == series
    assert {visit.worker for visit in measured} <= set(range(1, processes + 1))
    together = max(measured, key=lambda visit: len(visit.workload.transfers))
    assert len(together.workload.transfers) == 4
    assert all(len(seconds) == 4 for seconds in together.samples.transfers)
    assert health.start is not None and health.end is not None
    assert "health: counted while it ran: gpu:1 PCIe replays +1" in out
    assert "unknown: rows remapped after corrected errors" in out
    outputs = ("--prometheus", "a.prom", "--json")
    code, out, _ = run("check", "a.wwp", "--baseline", "a.wwp", *outputs)
    (host,) = json.loads(out)["hosts"]
    said = {each["reference"]: each["status"] for each in host["results"]}
    # On a busy machine one of the fake GPUs may be slower than the others, but not than itself.
    assert said["baseline"] in ("ok", "inconclusive") and code in (0, 1, 3)
    assert 'counter="PCIe replays"' in (tmp_path / "a.prom").read_text()


def test_a_resumed_survey_shows_each_run(run: Run, tmp_path: Path) -> None:
    small = ("--sizes", "4KiB", "--only", "pairs", "-o", "a.wwp")
    assert run("survey", "--preset", "quick", *small)[0] == 0
    code, out, err = run("survey", "--resume", "-o", "a.wwp")
    assert code == 0, err
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert [each.run for each in profile.health()] == [1, 2]
    assert out.count("gpu:1 PCIe replays +1") == 2


def test_a_named_workload_is_measured_resumed_shown_and_exported(run: Run, tmp_path: Path) -> None:
    text = (
        "pinned@numa:0 -> device@gpu:0 by copy-engine of 64KiB; "
        "device@gpu:1 -> device@gpu:2 by copy-engine of 4KiB"
    )
    shared = "; ".join(f"pinned@numa:0 -> device@gpu:{g} by copy-engine" for g in range(3))
    arguments = ("--workload", text, "--workload", f"{shared} (shared)", "--sizes", "4KiB")
    code, out, err = run("survey", "--preset", "quick", *arguments, "-o", "a.wwp")
    assert code == 0, err
    assert "quick: 2 series in 2 visits" in err
    assert "host-to-all pinned@numa:0 -> device@gpu:0-2 by copy-engine (shared)  " in out
    assert run("survey", "--resume", "-o", "a.wwp")[0] == 0
    code, exported, _ = run("export", "a.wwp")
    assert code == 0
    series = {each["workload"]: each for each in json.loads(exported)["series"]}
    (mixed,) = (each for name, each in series.items() if "of 65536" in name)
    assert mixed["bytes"] == 65536 + 4096
    for sample in mixed["samples"]:
        # the aggregate is over the time to the last finish
        assert len(sample["transfers"]) == 2 and sample["span"] >= max(sample["transfers"]) * 0.999


def test_a_suspected_path_is_measured_again_once(run: Run, slower: Path, tmp_path: Path) -> None:
    copytree(slower, tmp_path, dirs_exist_ok=True)
    check = ("check", "a.wwp", "--baseline", "base.wwp")
    code, out, err = run(*check)
    assert code == 1, out + err
    assert "measuring 1 suspected path again, into a-again.wwp" in err
    assert " longer (latency)" in out
    again = tmp_path / "a-again.wwp"
    stored = again.read_bytes()
    with Profile.open(again) as profile:
        visits = len(list(profile.visits()))
    code, _, err = run(*check)
    assert (code, err) == (1, "waywiser: using a-again.wwp\n")
    assert again.read_bytes() == stored
    stop_early(again)
    code, _, err = run(*check)
    assert code == 1 and "going on with a-again.wwp" in err
    with Profile.open(again) as profile:
        assert len(profile.runs) == 2
        assert len(list(profile.visits())) == visits
    again.write_bytes(b"")
    code, out, _ = run(*check)
    assert code == 3
    assert "a-again.wwp: is in the way of the new measurement: the file is empty" in out
    assert "(move it away, or use it with --repeat)" in out


def test_the_commands_that_a_comparison_prints_settle_a_suspected_loss(
    run: Run, slower: Path, tmp_path: Path
) -> None:
    copytree(slower, tmp_path, dirs_exist_ok=True)
    code, out, _ = run("compare", "base.wwp", "a.wwp")
    assert code == 3
    survey, again = (
        shlex.split(line)[1:] for line in out.splitlines() if line.startswith("    waywiser ")
    )
    assert run(*survey)[0] == 0
    code, out, _ = run(*again)
    assert code == 1
    assert out.startswith("1 regression, of 1 path, at a threshold of 3 %")


def faster(file: Path, target: Path) -> None:
    """Stores a survey again as if everything had taken so little time that no load hides it."""
    with Profile.open(file) as profile:
        visits = [
            replace(
                visit,
                samples=replace(visit.samples, span=tuple(s / 50 for s in visit.samples.span)),
            )
            for visit in profile.visits()
        ]
        write_profile(target, profile.machine, profile.environment, visits,
                      plan_json=profile.plan_json)  # fmt: skip


def stop_early(file: Path) -> None:
    """Takes the last visit away, as if the survey had been killed before it."""
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM visit WHERE visit = (SELECT max(visit) FROM visit)")
        connection.execute("UPDATE run SET ended = NULL")
        rows = connection.execute("SELECT count(*) FROM visit").fetchone()[0]
        connection.execute("UPDATE meta SET value = ? WHERE key = 'rows in visit'", (str(rows),))
        reseal(connection)
    connection.close()


@pytest.mark.parametrize(
    ("workload", "says"),
    [
        ("teleport", "'teleport' matches no series"),
        ("pinned@numa:0 -> device@gpu:0 by magic", "there is no executor 'magic'"),
        ("pinned@numa:0 -> device@gpu:0 by copy-engine of 1TiB", "--memory allows"),
    ],
)
def test_a_workload_that_cannot_be_is_one_line_and_two(run: Run, workload: str, says: str) -> None:
    code, _, err = run("survey", "--workload", workload, "-o", "a.wwp")
    assert code == 2 and says in err
    assert len(err.strip().splitlines()) == 1 and err.startswith("waywiser: error: --workload")
