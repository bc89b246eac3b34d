"""The command that messages name: as it was called, without the path on this computer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

from waywiser.cli import run
from waywiser.report.parts import Words
from waywiser.report.program_name import as_called, program_name
from waywiser.report.terminal import print_parts

MODULE = "/usr/lib/python3/waywiser/__main__.py"


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("waywiser", "waywiser"),
        ("/opt/a folder/bin/waywiser", "waywiser"),
        (".venv/bin/waywiser", "waywiser"),
        (MODULE, "python -m waywiser"),
        ("/usr/bin/another/__main__.py", "waywiser"),
        ("", "waywiser"),
    ],
)
def test_a_command_goes_by_the_name_that_was_called(
    called: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == name


def test_commands_in_a_text_are_named_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "see waywiser show (waywiser check a.wwp); waywiser was built; /x/waywiser show"
    monkeypatch.setattr(sys, "argv", ["/opt/bin/waywiser"])
    assert as_called(text) == text
    monkeypatch.setattr(sys, "argv", [MODULE])
    named = (
        "see python -m waywiser show (python -m waywiser check a.wwp); waywiser was built; "
        "/x/waywiser show"
    )
    assert as_called(text) == named == as_called(named)


@pytest.mark.parametrize(
    ("called", "name"), [("/opt/bin/waywiser", "waywiser"), (MODULE, "python -m waywiser")]
)
def test_an_error_and_a_command_to_run_next_name_it_too(
    called: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "show"])
    assert run(["show", str(Path("/no/such.wwp"))]) == 2
    assert f"({name} survey -o FILE makes one)" in capsys.readouterr().err
    print_parts(Console(width=200), [Words("to decide it: waywiser survey -o again.wwp")])
    assert capsys.readouterr().out == f"to decide it: {name} survey -o again.wwp\n"
