"""``check`` without a file measures this machine and keeps what it measured."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.health import early_stop
from waywiser.analysis.health.kept_profiles import former_checks, kept_baselines
from waywiser.cli import run
from waywiser.measure import scope, survey_run
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.profile import Profile

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def settled_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not quiet: here each path is settled after the first processes."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(
        survey_run, "SurveyLock", lambda: SurveyLock(f"waywiser-test-{os.getpid()}")
    )
    monkeypatch.setattr(early_stop, "NARROW", 1e9)
    monkeypatch.setattr(early_stop, "FEWEST_PROCESSES", 2)


def test_the_machine_is_measured_until_all_is_settled_and_kept(capsys: Output) -> None:
    code = run(["check", "--within", "120", "--keep"])
    said = capsys.readouterr()
    assert code in (0, 3), said.err  # 0 where the class of a GPU is known
    assert said.out.splitlines()[0].split()[0] in ("OK", "INCONCLUSIVE")
    machine = scope.live_machine()
    (file,), (kept,) = former_checks(machine), kept_baselines(machine)
    assert f"profile: {file} " in said.err and kept in said.err
    with Profile.open(file) as profile:
        visits = list(profile.visits())
        assert {v.block for v in visits if v.stop != "skipped"} <= {0, 1}
        skipped = [v.failure.reason for v in visits if v.stop == "skipped" and v.failure]
        assert any(reason.startswith("settled after 2 processes") for reason in skipped)

    # It is not its own baseline.
    code = run(["check", file, "--within", "0", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["hosts"][0]["results"][0]["status"] == "not compared" and code in (0, 3)


def test_wrong_words_are_an_error_before_anything_is_measured(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("it was measured")

    monkeypatch.setattr(survey_run, "start", measured)
    for words in (["--threshold", "x"], ["--since", "x"], ["--values", "gone"],
                  ["--values", "gone"], ["--within", "1"], ["--page", str(tmp_path)],
                  ["--baseline", "gone.wwp"], ["--repeat", "gone.wwp"]):  # fmt: skip
        assert run(["check", *words]) == 2, words
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "today"),
    [
        (["fleet", "nodes", "--json"], "waywiser check nodes --json"),
        (["history", "nodes", "--since", "14d"], "waywiser check nodes --since 14d"),
        (["normal"], "waywiser survey --normal"),
        (["normal", "n.wwp", "--all"], "waywiser check n.wwp --all"),
        (
            ["normal", "n.wwp", "--as-rows", "me/n:a"],
            "waywiser export n.wwp --for normal-values --source me/n:a",
        ),
        (
            ["normal", "n.wwp", "--as-rows=me/n:a"],
            "waywiser export n.wwp --for normal-values --source me/n:a",
        ),
        (["normal", "--values", "t.csv"], "waywiser survey --normal --values t.csv"),
        (["fleet", "--help"], "waywiser check"),
        (["list", "--all"], "waywiser survey --list --all"),
        (["list", "--normal", "--json"], "waywiser survey --normal --json"),
        (
            ["mpi", "--try", "--launcher", "srun x"],
            "waywiser doctor --mpi --try --launcher 'srun x'",
        ),
        (["completion", "zsh"], "waywiser --completion zsh"),
        (["policy", "n.wwp", "--json"], "waywiser advise n.wwp --json"),
        (["policy", "n.wwp", "-o", "p"], "waywiser export n.wwp -o p --for waywiser"),
        (["policy", "--compare", "a", "b", "--json"], "waywiser advise b --against a --json"),
        (["model", "n.wwp", "--validate"], "waywiser predict n.wwp --validate"),
        (["model", "n.wwp", "--export=json"], "waywiser export n.wwp --for model"),
        (["model", "n", "--export", "simgrid", "-o", "x"], "waywiser export n -o x --for simgrid"),
        (["advise", "n.wwp", "--placement", "--for", "slurm"], "waywiser export n.wwp --for slurm"),
        (["check", "n.wwp", "--no-measure", "--json"], "waywiser check n.wwp --within 0 --json"),
        (["check", "nodes", "--labels=r.txt"], "waywiser check nodes --values r.txt"),
        (["predict", "n", "-w", "x", "--gpus", "4"], "waywiser predict n -w x --set gpus=4"),
        (["simulate", "n", "--gpus=4", "-o", "m"], "waywiser simulate n --set gpus=4 -o m"),
        (["tune", "n", "--paths", "h2d sm"], "waywiser tune n --only 'h2d sm'"),
        (["topology", "--xml=m.xml", "--json"], "waywiser topology m.xml --json"),
    ],
)
def test_a_former_verb_names_its_command_of_today(
    words: list[str], today: str, capsys: Output
) -> None:
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and f"(write {today})" in said.err


def simulated(folder: Path, host: str, *words: str, gpus: int = 4) -> str:
    """A simulated check of a host."""
    whole = folder / "whole.wwp"
    if not whole.exists():
        unpacked(RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "check.wwp.xz", whole)
    made = folder / f"{len(list(folder.iterdir()))}.wwp"
    base = ["simulate", str(whole), "--set", f"gpus={gpus}", "--host", host, "-o", str(made)]
    assert run([*base, *words]) == 0
    return str(made)


def first_line(words: list[str], capsys: Output, code: int) -> str:
    capsys.readouterr()
    assert run(words) == code
    return capsys.readouterr().out.splitlines()[0]


def test_a_kept_baseline_misses_a_lost_gpu(tmp_path: Path, capsys: Output) -> None:
    whole = simulated(tmp_path, "n1")
    assert run(["check", whole, "--keep"]) in (0, 3)
    assert first_line(["check", whole], capsys, 0).startswith("OK n1"), "not its own baseline"
    three = simulated(tmp_path, "n1", "--seed", "3", gpus=3)
    assert "is gone" in first_line(["check", three, "--within", "0"], capsys, 1)


def test_what_is_suspected_is_not_kept(tmp_path: Path, capsys: Output) -> None:
    assert run(["check", simulated(tmp_path, "n1"), "--keep"]) in (0, 3)
    slow = simulated(tmp_path, "n1", "--set", "PCIe to gpu:*=45GB/s", "--seed", "2")
    capsys.readouterr()
    assert run(["check", slow, "--keep", "--within", "0"]) in (1, 3)
    assert "is not kept: by its baseline" in capsys.readouterr().err
    machine = scope.live_machine()
    with Profile.open(slow) as profile:
        machine = profile.machine
    assert len(kept_baselines(machine)) == 1


def test_nights_are_those_of_the_machine_up_to_its_profile(tmp_path: Path, capsys: Output) -> None:
    """Neither those of another machine with its name, nor later ones."""
    whole = str(tmp_path / "whole.wwp")
    simulated(tmp_path, "vm")
    words = ["--nights", "8", "--from-night", "5", "--set", "PCIe to gpu:*=40GB/s"]
    assert run(["simulate", whole, "--host", "vm", *words, "-o", str(tmp_path / "nights")]) == 0
    nights = sorted((tmp_path / "nights").iterdir())
    before, last = str(nights[3]), str(nights[-1])
    of_folder = ["--baseline", str(tmp_path / "nights")]
    assert "slower since" in first_line(["check", last, *of_folder], capsys, 1)
    run(["check", before, *of_folder])
    assert "slower since" not in capsys.readouterr().out
    since = ["--since", "2999-01-01"]
    assert "slower" in first_line(["check", str(tmp_path / "nights"), *since], capsys, 1)

    other = tmp_path / "other.wwp"
    unpacked(RESULTS / "2026-11-23-surveys" / "h100-check-1.wwp.xz", other)
    assert first_line(["check", str(other), *of_folder], capsys, 0).startswith("OK vm")


def test_a_threshold_holds_for_equal_parts(tmp_path: Path, capsys: Output) -> None:
    slow = simulated(tmp_path, "n3", "--set", "PCIe to gpu:2=50GB/s")
    assert "gpu:2" in first_line(["check", slow], capsys, 1)
    first = first_line(["check", slow, "--threshold", "30%"], capsys, 0)
    assert first.startswith("OK n3") and "less than the threshold" in first


def test_a_profile_has_one_verdict_alone_and_in_a_folder(tmp_path: Path, capsys: Output) -> None:
    whole, broken = str(tmp_path / "w.wwp"), tmp_path / "broken.wwp"
    unpacked(RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "check.wwp.xz", Path(whole))
    broken.write_text("no profile")
    assert first_line(["check", whole], capsys, 0).startswith("OK vm")
    assert first_line(["check", whole, str(broken)], capsys, 0).startswith("OK vm")


@pytest.mark.parametrize(
    "words", [["--keep"], ["--repeat", "x.wwp"], ["--max-hidden", "5%"], ["--baseline", "x.wwp"]]
)
def test_options_for_one_profile_are_an_error_beside_several(
    tmp_path: Path, capsys: Output, words: list[str]
) -> None:
    assert run(["check", str(tmp_path), *words]) == 2
    assert f"{words[0]} is for one profile" in capsys.readouterr().err


def test_a_fleet_that_is_not_there_is_an_error(tmp_path: Path, capsys: Output) -> None:
    assert run(["check", simulated(tmp_path, "n1"), "--baseline", "no-such-folder"]) == 2
    assert "no-such-folder: there is no such file" in capsys.readouterr().err
