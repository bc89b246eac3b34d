"""Baselines that a check keeps, and what former checks measured."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from msgspec.structs import replace

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
from waywiser.profile import ProfileError


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def stored(tmp_path: Path, name: str, seed: int, gpus: int = 1) -> str:
    """A survey of a day of its own."""
    node = nodes.node(seed, gpus=gpus, created=f"2026-11-{seed + 1:02}T03:00:00.000+00:00")
    return str(nodes.stored(node, tmp_path / name))


def test_the_newest_baselines_of_a_machine_are_kept(tmp_path: Path, data: Path) -> None:
    machine = nodes.machine(gpus=1)
    assert kept_baselines(machine) == [] and not data.exists()
    files = [stored(tmp_path, f"{n}.wwp", n) for n in range(5)]
    for file in files:
        keep_baseline(file, machine)
    kept = [Path(each).read_bytes() for each in kept_baselines(machine)]
    assert kept == [Path(each).read_bytes() for each in files[-MOST_BASELINES:]]
    assert len(list((data / "waywiser/baselines/node0").iterdir())) == MOST_BASELINES


def test_a_baseline_counts_if_any_gpu_is_the_same(tmp_path: Path) -> None:
    """So a GPU that is lost since then is missed."""
    one, two = nodes.machine(gpus=1), nodes.machine(gpus=2)
    keep_baseline(stored(tmp_path, "two.wwp", 1, gpus=2), two)
    assert len(kept_baselines(one)) == len(kept_baselines(two)) == 1
    assert kept_baselines(nodes.machine("node1")) == []
    others = tuple(replace(gpu, uuid=f"GPU-other-{gpu.index}") for gpu in two.gpus)
    assert kept_baselines(replace(two, gpus=others)) == []


@pytest.mark.parametrize("kind", ["text", "empty", "link"])
def test_a_damaged_baseline_is_an_error_and_a_damaged_check_is_none(
    tmp_path: Path, data: Path, kind: str
) -> None:
    one = nodes.machine(gpus=1)
    keep_baseline(stored(tmp_path, "one.wwp", 1), one)
    nodes.stored(nodes.node(2, gpus=1), new_check_file("node0"))
    for part in ("baselines", "checks"):
        broken = data / "waywiser" / part / "node0" / "broken.wwp"
        if kind == "link":
            broken.symlink_to(tmp_path / "gone")
        else:
            broken.write_text("no profile" if kind == "text" else "")
    assert len(former_checks(one)) == 1
    with pytest.raises(ProfileError):
        kept_baselines(one)


def test_packed_baselines_of_one_second_are_all_read(tmp_path: Path) -> None:
    machine = nodes.machine(gpus=1)
    for n in range(3):
        file = Path(stored(tmp_path, f"{n}.wwp", n))
        packed = file.with_name(f"{n}.wwp.xz")
        packed.write_bytes(lzma.compress(file.read_bytes()))
        keep_baseline(str(packed), machine)
    assert len(kept_baselines(machine)) == 3


def test_a_kept_baseline_is_not_kept_again(tmp_path: Path) -> None:
    machine = nodes.machine(gpus=1)
    kept = keep_baseline(stored(tmp_path, "one.wwp", 1), machine)
    with pytest.raises(NotKept, match="already"):
        keep_baseline(str(kept), machine)
    with pytest.raises(NotKept, match="already"):
        keep_baseline(str(tmp_path / "one.wwp"), machine)
    with pytest.raises(ProfileError):
        keep_baseline(str(tmp_path / "gone.wwp"), machine)


def test_former_checks_are_those_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = new_check_file("node0")
    nodes.stored(nodes.node(1, gpus=1), file)
    assert former_checks(nodes.machine(gpus=1)) == [str(file)]
    assert former_checks(nodes.machine("node1")) == []
    assert new_check_file("node0") != file
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(kept_profiles, "data_folder", _without_home)
    assert former_checks(nodes.machine(gpus=1)) == []


def _without_home(part: str) -> Path:
    return Path("~no-such-user-of-this-machine") / part
