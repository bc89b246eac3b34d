"""``waywiser doctor --mpi``; what it tries is tested with `waywiser.measure.ranks.tries`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from machine.captured import machine as captured
from machine.fake_system import system_of
from measure.plan.machines import machine
from mpi_wheels import mpicc_of
from waywiser import cli
from waywiser.fitness import diagnosis
from waywiser.fitness.situation import Situation
from waywiser.measure import scope
from waywiser.measure.ranks import tries
from waywiser.measure.ranks.tries import Try

TRIED = (
    Try("send", "pageable@numa:0", True, "", 0),
    Try("alltoallv", "pageable@numa:0", True, "", 0),
    Try("send", "device@gpu:0", False, "rank 1 ended, in the send", 0),
    Try("alltoallv", "device@gpu:0", False, "rank 1 ended, in the send", 0),
    Try("send", "device[from=ipc]@gpu:0", None, "no owner", 0),
    Try("alltoallv", "device[from=ipc]@gpu:0", None, "no owner", 0),
)


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and tries without a launch."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def try_all(*arguments: Any) -> Iterator[Try]:
        assert arguments[1:] == (machine(gpus=1), "srun {ranks} {command}")
        yield from TRIED

    monkeypatch.setattr(tries, "try_all", try_all)
    situation = Situation(captured("no-gpu"), system_of(tmp_path, {}))
    monkeypatch.setattr(diagnosis, "live_situation", lambda: situation)
    monkeypatch.setattr(scope, "working_machine", lambda: machine(gpus=1))


def test_the_library_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    mpicc = mpicc_of("mpich")
    for state in ("compiled now", "compiled before"):
        assert cli.run(["doctor", "--mpicc", mpicc]) == 0
        out = capsys.readouterr().out
        assert "library: MPICH 5" in out
        assert f"mpicc: {mpicc} (found by --mpicc)" in " ".join(out.split())
        assert state in out
        assert "memory of GPUs: not known; waywiser doctor --try" in out


def test_tries_are_a_table_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--try", "--mpicc", mpicc_of("mpich"), "--launcher", "srun {ranks} {command}"]
    assert cli.run(["doctor", *arguments]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if "@" in line}
    assert rows["pageable@numa:0"] == ["yes", "yes"]
    assert rows["device@gpu:0"] == ["no", "no"]
    assert rows["device[from=ipc]@gpu:0"][:2] == ["not", "tried"]
    assert "MPICH states that it does not take memory of CUDA" in out
    assert "launcher: srun {ranks} {command}" in out
    reason = "send of device@gpu:0, alltoallv of device@gpu:0: rank 1 ended, in the send"
    assert reason in " ".join(out.split())


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    mpicc = mpicc_of("openmpi")
    assert cli.run(["doctor", "--json", "--mpicc", mpicc]) == 0
    found = json.loads(capsys.readouterr().out)["mpi_library"]
    assert found["library"] == "Open MPI"
    assert found["mpicc"] == {"path": mpicc, "found_by": "--mpicc"}
    assert Path(found["bridge"]).exists()
    assert found["tries"] is None
    arguments = ["--try", "--launcher", "srun {ranks} {command}", "--mpicc", mpicc]
    assert cli.run(["doctor", "--json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)["mpi_library"]
    assert [each["right"] for each in found["tries"]] == [True, True, False, False, None, None]


def test_no_mpicc_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert cli.run(["doctor", "--mpi"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("waywiser: error: no mpicc was found: ")
    assert "--mpicc PATH" in line
