"""A machine of eight GPUs that hides its two sockets, over the fake GPU and a scripted NVML: what
its surveys, and the page of one, say of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from own_lock import commands, finish, with_nvml
from waywiser.profile import Profile
from waywiser.profile.locality import Sides, decide_sides

TESTS = Path(__file__).parent
BENCHMARKS = TESTS.parent / "benchmarks"
REMOTE_MICROSECONDS = 1000
"""Much more than all other noise of this host."""
DEALT = (1, 2)
"""Seeds by which blocks of memory are dealt to the sides."""


@pytest.fixture(scope="module")
def surveyed(
    fake_native_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the check of one link, once for each deal."""
    folder = tmp_path_factory.mktemp("sides")
    environment = with_nvml(fake_native_environment, "machine.scripted_nvml", TESTS)
    one = ("--only", "pinned@numa:0 -> device@gpu:0 by copy-engine", "--sizes", "1MiB")
    with commands(folder, environment) as start:
        for seed in DEALT:
            survey = ("survey", "--preset", "check", *one, "-o", f"{seed}.wwp")
            fake = f"devices=8;remote={REMOTE_MICROSECONDS}@{seed}"
            code, _, err = finish(start(*survey, WAYWISER_FAKE=fake))
            assert code == 0, err
        code, _, err = finish(start("report", "1.wwp", "-o", "report.html"))
        assert code == 0, err
    return folder


def sides(file: Path) -> Sides:
    with Profile.open(file) as profile:
        found = decide_sides(profile.localities())
    assert found is not None
    return found


@pytest.mark.slow
def test_every_survey_shows_the_same_two_groups(surveyed: Path) -> None:
    found = [sides(surveyed / f"{seed}.wwp") for seed in DEALT]
    assert {each.groups for each in found} == {((0, 1, 2, 3), (4, 5, 6, 7))}
    for each in found:
        assert each.remote_seconds - each.local_seconds == pytest.approx(
            REMOTE_MICROSECONDS * 1e-6, rel=0.5
        )
    assert len({tuple(block.side for block in each.blocks) for each in found}) > 1, "dealt anew"


def test_links_are_those_that_nvml_shows(surveyed: Path) -> None:
    with Profile.open(surveyed / "1.wwp") as profile:
        gpus = profile.machine.gpus
    assert len(gpus) == 8 and {gpu.nvlinks[0].lanes for gpu in gpus} == {18}
    assert {gpu.pcie.generation_max for gpu in gpus} == {5}


def test_the_report_says_it_first_and_draws_it(surveyed: Path) -> None:
    result = "GPUs 0-3 and GPUs 4-7 are on two sides"
    page = (surveyed / "report.html").read_text()
    assert page.index(result) < page.index('id="links"'), "in the verdict"
    assert "side A of host memory" in page and "side B of host memory" in page


def benchmark(folder: Path, name: str, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_groups_of_several_surveys_are_one_table_with_their_confidence(surveyed: Path) -> None:
    files = [f"{seed}.wwp" for seed in DEALT]
    # The scripted counters count what does not move, which is a finding.
    shown = benchmark(surveyed, "evidence.py", *files, "--json", "evidence.json", code=1)
    assert shown.count("| 0-3 and 4-7 | blocks | ") == len(DEALT)
    assert f"all {len(DEALT)} profiles show the same groups" in shown
    for each in json.loads((surveyed / "evidence.json").read_text())["sides"]:
        assert each["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert each["p_value"] <= 0.01 and 0 < each["agreeing"] <= each["blocks"]


def test_the_time_of_a_survey_is_shown_beside_its_plan(surveyed: Path) -> None:
    plan = {"outlook": {"seconds": 23.4}, "deadline_seconds": 25.0}
    (surveyed / "plan.json").write_text(json.dumps(plan))
    (surveyed / "steps.txt").write_text("survey, check    27.1 s   exit 0\n")
    shown = benchmark(
        surveyed, "planned.py", "steps.txt", "--survey", "plan.json", "1.wwp", "survey, check",
        "--json", "planned.json",
    )  # fmt: skip
    assert "| survey, check | 23 s | 25 s | " in shown and " | 27.1 s | " in shown
    (found,) = json.loads((surveyed / "planned.json").read_text())
    assert found["measuring"] > 0 and found["series"] > 0
