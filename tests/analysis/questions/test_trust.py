"""How far a profile is to be trusted, and why not further."""

from __future__ import annotations

import random

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.subjects import FEW, curve, postal, subject
from tests.scripted_cpus import LIMIT

from waywiser.analysis.questions.trust import KINDS, answer
from waywiser.curves.answer import at_least
from waywiser.curves.subject import Subject
from waywiser.fitness.diagnosis import diagnose
from waywiser.fitness.situation import Situation
from waywiser.machine import cpu_load
from waywiser.profile import RunHealth
from waywiser.profile.quality_flags import REMEDIES
from waywiser.words.records import Failure, GpuHealth, GpuState, Health, Series

H2D, D2H, HOST = profiles.H2D, profiles.D2H, profiles.HOST
LINE = postal(5e-6, 50e9)


def ids(found: Subject) -> list[str]:
    return [finding.id for finding in answer(found).findings]


def test_every_kind_of_quality_flag_is_spoken_of() -> None:
    assert set(KINDS) == set(REMEDIES)


def test_a_quiet_profile_has_nothing_against_it() -> None:
    said = answer(subject(curve(H2D, LINE, noise=0.001, between=0.001)))
    assert said.findings == ()
    assert said.summary.startswith(
        "100% of 28 series are known to within 2%, 100% to within 5%, 100% to within 10%"
    )
    (family,) = said.tables[0].rows
    assert [cell.text for cell in family.cells[:4]] == [
        "host to device (H2D)",
        "28",
        "100%",
        "100%",
    ]
    assert any("fewer than six blocks" in each for each in said.unanswered)


def test_a_path_that_crashed_is_named_with_the_number_of_its_sizes() -> None:
    path = profiles.H2D
    crashed = [
        Series(each, (profiles.visit(each, failure=Failure("crash", "rank 0 ended")),))
        for each in (profiles.workload(path, size) for size in FEW[:2])
    ]
    (found, *_) = answer(subject(curve(D2H, LINE), curve(path, LINE, FEW[2:]), crashed)).findings
    assert (found.id, found.severity) == ("crashed-path", "warning")
    assert found.text == f"{path} crashed at 2 of {len(FEW)} sizes; rank 0 ended"


def test_blocks_that_disagree_are_counted_with_their_size_and_family() -> None:
    quiet = curve(D2H, LINE, noise=0.0005, between=0.0)
    apart = [
        profiles.series(H2D, size, (1e-4, 1.2e-4), noise=0.0005, seed=size) for size in FEW[:3]
    ]
    said = answer(subject(quiet, apart))
    (found,) = said.findings
    assert found.id == "blocks-disagree" and found.severity == "info"
    assert found.text.startswith("3 of 31 series (10%) differ from block to block")
    assert "the difference is typically 20%" in found.text
    assert found.effect == pytest.approx(0.2, abs=0.005)
    assert found.remedy == REMEDIES["blocks disagree"]
    assert found.exhibits[0].series.startswith(H2D)
    many = answer(subject(apart))
    assert many.findings[0].severity == "warning"
    assert many.tables[1].rows[0].cells[0].text == "blocks disagree"


def test_what_makes_numbers_wrong_comes_first_and_names_the_device() -> None:
    hot = (GpuState(1, 1200, 3201, ("sw_thermal_slowdown",), 4, 16, 88, 690.0),)
    what = profiles.workload("pinned@numa:0 -> device@gpu:1 by copy-engine", 2**20)
    taken = profiles.samples(random.Random(1), 1e-4)
    visit = profiles.visit(what, 0, taken, gpu_states=hot)
    loud = curve(HOST, LINE, FEW, noise=0.3, between=0.2, stop="budget")
    said = answer(subject(loud, [Series(what, (visit,))]))
    slow = next(finding for finding in said.findings if finding.id == "slow-link")
    assert slow.severity == "warning"
    assert [str(each) for each in slow.devices] == ["gpu:1 (0000:02:00.0, GPU-00000001)"]
    assert [row.cells[0].text for row in said.tables[1].rows[:2]] == ["throttled", "slow link"]
    assert len([each for each in said.findings if each.id != "unfit-machine"]) <= 5


def test_wrong_bytes_are_an_error_and_other_failures_are_not() -> None:
    what = profiles.workload(H2D, 8)
    wrong = profiles.visit(what, failure=Failure("wrong-bytes", "byte 3 is 0 and not 7"))
    crash = profiles.visit(profiles.workload(D2H, 8), failure=Failure("crash", "SIGSEGV"))
    failed = [Series(each.workload, (each,)) for each in (wrong, crash)]
    said = answer(subject(curve(HOST, LINE, FEW), failed))
    first, crashed, second = said.findings[:3]
    assert (first.id, first.severity) == ("wrong-bytes", "error")
    assert (crashed.id, crashed.severity) == ("crashed-path", "warning")
    assert "1 visit moved wrong bytes" in first.text and "byte 3" in first.text
    assert (second.id, second.severity) == ("failed", "warning")
    assert "crash: SIGSEGV" in second.text


def test_counters_that_rose_count_against_their_gpu() -> None:
    def at(count: int) -> Health:
        gpu = GpuHealth(1, "GPU-00000001", {"ECC uncorrected": count})
        return Health("2026-11-20T12:00:00+00:00", (gpu,))

    said = answer(subject(curve(H2D, LINE, FEW), health=[RunHealth(1, at(0), at(2))]))
    first = said.findings[0]
    assert (first.id, first.severity) == ("health", "error")
    assert "gpu:1 ECC uncorrected +2" in first.text
    assert [each.place for each in first.devices] == ["gpu:1"]


def test_the_environment_is_one_finding_however_much_is_odd_of_it() -> None:
    odd = {
        "governor": ["powersave"],
        "swap_used_bytes": 2**34,
        "memory_total_bytes": 2**36,
        "cgroup_cpus": 2.0,
    }
    said = answer(subject(curve(H2D, LINE, FEW), environment=odd))
    (unfit,) = [each for each in said.findings if each.id == "unfit-machine"]
    assert unfit.severity == "warning"
    for part in ("governor is powersave", "16.0 GiB", "2 CPUs"):
        assert part in unfit.text


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"governor": "performance"},
        {"governor": [], "load": [0.5]},
        {"load": "high", "governor": 7, "cpu_load": [3]},
    ],
)
def test_an_ordinary_or_odd_record_of_the_environment_is_no_finding(
    environment: dict[str, object],
) -> None:
    assert "unfit-machine" not in ids(subject(curve(H2D, LINE, FEW), environment=environment))


def test_the_load_by_other_programs_is_a_finding_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu_load, "BUSY_FRACTION", LIMIT)
    load = {"seconds": 61.0, "cpus": 12, "others": 3.25, "source": "/proc/stat"}
    said = answer(subject(curve(H2D, LINE, FEW), environment={"cpu_load": load}))
    (finding,) = [each for each in said.findings if each.id == "loaded-machine"]
    assert finding.severity == "warning" and "doctor" in finding.remedy
    assert "other programs used 3.2 of 12 CPUs during the survey" in finding.text
    assert "/proc/stat, over 1 min 01 s" in finding.text
    idle = {"cpu_load": {**load, "others": 1.1}}
    assert "loaded-machine" not in ids(subject(curve(H2D, LINE, FEW), environment=idle))


def test_other_processes_on_a_gpu_are_reported() -> None:
    machine = profiles.machine()
    shared = msgspec.structs.replace(machine.gpus[0], processes=("42 python 900 MiB",))
    machine = msgspec.structs.replace(machine, gpus=(shared, machine.gpus[1]))
    (finding,) = answer(subject(curve(H2D, LINE, FEW), machine=machine)).findings
    assert "gpu:0 is used by 1 other process" in finding.text


@pytest.mark.parametrize(
    ("captured", "while_moving"),
    [(("sw_power_cap",), ()), ((), ("sw_power_cap",)), (("sw_power_cap",), ("sync boost",))],
)
def test_a_report_calls_a_machine_unfit_where_the_doctor_warns(
    captured: tuple[str, ...], while_moving: tuple[str, ...]
) -> None:
    """An idle GPU does not show what reduces its clocks: readings while bytes moved count."""
    machine = profiles.machine()
    gpu = msgspec.structs.replace(machine.gpus[0], throttle=captured)
    machine = msgspec.structs.replace(machine, gpus=(gpu, machine.gpus[1]))
    what = profiles.workload(H2D, 2**20)
    taken = profiles.samples(random.Random(1), 1e-4)
    state = GpuState(0, 1980, 3201, while_moving, 5, 16, 40, 300.0)
    made = subject([Series(what, (profiles.visit(what, 0, taken, gpu_states=(state,)),))],
                   machine=machine)  # fmt: skip
    warned = at_least(
        diagnose(Situation(machine, stored=made.environment, gpu_states=made.gpu_states)), "warning"
    )
    assert ("unfit-machine" in ids(made)) == bool(warned) == ("sw_power_cap" in while_moving)


def test_an_unfinished_survey_says_so() -> None:
    made = subject(curve(H2D, LINE, FEW))
    overview = msgspec.structs.replace(made.overview, planned_visits=100)
    (finding,) = answer(msgspec.structs.replace(made, seen=overview)).findings
    assert finding.id == "unfinished" and "20 of 100 visits" in finding.text


def test_an_empty_profile_is_said_to_be() -> None:
    said = answer(subject())
    assert said.summary == "Not determined: no series has a result." and said.tables == ()
