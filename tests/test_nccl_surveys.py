"""Surveys of collectives: the command line, the fake NCCL over the fake GPU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from own_lock import commands, finish
from tree import FAKE_FOLDER
from waywiser.profile import Profile

Run = Callable[..., "subprocess.Popen[str]"]

LIBRARY = FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"
ALL = "device@gpu:0-1"
ALLREDUCE = f"{ALL} -> {ALL} by nccl[collective=allreduce]"


@pytest.fixture
def run(
    fake_native_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Run]:
    """Starts ``waywiser`` over the fake GPU in ``tmp_path``."""
    environment = {**fake_native_environment, "WAYWISER_NCCL": str(LIBRARY)}
    with commands(tmp_path, environment) as start:
        yield start


@pytest.mark.slow
def test_the_version_of_nccl_is_stored_shown_and_compared(run: Run, tmp_path: Path) -> None:
    small = ("--preset", "quick", "--sizes", "64KiB", "--memory", "16MiB")
    survey = ("survey", "--workload", ALLREDUCE, *small, "-o")
    code, _, err = finish(run(*survey, "a.wwp"))
    assert code == 0, err
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert profile.machine.nccl == "2.27.3"
        assert profile.environment["nccl"] == {
            "version": "2.27.3", "path": str(LIBRARY), "found_by": "WAYWISER_NCCL",
        }  # fmt: skip
    code, out, err = finish(run("show", "a.wwp"))
    assert code == 0 and "; NCCL 2.27.3" in out, err
    later = {"WAYWISER_FAKE_NCCL": "version=22809"}
    code, _, err = finish(run("survey", "--resume", "-o", "a.wwp", **later))
    assert code == 2 and err.count("\n") == 1
    assert "a.wwp: its NCCL is 2.27.3, here it is 2.28.9 (name it in WAYWISER_NCCL, or" in err
    code, _, err = finish(run(*survey, "b.wwp", **later))
    assert code == 0, err
    _, out, _ = finish(run("compare", "a.wwp", "b.wwp"))
    assert "another NCCL: 2.27.3 before, 2.28.9 now" in out


def test_without_transfers_by_nccl_nothing_is_said_of_it(run: Run, tmp_path: Path) -> None:
    copy = "device@gpu:0 -> device@gpu:1 by copy-engine"
    code, out, err = finish(run("survey", "--workload", copy, "--sizes", "64", "--dry-run"))
    assert code == 0, err
    assert "NCCL" not in out
