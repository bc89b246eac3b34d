from __future__ import annotations

import json
from pathlib import Path

import pytest

from waywiser.cli import run
from waywiser.profile import Profile

DATA = Path(__file__).parents[1] / "exchange" / "imports" / "data"


def test_it_says_what_it_read_and_what_it_could_not_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.wwp"
    assert run(["import", str(DATA / "commscope.json"), "-o", str(target)]) == 0
    out = capsys.readouterr().out
    assert "1 file of Google Benchmark 1.8.3" in out
    assert "not imported: " in out and "  EXAMPLE1" in out
    assert out.endswith(f"imported into {target}\n")
    with Profile.open(target) as profile:
        assert profile.machine.hostname == "node7"
        assert profile.runs[0].command[:2] == ("waywiser", "import")


def test_what_another_tool_does_not_say_is_unknown_and_not_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.wwp"
    assert run(["import", str(DATA / "osu_bw.txt"), "-o", str(target)]) == 0
    capsys.readouterr()
    assert run(["show", str(target)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "; imported from OSU" in first and first.endswith(" UTC")
    assert "converge" not in second and "of measuring" not in second
    assert run(["topology", str(target)]) == 0
    shown = capsys.readouterr().out
    assert "  memory unknown, CPUs unknown" in shown
    assert " 0 " not in shown and "0.0 GiB" not in shown


def test_it_says_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "a.wwp"
    files = [str(DATA / "commscope.json"), str(DATA / "osu_bw.txt")]
    assert run(["import", *files, "-o", str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1 and found["profile"] == str(target)
    assert [each["file"] for each in found["files"]] == ["commscope.json", "osu_bw.txt"]
    assert [each["format"] for each in found["files"]] == ["google-benchmark", "osu"]
    assert found["unsupported_paths"]
    with Profile.open(target) as profile:
        assert found["series"] == len(profile.workloads())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["missing.json"], "missing.json: there is no such file"),
        (["--format", "xml"], "'xml' is not a format"),
        (["--topology", "missing.xml"], "missing.xml: cannot be read"),
        (["--machine", "a\nb"], "--machine: character 2 of the name is U+000A, which is not"),
        (
            ["--machine", "\x1b[31mred"],
            "--machine: character 1 of the name is U+001B, which is not",
        ),
        (["--machine", "a\u202eb"], "--machine: character 2 of the name is U+202E, which is not"),
        (["--machine", "a\udcff"], "--machine: character 2 of the name is U+DCFF, which is not"),
        (["--machine", "a" * 254], "the name has 254 characters, and at most 253 are allowed"),
        (["--machine", " "], "--machine: the name is empty"),
    ],
)
def test_a_bad_request_is_one_line(
    arguments: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.wwp"
    files = [] if arguments[0].endswith(".json") else [str(DATA / "commscope.json")]
    assert run(["import", *files, *arguments, "-o", str(target)]) == 2
    err = capsys.readouterr().err
    assert line in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["-", "a.json"])
def test_a_profile_has_a_name_of_its_own(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["import", str(DATA / "commscope.json"), "-o", name]) == 2
    assert "waywiser: error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_profile_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.wwp"
    target.write_text("mine")
    assert run(["import", str(DATA / "commscope.json"), "-o", str(target)]) == 2
    assert "the file exists and is not overwritten" in capsys.readouterr().err
    assert target.read_text() == "mine"


@pytest.mark.parametrize("runs", [2, 3])
def test_runs_of_one_file_are_counted_apart_from_its_series(
    runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DATA / "nvbandwidth.txt").read_text()
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "all.txt").write_text(text * runs)
    assert run(["import", str(tmp_path / "a.txt"), "-o", str(tmp_path / "a.wwp")]) == 0
    one = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert run(["import", str(tmp_path / "all.txt"), "-o", str(tmp_path / "all.wwp")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith(f" with {runs} runs") and out[0].startswith("1 file of nvbandwidth")
    assert [line for line in out if line.startswith("note: ")] == one


def test_a_report_of_imported_results_claims_nothing_of_how_they_were_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "a.wwp")
    assert run(["import", str(DATA / "nvbandwidth.txt"), "-o", target]) == 0
    capsys.readouterr()
    assert run(["report", target, "--format", "md", "--all", "-o", "-"]) == 0
    report = capsys.readouterr().out
    assert "verified" not in report
    assert "| time of measuring | unknown |" in report
    assert run(["advise", target, "--placement"]) in (0, 2)
    assert "Latencies of one GPU" not in capsys.readouterr().out
