"""Simulated surveys, from the command to the commands that read the profile."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.comparison.comparison import compare
from waywiser.cli import run
from waywiser.curves.overview import overview
from waywiser.curves.subject import read_subject
from waywiser.profile import Profile

CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
STANDARD = RESULTS / "2026-11-20-h200" / "two-gpus" / "standard.wwp.xz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("simulated")
    unpacked(CHECK, found / "check.wwp")
    assert run(["simulate", str(found / "check.wwp"), "-o", str(found / "same.wwp")]) == 0
    words = ["--set", "PCIe to gpu:*=70GB/s", "--set", "gpus=4", "--seed", "7"]
    words += ["-o", str(found / "four.wwp")]
    assert run(["simulate", str(found / "check.wwp"), *words]) == 0
    return found


def output(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    run(words)
    found = capsys.readouterr()
    return found.out + found.err


def test_an_unchanged_machine_has_no_regression_and_no_improvement(folder: Path) -> None:
    found = compare([read_subject(folder / "check.wwp")], [read_subject(folder / "same.wwp")])
    assert len(found.of("no change")) >= 10
    assert not found.of("regression", "suspected", "improvement", "missing", "new")


def test_a_standard_survey_has_none_either(tmp_path: Path) -> None:
    """Copies by copy engines between memory and GPUs, at all sizes."""
    file = unpacked(STANDARD, tmp_path / "standard.wwp")
    words = ["--preset", "standard", "--only", "h2d copy-engine", "--only", "p2p copy-engine"]
    assert run(["simulate", str(file), "-o", str(tmp_path / "again.wwp"), *words]) == 0
    found = compare([read_subject(file)], [read_subject(tmp_path / "again.wwp")])
    assert len(found.of("no change")) >= 10
    assert not found.of("regression", "improvement", "new")


def test_a_faster_link_is_an_improvement(folder: Path) -> None:
    found = compare([read_subject(folder / "check.wwp")], [read_subject(folder / "four.wwp")])
    assert H2D in {each.curve for each in found.of("improvement")}
    assert not found.of("regression")


def test_the_profile_names_its_origin_and_all_changes(folder: Path) -> None:
    with Profile.open(folder / "four.wwp") as profile:
        machine = profile.machine
        assert len(machine.gpus) == 4
        assert profile.environment["backend"] == "simulation"
        assert not profile.health()
    assert machine.hostname.endswith("(simulated)")
    unknown = "so it is not known whether the others are at a second socket"
    for part in ("check.wwp", "4 GPUs", "PCIe to gpu:*=70GB/s", "seed 7", unknown):
        assert part in machine.simulated


def test_no_copy_exceeds_the_bound_of_the_changed_link(folder: Path) -> None:
    shares = {}
    for name in ("check.wwp", "four.wwp"):
        with Profile.open(folder / name) as profile:
            (line,) = [e for e in overview(profile).series if e.text == f"{H2D} of {2**26}"]
        assert line.of_bound is not None
        shares[name] = line.of_bound
    assert shares["four.wwp"] == pytest.approx(shares["check.wwp"], rel=0.02)


@pytest.mark.parametrize("form", [[], ["--summary"]])
def test_each_exported_row_says_whether_it_is_simulated(
    folder: Path, tmp_path: Path, form: list[str]
) -> None:
    for name, mark in (("check.wwp", "0"), ("four.wwp", "1")):
        target = tmp_path / f"{name}.csv"
        assert run(["export", str(folder / name), *form, "-o", str(target)]) == 0
        with target.open(encoding="utf-8", newline="") as stream:
            assert {row["simulated"] for row in csv.DictReader(stream)} == {mark}


@pytest.mark.parametrize(
    "words",
    [
        ["show", "four.wwp"],
        ["compare", "check.wwp", "four.wwp"],
        ["check", "four.wwp", "--baseline", "check.wwp"],
        ["doctor", "four.wwp"],
        ["report", "four.wwp", "-o", "-", "--format", "md"],
        ["check", "check.wwp", "four.wwp", "--json"],
        ["topology", "four.wwp"],
        ["export", "four.wwp", "--summary"],
        ["export", "four.wwp"],
    ],
    ids=lambda words: words[0],
)
def test_whatever_shows_the_profile_says_that_it_is_simulated(
    folder: Path,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert "simulated" in output(words, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ["advise", "four.wwp"],
        [
            "advise",
            "four.wwp",
            "--from",
            "pinned@numa:0",
            "--to",
            "device@gpu:0",
            "--bytes",
            "1MiB",
        ],
        ["export", "four.wwp", "--for", "vllm"],
        ["survey", "--resume", "-o", "four.wwp"],
        ["tune", "four.wwp"],
        ["simulate", "four.wwp", "-o", "new.wwp"],
    ],
    ids=lambda words: words[0],
)
def test_what_is_for_real_machines_rejects_it(
    folder: Path,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    before = (folder / "four.wwp").read_bytes()
    text = output(words, capsys)
    assert "its machine is simulated" in text
    assert (folder / "four.wwp").read_bytes() == before
    assert not (folder / "new.wwp").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["--set", "gpus=0"],
            "--set 'gpus=0' is not a number of GPUs (write gpus=N, N from 1 to 32)",
        ),
        (["--set", "gpus=-1"], "from 1 to 32"),
        (["--set", "gpus=33"], "from 1 to 32"),
        (["--set", "gpus=1000000"], "from 1 to 32"),
        (["--set", "gpus=2", "--set", "gpus=3"], "contradict each other"),
        (["--set", "PCIe to gpu:*=0GB/s"], "out of range"),
        (["--set", "nonsense"], "not a change"),
        (["--set", "no such link=5GB/s"], "no resource"),
        (["--set", "latency no such path=5us"], "no measured transfer"),
        (["--only", "no such path"], "no such path"),
        (["--preset", "none"], "none"),
        (["--preset", "standard", "--only", "malloc"], "not in the model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_absurd_requests_are_one_line_and_make_no_file(
    folder: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    file = folder / "absurd.wwp"
    assert run(["simulate", str(folder / "check.wwp"), "-o", str(file), *words]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert reason in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert not file.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--preset", "nonsense"), "there is no preset 'nonsense'"),
        (("--sizes", "1MB"), "write 1MiB"),
        (("--workload", "x by sm"), "'x by sm'"),
    ],
)
def test_a_wrong_request_is_reported_before_the_profile_is_read(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.wwp")
    found = output(["simulate", missing, "-o", str(tmp_path / "new.wwp"), *words], capsys)
    assert says in found and "missing.wwp" not in found


def test_placement_of_a_simulated_machine_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["advise", "--placement"]
    said = output([*words, str(folder / "four.wwp")], capsys)
    assert said.startswith("The machine is simulated from check.wwp")
    assert "simulated" not in output([*words, str(folder / "check.wwp")], capsys)


def test_a_file_that_exists_is_not_overwritten(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.wwp"
    file.write_text("mine")
    assert run(["simulate", str(folder / "check.wwp"), "-o", str(file)]) == 2
    assert file.read_text() == "mine"
    assert run(["simulate", str(tmp_path / "missing.wwp"), "-o", str(tmp_path / "a.wwp")]) == 2
    assert run(["simulate", str(file), "-o", str(tmp_path / "a.wwp")]) == 2
    assert not (tmp_path / "a.wwp").exists()


def test_an_interrupted_simulation_leaves_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from waywiser.measure.probe.supervisor import Supervisor

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Supervisor, "measure", interrupted)
    file = folder / "interrupted.wwp"
    assert run(["simulate", str(folder / "check.wwp"), "-o", str(file)]) == 130
    assert not list(folder.glob("interrupted*"))


PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "simulate-a-machine.md"


def test_the_commands_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the survey; their profile is a check of two GPUs."""
    monkeypatch.chdir(tmp_path)
    unpacked(CHECK, tmp_path / "node.wwp")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    # Six nights instead of sixty take a tenth of the time.
    lines = [re.sub(r"(--nights|--from-night) (\d)0", r"\1 \2", line) for line in lines]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if " survey " not in line]
    assert len(commands) >= 5
    for words in commands:
        allowed = {"compare": (0, 1, 3), "check": (1, 3)}.get(words[0], (0,))
        assert run(words) in allowed, words
