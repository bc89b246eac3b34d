from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import waywiser
from kept import RESULTS, unpacked
from machine.captured import machine
from machine.fake_system import system_of
from waywiser import cli
from waywiser.cli.app import print_result
from waywiser.cli.doctor import doctor
from waywiser.cluster.surveys import survey_needs
from waywiser.curves.answer import Finding
from waywiser.fitness import diagnosis
from waywiser.fitness.situation import Situation
from waywiser.render.views.doctor import finding_parts
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
    assert doctor(json=False) == 0
    assert "OK: no warning and no error" in capsys.readouterr().out


@pytest.mark.usefixtures("quiet")
def test_the_asked_severity_decides() -> None:
    assert doctor(json=False, severity="info") == 1


@pytest.mark.usefixtures("troubled")
def test_a_warning_exits_with_one_and_errors_alone_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert doctor(json=False) == 1
    assert doctor(json=False, severity="error") == 0
    text = capsys.readouterr().out
    assert "warning link-width: gpu:0 has 8 of 16 PCIe lanes" in text
    assert "remedy: reseat" in text
    last, _, checks = text.splitlines()[-1].partition(" in ")
    assert checks == f"{len(diagnosis.CHECKS)} checks"
    assert all(
        n == "1" or name in ("errors", "warnings", "info")
        for n, name in (part.split() for part in last.split(", "))
    ), last


@pytest.mark.usefixtures("troubled")
@pytest.mark.parametrize("more", [{}, {"mpi": True}, {"mpi": True, "try_": True}])
def test_the_severity_decides_whatever_else_is_shown(
    more: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waywiser.notebook.mpi_answer.mpi_answer", lambda *_, **__: ({}, ()))
    assert waywiser.doctor(**more).exit_code == 1  # type: ignore[arg-type]
    assert waywiser.doctor(severity="error", **more).exit_code == 0  # type: ignore[arg-type]


def test_a_long_finding_is_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    what = "one two " * 300
    findings = (Finding("id", "warning", what, evidence=("seen",)),) * 2
    print_result(None, finding_parts(findings))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("warning id: one two one two") and len(lines[0]) <= 170
    assert lines[1].split() == ["id:", *what.split()]
    assert lines[-1] == f"2 warnings in {len(diagnosis.CHECKS)} checks"


@pytest.mark.usefixtures("troubled")
def test_findings_come_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 2
    assert document["hostname"] == "two-sockets"
    assert msgspec.convert(document["findings"], list[Finding])


@pytest.fixture(scope="module")
def two_gpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("two_gpus") / "node.wwp"
    return str(unpacked(RESULTS / "2026-11-23-surveys" / "two-h200-check-1.wwp.xz", file))


def test_the_machine_of_a_profile_is_checked(
    two_gpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["doctor", two_gpus]) == 1
    text = capsys.readouterr().out
    assert text.startswith("vm, as the profile of 2026-11-23T00:05 UTC describes it:\n")
    assert "warning hidden-topology: " in text
    assert "not checked, since the profile does not store it: driver and CUDA runtime of" in text
    checks = f"{len(diagnosis.CHECKS)} checks of what the profile stores"
    assert text.endswith(f"1 warning, 1 info in {checks}\n")
    assert cli.run(["doctor", two_gpus, "--severity", "error"]) == 0


def test_the_findings_of_a_profile_come_as_json(
    two_gpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["doctor", two_gpus, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["profile"] == two_gpus
    assert document["created"].startswith("2026-11-23T00:05")
    assert "load by other programs" in document["not_checked"]
    assert len(document["not_checked"]) == 4
    assert [finding["id"] for finding in document["findings"]] == ["hidden-topology", "governor"]


@pytest.mark.parametrize(
    ("name", "says"),
    [("none.wwp", "there is no such file"), ("a.json", "is not a profile (name a file that")],
)
def test_what_is_no_profile_is_one_line_and_two(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text("{}")
    assert cli.run(["doctor", str(tmp_path / name)]) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.out == ""


def test_an_unknown_severity_is_an_error() -> None:
    with pytest.raises(WaywiserError, match="info or warning or error"):
        doctor(json=False, severity="bad")


@pytest.mark.usefixtures("quiet")
def test_what_a_survey_of_a_cluster_lacks_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.run(["doctor", "--cluster", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == []
    monkeypatch.setattr(survey_needs, "OWN_DESCRIPTORS", 2**62)
    assert cli.run(["doctor", "--cluster"]) == 1
    assert "missing: this process may open " in capsys.readouterr().out
