"""The command that messages name: it can be typed as it stands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from waywiser.cli import run, streams
from waywiser.render.parts import Code, Words
from waywiser.render.program_name import as_called, program_name
from waywiser.render.terminal import print_parts

MODULE = "/usr/lib/python3/waywiser/__main__.py"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the command and a Python in two folders; no ``PATH`` finds them."""
    here = tmp_path / "here"
    for folder in ("one/bin", "other bin"):
        (here / folder).mkdir(parents=True)
        for name in ("waywiser", "python3"):
            (here / folder / name).write_text("#!/bin/sh\necho called $*\n")
            (here / folder / name).chmod(0o755)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    return here


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("waywiser", "waywiser"),
        ("one/bin/waywiser", "one/bin/waywiser"),
        ("{here}/one/bin/waywiser", "one/bin/waywiser"),
        ("../here/one/bin/waywiser", "../here/one/bin/waywiser"),
        ("{here}/other bin/waywiser", "'other bin/waywiser'"),
        ("/opt/a folder/bin/waywiser", "'/opt/a folder/bin/waywiser'"),
        ("/usr/bin/another/__main__.py", "waywiser"),
        ("", "waywiser"),
    ],
)
def test_a_command_has_the_path_by_which_it_was_called(
    called: str, name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called.format(here=here)])
    assert program_name() == name


@pytest.mark.parametrize("called", ["one/bin/waywiser", "{here}/one/bin/waywiser"])
def test_a_command_that_a_shell_finds_has_its_name_alone(
    called: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called.format(here=here)])
    monkeypatch.setenv("PATH", str(here / "one" / "bin"))
    assert program_name() == "waywiser"
    monkeypatch.setenv("PATH", str(here / "other bin"))
    assert program_name() == "one/bin/waywiser"


def test_a_module_has_the_python_that_runs_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [MODULE])
    monkeypatch.setattr(sys, "executable", str(here / "one" / "bin" / "python3"))
    assert program_name() == "one/bin/python3 -m waywiser"
    monkeypatch.setenv("PATH", str(here / "one" / "bin"))
    assert program_name() == "python3 -m waywiser"


def test_a_command_has_a_name_where_the_current_folder_is_gone(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    monkeypatch.setattr(sys, "argv", [f"{here}/other bin/waywiser"])
    assert program_name() == shlex.quote(f"{here}/other bin/waywiser")


@pytest.mark.parametrize("called", ["one/bin/waywiser", "other bin/waywiser", MODULE])
def test_commands_in_a_text_are_named_once(
    called: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "see waywiser show (waywiser advise a.wwp); waywiser was built; /x/waywiser show"
    monkeypatch.setattr(sys, "argv", [called])
    name = program_name()
    named = f"see {name} show ({name} advise a.wwp); waywiser was built; /x/waywiser show"
    assert as_called(text) == named == as_called(named)


def test_what_is_printed_can_be_typed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "'other bin/waywiser'"
    monkeypatch.setattr(sys, "argv", [f"{here}/other bin/waywiser", "show"])
    assert run(["show", "/no/such.wwp"]) == 2
    assert f"({name} survey -o FILE makes one)" in capsys.readouterr().err
    print_parts(Console(width=200), [Words("next: waywiser report again.wwp")])
    streams.put_line("next: waywiser report again.wwp")
    said = capsys.readouterr().out.splitlines()
    print_parts(Console(width=200), [Code("waywiser survey -o b.wwp", is_elsewhere=True)])
    assert capsys.readouterr().out == "waywiser survey -o b.wwp\n"
    assert said == [f"next: {name} report again.wwp"] * 2
    shell = {**os.environ, "PATH": os.defpath}
    command = said[0].removeprefix("next: ")
    done = subprocess.run(command, shell=True, env=shell, capture_output=True, text=True)
    assert done.stdout == "called report again.wwp\n"
