"""The guide to methods: its commands and its program run, and print what it shows."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from tree import ROOT
from waywiser import cli

GUIDE = ROOT / "docs" / "how-to" / "choose-a-method.md"
COMMAND = re.compile(r"^waywiser (?:advise|export) .*$", re.MULTILINE)
SHOWN = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)

Output = pytest.CaptureFixture[str]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    surveys = RESULTS / "2026-11-23-surveys"
    unpacked(surveys / "h200-standard-1.wwp.xz", tmp_path / "other.wwp")
    return unpacked(surveys / "h100-standard-2.wwp.xz", tmp_path / "node.wwp")


def test_the_commands_run(node: Path, capsys: Output) -> None:
    commands = COMMAND.findall(GUIDE.read_text())
    assert len(commands) == 6
    for command in commands:
        assert cli.run(shlex.split(command)[1:]) == 0, command
    assert capsys.readouterr().err == ""
    assert (node.parent / "machine.json").exists()


def test_the_answer_is_as_shown(node: Path, capsys: Output) -> None:
    (shown,) = SHOWN.findall(GUIDE.read_text())
    assert cli.run(shlex.split(COMMAND.findall(GUIDE.read_text())[0])[1:]) == 0
    assert capsys.readouterr().out == shown


def test_the_program_runs(node: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    program = GUIDE.parent / "examples" / "choose_a_method.py"
    monkeypatch.setattr(sys, "argv", [str(program), str(node)])
    runpy.run_path(str(program), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("sm: ") and lines[1].startswith("  batch takes +")
