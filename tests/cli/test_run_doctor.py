from __future__ import annotations

import json
from pathlib import Path

import pytest

from topology.captured import machine
from topology.fake_system import system_of
from waywiser.cli.doctor import run_doctor
from waywiser.doctor import diagnosis
from waywiser.doctor.situation import Situation
from waywiser.words import WaywiserError


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    situation = Situation(machine("no-gpu"), system_of(tmp_path, {}))
    monkeypatch.setattr(diagnosis, "live_situation", lambda: situation)


@pytest.fixture
def troubled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    situation = Situation(machine("two-socket-4gpu"), system_of(tmp_path, {}))
    monkeypatch.setattr(diagnosis, "live_situation", lambda: situation)


@pytest.mark.usefixtures("quiet")
def test_infos_alone_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_doctor(json=False) == 0
    assert "nothing stands in the way" in capsys.readouterr().out


@pytest.mark.usefixtures("quiet")
def test_the_asked_severity_decides() -> None:
    assert run_doctor(json=False, severity="info") == 1


@pytest.mark.usefixtures("troubled")
def test_a_warning_exits_with_one_and_errors_alone_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_doctor(json=False) == 1
    assert run_doctor(json=False, severity="error") == 0
    text = capsys.readouterr().out
    assert "warning link-width: gpu:0 has 8 of 16 PCIe lanes" in text
    assert "remedy: reseat" in text


@pytest.mark.usefixtures("troubled")
def test_findings_come_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_doctor(json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document["hostname"] == "two-sockets"
    assert set(document["findings"][0]) == {"id", "severity", "what", "evidence", "remedy"}


def test_an_unknown_severity_is_refused() -> None:
    with pytest.raises(WaywiserError, match="info or warning or error"):
        run_doctor(json=False, severity="bad")
