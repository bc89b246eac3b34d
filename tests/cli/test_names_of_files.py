"""Files and folders whose names, rights or numbers are unusual: one line, and no output is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser import cli

Output = pytest.CaptureFixture[str]
KEPT = RESULTS / "2026-11-23-surveys" / "h100-check-1.wwp.xz"


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return unpacked(KEPT, tmp_path_factory.mktemp("kept") / "n.wwp").read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "verb", [["report", "-o", "x.html"], ["check", "--json"], ["show", "--json"]]
)
def test_a_name_that_is_not_utf_8_is_one_line(
    verb: list[str], folder: Path, profile: bytes, capsys: Output
) -> None:
    name = os.fsdecode(b"\xc3\x28.wwp")
    (folder / name).write_bytes(profile)
    code = cli.run([verb[0], name, *verb[1:]])
    said = capsys.readouterr().err
    assert "mistake in waywiser" not in said
    if code == 2:
        assert said.startswith("waywiser: error: a name is not UTF-8: ") and said.count("\n") == 1


def test_two_outputs_in_one_file_are_an_error_before_either_is_written(
    folder: Path, profile: bytes, capsys: Output
) -> None:
    (folder / "n.wwp").write_bytes(profile)
    (folder / "same").symlink_to("y.out")
    assert cli.run(["check", "n.wwp", "--prometheus", "same", "--junit", "./y.out"]) == 2
    assert "--prometheus and --junit both write to this file" in capsys.readouterr().err
    assert not (folder / "y.out").exists()


def test_a_line_feed_in_a_name_begins_no_line(folder: Path, capsys: Output) -> None:
    (folder / "a\n9 slower\n.wwp").write_text("no profile")
    cli.run(["check", "."])
    said = capsys.readouterr()
    assert said.err.startswith("waywiser: error: a 9 slower .wwp: is not a profile: no ")
    assert said.out == "" and len(said.err.splitlines()) == 1


def test_an_output_that_names_a_folder_is_an_error(
    folder: Path, profile: bytes, capsys: Output
) -> None:
    (folder / "n.wwp").write_bytes(profile)
    assert cli.run(["report", "n.wwp", "-o", "there/"]) == 2
    assert "there/: names a folder" in capsys.readouterr().err
    assert not (folder / "there").exists()


def test_changes_after_the_last_night_are_an_error(
    folder: Path, profile: bytes, capsys: Output
) -> None:
    (folder / "n.wwp").write_bytes(profile)
    assert cli.run(["simulate", "n.wwp", "-o", "to", "--nights", "3", "--from-night", "4"]) == 2
    assert "--from-night 4 is after the last of 3 nights" in capsys.readouterr().err
