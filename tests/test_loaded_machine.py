"""A survey under load by other programs: the verbs say so and decide nothing by it. The load is
made up, so that nothing depends on what else the machine of the tests does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import msgspec
import pytest

import scripted_cpus
from measure.plan.machines import machine
from scripted_host import scripted_host
from waywiser import cli
from waywiser.machine import cpu_load
from waywiser.profile import Profile

LOADED = "other programs used 1.7 of 2 CPUs"


ONLY = ("pageable@numa:0 -> pageable@numa:0 by cpu*", "pinned@numa:0 -> device@gpu:0*")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What surveys of the idle machine, the second right after the first, and one under load
    wrote, by their names; their profiles are in the current folder."""
    said: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch, scripted_host(patch) as become:
        patch.chdir(tmp_path_factory.mktemp("surveys"))
        become(machine(gpus=1))
        for name, others in (("idle", 0.0), ("again", 0.0), ("loaded", 1.7)):
            scripted_cpus.use(patch, others, own=0.2)
            said[name] = survey(f"{name}.wwp")
        yield said


def survey(file: str, *options: str) -> str:
    """What the verb writes to both of its streams."""
    only = [word for pattern in ONLY for word in ("--only", pattern)]
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.run(["survey", "--preset", "standard", *only, "-o", file, *options])
    assert code == 0, err.getvalue()
    return f"{err.getvalue()}\n{out.getvalue()}"


@pytest.fixture(autouse=True)
def real_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_load, "BUSY_FRACTION", scripted_cpus.LIMIT)


def output(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.run([*words]) == code
    return capsys.readouterr().out


def test_a_survey_says_at_its_start_and_its_end_that_the_machine_is_loaded(
    both: dict[str, str],
) -> None:
    loaded = " ".join(both["loaded"].split())
    assert f"warning: {LOADED} now" in loaded and "take an exclusive node" in loaded
    assert loaded.index(f"{LOADED} now") < loaded.index("100%")
    assert f"warning: {LOADED} during the survey" in loaded
    assert "other programs used" not in both["idle"] + both["again"]


@pytest.mark.usefixtures("both")
def test_a_resumed_survey_says_at_its_start_that_the_machine_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for others, is_loaded in ((1.7, True), (0.0, False)):
        scripted_cpus.use(monkeypatch, others, own=0.2)
        shutil.copyfile("idle.wwp", "resumed.wwp")
        assert cli.run(["survey", "--resume", "-o", "resumed.wwp"]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert (f"warning: {LOADED} now" in said) is is_loaded
        if is_loaded:
            assert said.index(f"{LOADED} now") < said.index("visits are stored already")


@pytest.mark.usefixtures("both")
def test_the_verbs_that_read_it_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert LOADED in " ".join(output(capsys, "show", "loaded.wwp").split())
    found = msgspec.json.decode(output(capsys, "show", "loaded.wwp", "--json"))
    assert found["load"]["others"] == pytest.approx(1.7, abs=0.1)
    said = " ".join(output(capsys, "doctor", "loaded.wwp", code=1).split())
    assert f"load: {LOADED} during the survey" in said
    report = output(capsys, "report", "loaded.wwp", "--format", "md", "-o", "-")
    status = report.partition("## Findings")[0]
    assert "Review" in status and LOADED in status and "OK" not in status
    for verb in (["show"], ["report", "--format", "md", "-o", "-"]):
        assert "other programs used" not in output(capsys, verb[0], "idle.wwp", *verb[1:])


@pytest.mark.usefixtures("both")
def test_a_policy_keeps_the_defaults_where_cpus_copy(capsys: pytest.CaptureFixture[str]) -> None:
    idle = output(capsys, "export", "idle.wwp", "--for", "waywiser")
    loaded = output(capsys, "export", "loaded.wwp", "--for", "waywiser")
    of_cpus = ("pageable", "pageable")

    def kinds(policy: str) -> set[tuple[str, str]]:
        return {(each["from"], each["to"]) for each in msgspec.json.decode(policy)["classes"]}

    assert of_cpus in kinds(idle) and of_cpus not in kinds(loaded)
    assert ("pinned", "device") in kinds(loaded)  # copy engines alone move these
    said = " ".join(output(capsys, "advise", "loaded.wwp").split())
    reason = f"not decided, since loaded.wwp was surveyed under load: {LOADED}"
    again = "waywiser survey --preset full --only 'pageable@numa:0 -> pageable@numa:0*' decides"
    assert f"pageable -> pageable: {reason}" in said and again in said
    # With a survey of the idle machine, that one alone counts.
    assert kinds(output(capsys, "export", "loaded.wwp", "idle.wwp", "--for", "waywiser")) == kinds(
        idle
    )


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize(("now", "baseline"), [("loaded", "idle"), ("idle", "loaded")])
def test_a_check_under_load_decides_nothing(
    now: str, baseline: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", f"{now}.wwp", "--baseline", f"{baseline}.wwp", "--within", "0"]
    first = output(capsys, *words, code=3).splitlines()[0]
    assert first.startswith("INCONCLUSIVE")
    assert f"loaded.wwp was surveyed under load: {LOADED}" in first


@pytest.mark.usefixtures("both")
def test_a_check_of_the_idle_machine_says_nothing_of_load(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli.run(["check", "again.wwp", "--baseline", "idle.wwp", "--within", "0"])
    assert "under load" not in capsys.readouterr().out


def test_a_resumed_survey_keeps_the_load_of_its_first_run(
    both: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert both
    shutil.copy("loaded.wwp", "resumed.wwp")
    scripted_cpus.use(monkeypatch, 0.0)
    survey("resumed.wwp", "--resume")
    with Profile.open("resumed.wwp") as profile:
        assert len(profile.runs) == 2
    assert LOADED in " ".join(output(capsys, "show", "resumed.wwp").split())
