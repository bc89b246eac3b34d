"""What the README shows of a kept profile is what the tool prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser import cli

README = Path(__file__).parents[1] / "README.md"
KEPT = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
COMMAND = "$ waywiser show four-h200.wwp\n"


def test_the_sample_of_show_is_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    unpacked(KEPT, tmp_path / "four-h200.wwp")
    assert cli.run(["show", "four-h200.wwp"]) == 0
    printed = capsys.readouterr().out
    sample = README.read_text().partition(COMMAND)[2].partition("...\n```")[0]
    machine, _, rest = sample.partition("\n\n")
    assert printed.startswith(machine + "\n")
    assert rest.startswith("headline paths ") and rest in printed
