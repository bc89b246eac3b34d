"""Surveys with a scripted registry and probe: what is stored, resumed, not supported, and
skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import profiles
from measure.plan import scripted_native
from measure.plan.machines import machine
from scripted_host import scripted_host
from waywiser import cli
from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.measure import scope, survey_run
from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.measure.scope import MachineSelection, MissingGpus, ScopeError
from waywiser.measure.survey_run import Interrupted, KeptPlan, SurveyError
from waywiser.profile import ExistingFile, Profile, WritableProfile
from waywiser.profile.planned import planned
from waywiser.words.records import Failure, Visit

QUICK = Request(preset="quick", only=("pinned@numa:0 -> device@gpu:0",))


class Watching:
    """Counts what is reported to it."""

    def __init__(self, stop_after: int = -1) -> None:
        self.plan: Plan | None = None
        self.finished = 0
        self.visits: list[Visit] = []
        self._stop_after = stop_after

    def begin(self, plan: Plan, finished: Iterable[Visit]) -> None:
        self.plan, self.finished = plan, len(list(finished))

    def progress(self, progress: object) -> None: ...

    def visit(self, visit: Visit) -> None:
        self.visits.append(visit)
        if len(self.visits) == self._stop_after:
            raise KeyboardInterrupt


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Machine], None]]:
    with scripted_host(monkeypatch) as become:
        yield become


def make(file: Path, request: Request = QUICK, stop_after: int = -1) -> Watching:
    watching = Watching(stop_after)
    survey_run.start(
        survey_run.prepare(request, MachineSelection()),
        file,
        watching,
        command=("waywiser", "survey"),
    )
    return watching


@pytest.mark.usefixtures("host")
def test_every_visit_and_skip_is_stored_with_the_plan_and_the_unsupported_paths(
    tmp_path: Path,
) -> None:
    watching = make(tmp_path / "a.wwp")
    assert watching.plan is not None
    with Profile.open(tmp_path / "a.wwp") as profile:
        stored = list(profile.visits())
        assert stored == watching.visits
        assert len(stored) == watching.plan.visits
        assert {visit.stop for visit in stored} == {"converged", "skipped"}
        assert profile.machine == machine(gpus=1)
        kept = msgspec.json.decode(profile.plan_json, type=KeptPlan)
        assert kept.request == QUICK
        assert kept.estimate.visits == watching.plan.visits
        assert profile.environment["backend"] == "fake"
        assert profile.runs[0].command == ("waywiser", "survey")
        assert profile.runs[0].ended is not None


@pytest.mark.usefixtures("host")
def test_an_interrupted_survey_says_how_to_go_on_and_does(tmp_path: Path) -> None:
    file = tmp_path / "a.wwp"
    with pytest.raises(Interrupted, match=r"7 of \d+ visits") as error:
        make(file, stop_after=7)
    assert f"waywiser survey --resume -o {file}" in str(error.value)
    watching = Watching()
    survey_run.resume(file, watching)
    assert watching.finished == 7 and watching.plan is not None
    with Profile.open(file) as profile:
        keys = [(visit.workload.identity, visit.block) for visit in profile.visits()]
        assert len(keys) == len(set(keys)) == watching.plan.visits
        assert len(profile.runs) == 2
    again = Watching()
    survey_run.resume(file, again)
    assert again.finished == watching.plan.visits and not again.visits


@pytest.mark.usefixtures("host")
def test_resume_takes_the_options_of_the_first_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.wwp")
    first = ["survey", "--resume", "-o", file, "--preset", "quick", "--only", "h2d memcpy",
             "--expect-gpus", "1", "--memory", "1GiB", "--no-scratch"]  # fmt: skip
    assert cli.run(first) == 0
    assert f"there is no {file} to resume: a new survey starts" in capsys.readouterr().err
    assert cli.run(first) == 0
    assert cli.run(first[:4]) == 0
    capsys.readouterr()
    for other in (["--preset", "standard"], ["--only", "d2h"], ["--sizes", "1KiB"], ["--seed", "7"],
                  ["--gpus", "none"], ["--share"], ["--memory", "2GiB"], ["--expect-gpus", "2"],
                  ["--deadline", "9"], ["--scratch", str(tmp_path)]):  # fmt: skip
        assert cli.run([*first[:4], *other]) == 2
        assert f"which has another {other[0]}" in capsys.readouterr().err
    with Profile.open(file) as profile:
        assert [run.command[:2] for run in profile.runs]
        assert {visit.block for visit in profile.visits()} == {0}


@pytest.mark.usefixtures("host")
def test_processes_of_a_resumed_survey_have_numbers_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.wwp"
    with pytest.raises(Interrupted):
        make(file, stop_after=3)
    stopped = profiles.visit(profiles.WHAT, 0, failure=Failure("interrupted", "Ctrl-C"))
    with WritableProfile.resume(file, {}) as profile:
        profile.commit_visit(msgspec.structs.replace(stopped, worker=9))
    numbers = []

    def run_orders(*_: Any, options: ProbeOptions, **__: Any) -> None:
        numbers.append(options.first_worker)

    monkeypatch.setattr(survey_run, "run_orders", run_orders)
    survey_run.resume(file, Watching())
    assert numbers == [10]


@pytest.mark.usefixtures("host")
def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a.wwp"
    file.write_text("mine")
    with pytest.raises(ExistingFile):
        make(file)
    assert file.read_text() == "mine"


@pytest.mark.usefixtures("host")
def test_one_survey_at_a_time(tmp_path: Path) -> None:
    with (
        SurveyLock(f"waywiser-test-{os.getpid()}"),
        pytest.raises(Exception, match="surveyed already, by process"),
    ):
        make(tmp_path / "a.wwp")
    assert not (tmp_path / "a.wwp").exists()


@pytest.mark.usefixtures("host")
def test_that_the_host_is_being_surveyed_is_all_that_a_second_survey_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SurveyLock(f"waywiser-test-{os.getpid()}"):
        assert cli.run(["survey", "--no-scratch", "-o", str(tmp_path / "a.wwp")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith("waywiser: error: this host is being surveyed already")


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (msgspec.structs.replace(machine(gpus=1), hostname="other"), "testhost, this is other"),
        (machine(gpus=0), "gpu:0 is GPU-0, here it is missing"),
        (machine(gpus=1, nodes=0), "CPUs that may not be used now"),
        (machine(gpus=1, free=2**20), "gpu:0 cannot be measured now.*lower --memory"),
    ],
)
def test_a_survey_is_not_resumed_on_another_machine(
    tmp_path: Path, host: Callable[[Machine], None], now: Machine, says: str
) -> None:
    file = tmp_path / "a.wwp"
    with pytest.raises(Interrupted):
        make(file, stop_after=3)
    host(now)
    with pytest.raises(SurveyError, match=says):
        survey_run.resume(file, Watching())


def test_fewer_gpus_than_expected_are_an_error_with_the_reason(
    host: Callable[[Machine], None],
) -> None:
    survey_run.prepare(QUICK, MachineSelection(), expect_gpus=1)
    with pytest.raises(MissingGpus, match="2 GPUs are expected and 1 can be measured"):
        survey_run.prepare(QUICK, MachineSelection(), expect_gpus=2)
    host(machine())
    with pytest.raises(MissingGpus, match="no driver is loaded"):
        survey_run.prepare(Request(), MachineSelection(), expect_gpus=1)


def test_gpus_are_chosen_by_index(host: Callable[[Machine], None]) -> None:
    host(machine(gpus=4))
    chosen = survey_run.prepare(Request(), MachineSelection(gpus="1,3"))
    assert [gpu.index for gpu in chosen.machine.gpus] == [1, 3]
    none = survey_run.prepare(Request(), MachineSelection(gpus="none"))
    assert none.machine.gpus == ()
    assert "skipped by --gpus none" in {
        unsupported.reason for unsupported in none.plan.unsupported_paths
    }


@pytest.mark.parametrize(("gpus", "says"), [("1", "no gpu:1.*it has 0"), ("a", "not a list")])
@pytest.mark.usefixtures("host")
def test_gpus_that_are_not_there_are_an_error(gpus: str, says: str) -> None:
    with pytest.raises(ScopeError, match=says):
        survey_run.prepare(Request(), MachineSelection(gpus=gpus))


def test_gpus_that_others_use_are_left_alone_unless_shared(
    host: Callable[[Machine], None],
) -> None:
    two = machine(gpus=2)
    busy = msgspec.structs.replace(two.gpus[0], processes=("42 train 100 MiB",))
    host(msgspec.structs.replace(two, gpus=(busy, two.gpus[1])))
    alone = survey_run.prepare(Request(), MachineSelection())
    assert [gpu.index for gpu in alone.machine.gpus] == [1]
    assert [unsupported.path for unsupported in alone.scope.unsupported_paths] == ["gpu:0"]
    shared = survey_run.prepare(Request(), MachineSelection(share=True))
    assert len(shared.machine.gpus) == 2


def test_gpus_that_cannot_be_used_are_skipped_with_the_reason(
    host: Callable[[Machine], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "_unavailable_reason", lambda: "the driver is too old")
    plan = survey_run.prepare(Request(), MachineSelection()).plan
    assert "the driver is too old" in {unsupported.reason for unsupported in plan.unsupported_paths}


def test_the_driver_is_asked_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.MODULE_VARIABLE, "no_such_module")
    monkeypatch.setattr(native, "load", lambda: scripted_native)
    assert "no_such_module" in scope._unavailable_reason()
    monkeypatch.setattr(scripted_native, "backend", "none")
    text = "this build is for the host alone"
    monkeypatch.setattr(scripted_native, "gpu_unavailable_reason", lambda: text, raising=False)
    assert scope._unavailable_reason() == text


def test_a_survey_for_a_model_marks_the_sets_that_no_model_is_fitted_to(
    host: Callable[[Machine], None], tmp_path: Path
) -> None:
    host(machine(gpus=2))
    request = Request(preset="check", model=True)
    watching = make(tmp_path / "a.wwp", request)
    assert watching.plan is not None
    with Profile.open(tmp_path / "a.wwp") as profile:
        known = planned(profile.plan_json)
        measured = {identity for identity, _ in profile.finished()}
    assert known.validation == watching.plan.validation
    assert len(known.validation) == 20 and set(known.validation) <= measured
    assert known.request is not None and "--model" in known.request.options
    again = Watching()
    survey_run.resume(tmp_path / "a.wwp", again)
    assert again.plan is not None and again.plan.validation == known.validation
    assert not again.visits


@pytest.mark.parametrize(
    ("notes", "why"),
    [
        (("numa:0 is skipped: it has no memory",), "numa:0 is skipped: it has no memory"),
        (("something else",), "the system shows none"),
        ((), "the system shows none"),
    ],
)
def test_without_a_node_the_reason_is_no_missing_driver(
    host: Callable[[Machine], None], notes: tuple[str, ...], why: str
) -> None:
    bare = msgspec.structs.replace(
        machine(gpus=0), numa=(), gpu_reason="no NVIDIA driver (install it)", notes=notes
    )
    host(bare)
    with pytest.raises(SurveyError, match="nothing is left to measure") as caught:
        survey_run.prepare(Request(preset="quick"), MachineSelection())
    assert caught.value.remedy == f"no NUMA node can be used: {why}"
