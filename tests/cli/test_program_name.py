"""The command that messages name: by name, or by its path if the shell does not find it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

from waywiser.cli import run
from waywiser.cli.lines import say
from waywiser.cli.program_name import as_called, program_name


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    command = tmp_path / "a folder" / "waywiser"
    command.parent.mkdir()
    command.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(command), "show"])
    return command


def test_a_command_on_the_path_goes_by_its_name(
    called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(called.parent))
    assert program_name() == "waywiser"


def test_another_one_goes_by_the_path_that_was_typed(
    called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == f"'{called}'"


def test_a_module_goes_by_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/lib/waywiser/cli/__main__.py"])
    assert program_name() == "waywiser"


def test_commands_in_a_text_are_named_as_it_was_called(
    called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "see waywiser show (waywiser check a.wwp); waywiser was built; /x/waywiser show"
    monkeypatch.setenv("PATH", str(called.parent))
    assert as_called(text) == text
    monkeypatch.setenv("PATH", "/nowhere")
    named = f"see '{called}' show ('{called}' check a.wwp); waywiser was built; /x/waywiser show"
    assert as_called(text) == named == as_called(named)


@pytest.mark.usefixtures("called")
def test_an_error_and_a_command_to_run_next_name_it_too(
    called: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run(["show", "/no/such.wwp"]) == 2
    assert f"('{called}' survey -o FILE makes one)" in capsys.readouterr().err
    say(Console(width=200), "to decide it: waywiser survey -o again.wwp")
    assert capsys.readouterr().out == f"to decide it: '{called}' survey -o again.wwp\n"
