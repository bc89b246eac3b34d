"""`waywiser.check`: the answer of ``waywiser check``, as text and as a table."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

import waywiser
from api import opened
from waywiser.analysis.health import early_stop
from waywiser.cli import run
from waywiser.measure import survey_run
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.profile import MissingProfile

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("checked")
    return [opened.unpacked(folder, f"two-h200-check-{n}") for n in (1, 2, 3)]


def test_it_is_what_the_command_line_says(files: list[Path], capsys: Output) -> None:
    found = waywiser.check(files[1], baseline=[files[0], files[0].parent])
    words = [
        "check",
        str(files[1]),
        "--baseline",
        str(files[0]),
        "--baseline",
        str(files[0].parent),
    ]
    run([*words, "--within", "0", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == found.status
    assert said["hosts"] == json.loads(msgspec.json.encode(found.result.hosts))
    run([*words, "--within", "0"])
    assert repr(found).splitlines()[0] == capsys.readouterr().out.splitlines()[0]
    assert found.result.hosts[0].host in found._repr_html_()


def test_a_row_is_a_reference(files: list[Path]) -> None:
    found = waywiser.check(files[0])
    rows = list(found.references)
    assert [row.reference for row in rows] == [
        each.reference for each in found.result.hosts[0].results
    ]
    assert {row.host for row in rows} == {found.result.hosts[0].host}


def test_a_folder_stands_for_its_hosts(files: list[Path]) -> None:
    found = waywiser.check(files[0].parent)
    assert found.result.peers is not None and found.result.nights is not None
    assert waywiser.check(*files).result.hosts[0].host == found.result.hosts[0].host
    with pytest.raises(MissingProfile):
        waywiser.check("gone.wwp")


def test_without_a_file_this_machine_is_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(
        survey_run, "SurveyLock", lambda: SurveyLock(f"waywiser-test-{os.getpid()}")
    )
    monkeypatch.setattr(early_stop, "NARROW", 1e9)
    monkeypatch.setattr(early_stop, "FEWEST_PROCESSES", 2)
    first = waywiser.check(within=120, keep=True)
    assert first.result.hosts[0].results[0].status == "not compared"
    again = waywiser.check(first.result.hosts[0].files[0], threshold=0.99)
    assert again.result.baseline is None, "it is not its own baseline"
    with pytest.raises(waywiser.WaywiserError, match="no fraction"):
        waywiser.check(threshold=5)
    with pytest.raises(waywiser.WaywiserError, match="in this folder"):
        waywiser.check(tmp_path)
    assert capsys.readouterr() == ("", "")
