"""Baselines that a check keeps, and what former checks measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.comparison import nodes
from waywiser.analysis.health import kept_profiles
from waywiser.analysis.health.kept_profiles import (
    MOST_BASELINES,
    NotKept,
    former_checks,
    keep_baseline,
    kept_baselines,
    new_check_file,
)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def stored(tmp_path: Path, name: str, seed: int, host: str = "node0", gpus: int = 1) -> str:
    return str(nodes.stored(nodes.node(seed, host, gpus=gpus), tmp_path / name))


def test_the_newest_baselines_of_a_machine_are_kept(tmp_path: Path, data: Path) -> None:
    machine = nodes.machine(gpus=1)
    assert kept_baselines(machine) == [] and not data.exists()
    files = [stored(tmp_path, f"{n}.wwp", n) for n in range(5)]
    for file in files:
        keep_baseline(file, machine)
    kept = [Path(each).read_bytes() for each in kept_baselines(machine)]
    assert kept == [Path(each).read_bytes() for each in files[-MOST_BASELINES:]]
    assert len(list((data / "waywiser/baselines/node0").iterdir())) == MOST_BASELINES


def test_baselines_of_other_gpus_and_damaged_ones_are_none(tmp_path: Path, data: Path) -> None:
    one, two = nodes.machine(gpus=1), nodes.machine(gpus=2)
    keep_baseline(stored(tmp_path, "one.wwp", 1), one)
    assert kept_baselines(two) == []
    (data / "waywiser/baselines/node0/broken.wwp").write_text("no profile")
    assert len(kept_baselines(one)) == 1


def test_a_kept_baseline_is_not_kept_again(tmp_path: Path) -> None:
    machine = nodes.machine(gpus=1)
    kept = keep_baseline(stored(tmp_path, "one.wwp", 1), machine)
    with pytest.raises(NotKept, match="already"):
        keep_baseline(str(kept), machine)
    with pytest.raises(NotKept, match="No such file"):
        keep_baseline(str(tmp_path / "gone.wwp"), machine)


def test_former_checks_are_those_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = new_check_file("node0")
    nodes.stored(nodes.node(1, gpus=1), file)
    assert former_checks(nodes.machine(gpus=1)) == [str(file)]
    assert former_checks(nodes.machine(gpus=2)) == []
    assert new_check_file("node0") != file
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(kept_profiles, "data_folder", _without_home)
    assert former_checks(nodes.machine(gpus=1)) == []


def _without_home(part: str) -> Path:
    return Path("~no-such-user-of-this-machine") / part
