"""A simulated machine on many nights: its name, its GPUs, its dates, its noise, its changes."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.comparison.hardware import equal_hosts
from waywiser.cli import run
from waywiser.curves.subject import Subject, read_subject
from waywiser.profile import Profile

CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-2.wwp.xz"
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
NIGHTS = 12


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(CHECK, tmp_path_factory.mktemp("original") / "node.wwp")


@pytest.fixture(scope="module")
def nights(original: Path) -> list[Path]:
    folder = original.parent / "nodes"
    words = ["--host", "n005", "--nights", str(NIGHTS), "--night-noise", "0.5%"]
    words += ["--set", "PCIe to gpu:0=45GB/s", "--from-night", "9"]
    assert run(["simulate", str(original), *words, "-o", str(folder)]) == 0
    return sorted(folder.glob("*.wwp"))


def seconds(node: Subject, curve: str = H2D) -> float:
    (series,) = [each for each in node.points if each.curve == curve]
    return statistics.median(block.median for block in series.blocks)


def test_every_night_has_a_profile_and_the_last_one_has_the_day_of_the_original(
    original: Path, nights: list[Path]
) -> None:
    days = [path.stem.removeprefix("n005-") for path in nights]
    assert len(days) == NIGHTS
    with Profile.open(original) as first, Profile.open(nights[-1]) as last:
        assert last.created[:16] == first.created[:16]
        assert days[-1] == first.created[:10]
        assert len(last.visit_rows()) == len(first.visit_rows())
    with Profile.open(nights[0]) as profile:
        assert profile.created[:10] == days[0]
        assert all(row.started[:10] == days[0] for row in profile.visit_rows())


def test_all_nights_are_of_one_host_with_gpus_of_its_own(
    original: Path, nights: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "n006.wwp"
    assert run(["simulate", str(original), "--host", "n006", "-o", str(other)]) == 0
    nodes = [read_subject(path) for path in (original, *nights[:2], other)]
    uuids = [frozenset(gpu.uuid for gpu in node.machine.gpus) for node in nodes]
    assert uuids[1] == uuids[2]
    assert not uuids[0] & uuids[1] and not uuids[1] & uuids[3]
    (equal,) = equal_hosts(nodes[1:])
    assert {name: len(surveys) for name, surveys in equal.hosts.items()} == {"n005": 2, "n006": 1}
    assert all(node.machine.simulated for node in nodes[1:])


def test_changes_begin_on_their_night(nights: list[Path]) -> None:
    times = [seconds(read_subject(path)) for path in nights]
    assert min(times[8:]) > 1.15 * max(times[:8])


def test_paths_differ_from_night_to_night_by_the_stated_noise(original: Path) -> None:
    spread = {}
    for noise, nights in (("0%", "6"), ("4%", "24")):
        folder = original.parent / f"noise-{noise[0]}"
        words = ["--nights", nights, "--night-noise", noise, "-o", str(folder)]
        assert run(["simulate", str(original), *words]) == 0
        times = [math.log(seconds(read_subject(path))) for path in sorted(folder.glob("*.wwp"))]
        spread[noise] = statistics.stdev(times)
    assert spread["0%"] < 0.01
    assert 0.025 < spread["4%"] < 0.06


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--host", "n 5", "-o", "a.wwp"], "no host name"),
        (["--from-night", "3", "-o", "a.wwp"], "--from-night is for --nights"),
        (["--nights", "0", "-o", "a"], "from 1 to"),
        (["--nights", "2", "--night-noise", "much", "-o", "a"], "no deviation between nights"),
        (["--nights", "2", "-o", "missing/a"], "cannot be written"),
    ],
)
def test_wrong_options_are_one_line(
    original: Path,
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["simulate", str(original), *words]) == 2
    said = capsys.readouterr().err
    assert reason in said and len(said.splitlines()) == 1
    assert not list(tmp_path.glob("**/*.wwp"))


def test_nothing_is_overwritten(
    original: Path, nights: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = nights[0].read_bytes()
    words = ["--host", "n005", "--nights", str(NIGHTS), "-o", str(nights[0].parent)]
    assert run(["simulate", str(original), *words]) == 2
    assert "exists" in capsys.readouterr().err
    assert nights[0].read_bytes() == before
