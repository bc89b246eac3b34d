"""The model that is kept in a profile: when it is used, and when it is fitted again."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

import profiles
from damaging import PARTS, set_part
from waywiser.curves.point import points_of
from waywiser.model import capacity, machine_model
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import CurveFinder, MachineModel, fitted_model, obtained_model
from waywiser.profile import Profile, ProfileError, WritableProfile
from waywiser.profile.checksum import sealed
from waywiser.profile.lock import lock
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Workload

GPU_0_TO_1 = "device@gpu:0 -> device@gpu:1 by copy-engine"
GPU_1_TO_0 = "device@gpu:1 -> device@gpu:0 by copy-engine"


@pytest.fixture(scope="module")
def with_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile that has its model."""
    file = profiles.write(tmp_path_factory.mktemp("kept") / "a.wwp")
    with Profile.open(file) as profile:
        assert obtained_model(profile, keep=True).is_kept
    return file


@pytest.fixture
def file(with_model: Path, tmp_path: Path) -> Path:
    return shutil.copy(with_model, tmp_path / "a.wwp")


def obtained(file: Path, *, keep: bool = False) -> machine_model.ObtainedModel:
    with Profile.open(file) as profile:
        return obtained_model(profile, keep=keep)


def stored_json(file: Path) -> str:
    with Profile.open(file) as profile:
        assert profile.kept_model is not None
        return profile.kept_model.json


def store(file: Path, text: str) -> None:
    """Replaces the text of the kept model, with the right checksum."""
    with sqlite3.connect(file) as connection:
        ((samples,),) = connection.execute("SELECT samples FROM model")
        row = sealed((1, samples, text))
        connection.execute("INSERT OR REPLACE INTO model VALUES (?, ?, ?, ?)", row)
    connection.close()


def test_the_kept_model_equals_the_fitted_one(file: Path) -> None:
    found = obtained(file)
    assert found.is_kept
    assert not found.note
    with Profile.open(file) as profile:
        assert found.model == fitted_model(profile)


def test_a_model_is_kept_only_on_request(tmp_path: Path) -> None:
    plain = profiles.write(tmp_path / "a.wwp")
    before = plain.read_bytes()
    found = obtained(plain)
    assert not found.is_kept
    assert found.note == "the profile has no kept model"
    assert plain.read_bytes() == before


def test_a_kept_model_leaves_all_that_was_measured(file: Path, tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "b.wwp")) as plain, Profile.open(file) as kept:
        assert kept.series() == plain.series()
        assert kept.created != ""
        assert points_of(SeriesFrame.read(kept))


def test_a_further_visit_makes_the_model_old(file: Path) -> None:
    with WritableProfile.resume(file, {}) as profile:
        profile.commit_visit(profiles.visit(profiles.WHAT, 7, profiles.good().samples))
    found = obtained(file)
    assert not found.is_kept
    assert "other samples" in found.note
    assert obtained(file, keep=True).is_kept
    assert not obtained(file).note


def test_an_interrupted_visit_that_is_measured_makes_the_model_old(file: Path) -> None:
    """The number of visits stays the same."""
    with Profile.open(file) as profile:
        (row,) = [row for row in profile.visit_rows() if row.failure_kind == "interrupted"]
        workload = profile.workloads_of([row.series])[row.series]
    with WritableProfile.resume(file, {}) as resumed:
        resumed.commit_visit(profiles.visit(workload, row.block, profiles.good().samples))
    assert "other samples" in obtained(file).note


@pytest.mark.parametrize(
    ("module", "name"), [(machine_model, "RULES"), (machine_model, "SCHEMA"), (capacity, "RULES")]
)
def test_a_model_of_other_rules_is_fitted_again(
    file: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    monkeypatch.setattr(module, name, 99)
    found = obtained(file)
    assert not found.is_kept
    assert "other rules" in found.note


def test_a_model_of_another_machine_is_not_used(file: Path) -> None:
    text = stored_json(file).replace('"hostname":"node7"', '"hostname":"node8"')
    store(file, text)
    assert "another profile" in obtained(file).note


def test_a_changed_byte_of_the_model_is_found(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE model SET json = replace(json, '1', '2')")
    connection.close()
    found = obtained(file)
    assert found.note == "the kept model is damaged"
    assert isinstance(found.model, MachineModel)
    assert obtained(file, keep=True).is_kept


def test_a_table_of_other_columns_is_replaced(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE model")
        connection.execute("CREATE TABLE model (x)")
        connection.execute("INSERT INTO model VALUES (1)")
    connection.close()
    assert not obtained(file).is_kept
    assert obtained(file, keep=True).is_kept


@pytest.mark.parametrize("seed", range(60))
def test_hostile_models_are_used_only_if_they_predict(file: Path, seed: int) -> None:
    """A part of the model is anything else, with the right checksum."""
    rng = random.Random(seed)
    document = json.loads(stored_json(file))
    path: tuple[str | int, ...] = ()
    inside = document
    while isinstance(inside, (dict, list)) and inside and (not path or rng.random() < 0.9):
        key = rng.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))
        path, inside = (*path, key), inside[key]
    store(file, json.dumps(set_part(document, path, rng.choice(PARTS))))
    found = obtained(file).model
    for curve in found.curves:
        predicted = curve.predict(curve.sizes[0] * 2)
        assert predicted is None or 0 < predicted.interval.low <= predicted.interval.high
    workload = Workload.parse(f"{profiles.H2D} of 1MiB; {profiles.D2H} of 1MiB")
    try:
        assert found.capacities.predicted(workload).span > 0
    except ModelError as error:
        assert str(error)


def test_a_file_of_another_user_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = profiles.write(tmp_path / "a.wwp")
    before = plain.read_bytes()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    found = obtained(plain, keep=True)
    assert not found.is_kept
    assert found.note == "the model is not kept: belongs to another user"
    assert plain.read_bytes() == before


def test_a_file_that_a_survey_writes_to_is_not_written(tmp_path: Path) -> None:
    plain = profiles.write(tmp_path / "a.wwp")
    held = lock(plain)
    try:
        found = obtained(plain, keep=True)
    finally:
        os.close(held)
    assert "another survey is writing to it" in found.note
    assert not found.is_kept


def test_a_profile_without_transfers_has_no_model(tmp_path: Path) -> None:
    profiles.new(tmp_path / "a.wwp").close()
    with pytest.raises(ModelError, match="no transfer was measured alone"):
        obtained(tmp_path / "a.wwp")


def test_a_transfer_that_was_not_measured_has_the_curve_of_an_equivalent_one(file: Path) -> None:
    finder = CurveFinder(obtained(file).model)
    (own, other) = (finder.of(Workload.parse(f"{t} of 1MiB")) for t in (GPU_0_TO_1, GPU_1_TO_0))
    assert own is not None
    assert own == other
    assert finder.of(Workload.parse("device@gpu:0 -> device@gpu:1 by sm of 1MiB")) is None


def test_the_model_has_a_json_form(file: Path) -> None:
    model = obtained(file).model
    assert msgspec.json.decode(msgspec.json.encode(model), type=MachineModel) == model


def test_a_damaged_profile_is_an_error(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE visit SET span = zeroblob(9)")
        connection.execute("DROP TABLE model")
    connection.close()
    with pytest.raises(ProfileError, match="checksum"):
        obtained(file)
