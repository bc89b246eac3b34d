"""The guide to imports: its first example prints what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from tree import ROOT
from waywiser import cli

PAGE = ROOT / "docs" / "how-to" / "import-results.md"
DATA = ROOT / "tests" / "exchange" / "imports" / "data" / "nvbandwidth.txt"
KEPT = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"


def test_the_worked_example_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nvbandwidth.txt").write_text(DATA.read_text())
    unpacked(KEPT, Path("node7.wwp"))
    first, *_ = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    commands = [line for line in first.splitlines() if line.startswith("waywiser ")]
    codes = [cli.run(shlex.split(command)[1:]) for command in commands]
    assert codes == [0, 3] and "exit code is 3" in PAGE.read_text()
    shown = PAGE.read_text().partition("<!-- printed -->\n```text\n")[2].partition("```")[0]
    assert shown.strip() and shown in capsys.readouterr().out
