"""The exit code and the last lines of a survey."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import profiles
from waywiser.cli.survey import require_measured
from waywiser.curves.reasons import UNSUPPORTED
from waywiser.measure.survey_run import SurveyError
from waywiser.profile import WritableProfile
from waywiser.words.records import Failure


def surveyed(path: Path, failed: int, kind: str = "crash", measured: int = 2) -> Path:
    of = profiles.workload(profiles.H2D, 2**20)
    why = Failure(kind, "there is no operation 'barrier-skew'")
    good = [
        profiles.visit(of, n, profiles.samples(random.Random(n), 1e-3)) for n in range(measured)
    ]
    bad = [profiles.visit(of, measured + n, failure=why) for n in range(failed)]
    with WritableProfile.create(path, profiles.machine(), {}) as new:
        for visit in (*good, *bad):
            new.commit_visit(visit)
    return path


def test_a_survey_of_which_most_failed_is_not_done(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="3 of 5 visits failed, most often: there is no") as error:
        require_measured(surveyed(tmp_path / "a.wwp", 3))
    assert error.value.exit_code == 2 and "build it again" in error.value.remedy


def test_a_survey_of_which_some_failed_is_done(tmp_path: Path) -> None:
    require_measured(surveyed(tmp_path / "a.wwp", 2))


def test_what_is_not_supported_is_no_failure(tmp_path: Path) -> None:
    require_measured(surveyed(tmp_path / "a.wwp", 3, UNSUPPORTED))
