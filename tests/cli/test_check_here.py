"""``check`` without a file measures this machine and keeps what it measured."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from waywiser.analysis.health import early_stop
from waywiser.analysis.health.kept_profiles import former_checks, kept_baselines
from waywiser.cli import run
from waywiser.measure import scope, survey_run
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.profile import Profile

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def settled_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not quiet: here each path is settled after the first processes."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(
        survey_run, "SurveyLock", lambda: SurveyLock(f"waywiser-test-{os.getpid()}")
    )
    monkeypatch.setattr(early_stop, "NARROW", 1e9)
    monkeypatch.setattr(early_stop, "FEWEST_PROCESSES", 2)


def test_the_machine_is_measured_until_all_is_settled_and_kept(capsys: Output) -> None:
    code = run(["check", "--within", "120", "--keep"])
    said = capsys.readouterr()
    assert code in (0, 3), said.err  # 0 where the class of a GPU is known
    assert said.out.splitlines()[0].split()[0] in ("OK", "INCONCLUSIVE")
    machine = scope.live_machine()
    (file,), (kept,) = former_checks(machine), kept_baselines(machine)
    assert f"profile: {file} " in said.err and kept in said.err
    with Profile.open(file) as profile:
        visits = list(profile.visits())
        assert {v.block for v in visits if v.stop != "skipped"} <= {0, 1}
        skipped = [v.failure.reason for v in visits if v.stop == "skipped" and v.failure]
        assert any(reason.startswith("settled after 2 processes") for reason in skipped)

    # The next one has a baseline. A busy machine may differ from it.
    code = run(["check", file, "--no-measure", "--json", "--threshold", "99%"])
    document = json.loads(capsys.readouterr().out)
    assert document["hosts"][0]["results"][0]["reference"] == "baseline"
    assert document["baseline"]["baseline"] == [kept] and code in (0, 1, 3)


def test_wrong_words_are_an_error_before_anything_is_measured(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("it was measured")

    monkeypatch.setattr(survey_run, "start", measured)
    for words in (["--threshold", "x"], ["--since", "x"], ["--labels", "gone"],
                  ["--values", "gone"], ["--within", "1"], ["--page", str(tmp_path)],
                  ["--baseline", "gone.wwp"], ["--repeat", "gone.wwp"]):  # fmt: skip
        assert run(["check", *words]) == 2, words
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "today"),
    [
        (["fleet", "nodes", "--json"], "waywiser check nodes --json"),
        (["history", "nodes", "--since", "14d"], "waywiser check nodes --since 14d"),
        (["normal"], "waywiser list --normal"),
        (["normal", "n.wwp", "--all"], "waywiser check n.wwp --all"),
        (
            ["normal", "n.wwp", "--as-rows", "me/n:a"],
            "waywiser export n.wwp --for normal-values --source me/n:a",
        ),
        (["fleet", "--help"], "waywiser check"),
    ],
)
def test_a_former_verb_names_its_command_of_today(
    words: list[str], today: str, capsys: Output
) -> None:
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and f"(write {today})" in said.err
