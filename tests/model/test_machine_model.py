"""The model that is kept of a profile: when it is used, and when it is fitted again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

import profiles
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import (
    CurveFinder,
    MachineModel,
    fitted_model,
    kept_model,
    obtained_model,
)
from waywiser.profile import Profile, ProfileError, WritableProfile
from waywiser.profile.schema import TABLE
from waywiser.words import Workload

GPU_0_TO_1 = "device@gpu:0 -> device@gpu:1 by copy-engine"
GPU_1_TO_0 = "device@gpu:1 -> device@gpu:0 by copy-engine"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return profiles.write(tmp_path / "a.wwp")


def obtained(file: Path) -> MachineModel:
    with Profile.open(file) as profile:
        return obtained_model(profile)


def kept(file: Path) -> MachineModel | None:
    with Profile.open(file) as profile:
        return kept_model(profile)


def test_the_kept_model_equals_the_fitted_one(file: Path, derived_folder: Path) -> None:
    assert kept(file) is None
    found = obtained(file)
    assert kept(file) == found == obtained(file)
    with Profile.open(file) as profile:
        assert found == fitted_model(profile)


def test_a_further_visit_makes_the_model_old(file: Path, derived_folder: Path) -> None:
    obtained(file)
    with WritableProfile.resume(file, {}) as profile:
        profile.commit_visit(profiles.visit(profiles.WHAT, 7, profiles.good().samples))
    assert kept(file) is None


def test_an_interrupted_visit_that_is_measured_makes_the_model_old(
    file: Path, derived_folder: Path
) -> None:
    """The number of visits stays the same."""
    obtained(file)
    with Profile.open(file) as profile:
        (row,) = [row for row in profile.visit_rows() if row.failure_kind == "interrupted"]
        workload = profile.workloads_of([row.series])[row.series]
    with WritableProfile.resume(file, {}) as resumed:
        resumed.commit_visit(profiles.visit(workload, row.block, profiles.good().samples))
    assert kept(file) is None


def test_the_table_of_former_versions_is_not_read(file: Path, derived_folder: Path) -> None:
    plain = obtained(file)
    with sqlite3.connect(file) as connection:
        connection.execute(TABLE["model"].sql())
        connection.execute("INSERT INTO model VALUES (1, 'samples', '{}', 0)")
    connection.close()
    assert kept(file) is None
    assert obtained(file) == plain
    with WritableProfile.resume(file, {}) as profile:
        profile.commit_visit(profiles.visit(profiles.WHAT, 7, profiles.good().samples))
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM model").fetchall() == [(1,)]
    connection.close()


def test_a_profile_without_transfers_has_no_model(tmp_path: Path) -> None:
    profiles.new(tmp_path / "a.wwp").close()
    with pytest.raises(ModelError, match="no transfer was measured alone"):
        obtained(tmp_path / "a.wwp")


def test_a_transfer_that_was_not_measured_has_the_curve_of_an_equivalent_one(file: Path) -> None:
    finder = CurveFinder(obtained(file))
    (own, other) = (finder.of(Workload.parse(f"{t} of 1MiB")) for t in (GPU_0_TO_1, GPU_1_TO_0))
    assert own is not None
    assert own == other
    assert finder.of(Workload.parse("device@gpu:0 -> device@gpu:1 by sm of 1MiB")) is None


def test_the_model_has_a_json_form(file: Path) -> None:
    model = obtained(file)
    assert msgspec.json.decode(msgspec.json.encode(model), type=MachineModel) == model


def test_a_damaged_profile_is_an_error(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE visit SET span = zeroblob(9)")
    connection.close()
    with pytest.raises(ProfileError, match="checksum"):
        obtained(file)
