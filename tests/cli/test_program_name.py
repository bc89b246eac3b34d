"""The command that messages name: by name, or by its path if the shell does not find it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from waywiser.cli.program_name import program_name


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
