"""A machine of eight GPUs that hides its two sockets, over the fake GPU and a scripted NVML: what
its surveys, and the page of one, say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from own_lock import commands, finish, with_nvml
from waywiser.profile import Profile
from waywiser.series.locality import Sides, decide_sides

TESTS = Path(__file__).parent
REMOTE_MICROSECONDS = 200
"""Much more than all other noise of this host."""
DEALT = (1, 2)
"""Seeds by which blocks of memory are dealt to the sides."""


@pytest.fixture(scope="module")
def surveyed(
    fake_native_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the check of one link, once for each deal."""
    folder = tmp_path_factory.mktemp("sides")
    environment = with_nvml(fake_native_environment, "hardware.scripted_nvml", TESTS)
    one = ("--only", "pinned@numa:0 -> device@gpu:0 *", "--sizes", "1MiB")
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
        assert each.remote_seconds - each.local_seconds == pytest.approx(200e-6, rel=0.5)
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
