"""Capacities of whole profiles, and their validation sets."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kept import RESULTS, unpacked
from waywiser.model.capacity import CapacityModelReader
from waywiser.model.curve import fit_curves, times_of
from waywiser.model.errors import ModelError
from waywiser.model.held_out import validated, validation_sets
from waywiser.model.machine_model import profile_capacities
from waywiser.model.timed_sets import TimedSet
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.profile.writable import WritableProfile
from waywiser.words import Workload

TWO = RESULTS / "2026-11-20-h200" / "two-gpus" / "standard.wwp.xz"
BOTH = "PCIe of gpu:*, both directions"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(TWO, tmp_path_factory.mktemp("two") / "two.wwp")


def of_pinned(found: dict[str, float]) -> float:
    return next(rate for method, rate in found.items() if method.startswith("device and pinned"))


def test_both_directions_of_an_h200s_link_carry_less_than_twice_one(two: Path) -> None:
    with Profile.open(two) as profile:
        model = profile_capacities(profile)
    both = {c.method: c.bytes_per_second / 1e9 for c in model.capacities if c.resource == BOTH}
    assert of_pinned(both) == pytest.approx(100, abs=3)


def test_validation_sets_are_predicted_and_not_fitted(two: Path, tmp_path: Path) -> None:
    """All bidirectional copies are held out, so that their limit is not found."""
    with Profile.open(two) as profile:
        series = list(profile.iter_series())
        machine = profile.machine
    held_out = [each.workload.identity for each in series if len(each.workload.transfers) == 2]
    plan = msgspec.json.encode({"validation": held_out})
    with WritableProfile.create(tmp_path / "a.wwp", machine, {}, plan_json=plan) as written:
        for each in series:
            for visit in each.visits:
                written.commit_visit(visit)
    with Profile.open(tmp_path / "a.wwp") as profile:
        frame = SeriesFrame.read(profile)
        model = profile_capacities(profile, frame)
        sets = validation_sets(profile, frame)
    assert {each.workload.identity for each in sets} <= set(held_out)
    assert not [each for each in model.capacities if each.resource == BOTH]
    found = validated(model, sets)
    assert len(found) == len(sets)
    host = [
        each
        for each in found
        if each.timed.workload.bytes == 2**27 and "numa" in str(each.timed.workload)
    ]
    assert len(host) == 4
    assert all(-0.12 < each.error < -0.05 and not each.prediction.is_known for each in host)
    assert all(each.is_in_interval for each in host)
    assert all(len(each.transfer_errors) == 2 for each in host)


def test_sets_without_an_answer_are_left_out(two: Path) -> None:
    with Profile.open(two) as profile:
        model = profile_capacities(profile)
        sets = validation_sets(profile)
    assert sets == []
    unknown = Workload.parse("mapped@file:x -> pageable@numa:0 by cpu of 1MiB")
    assert validated(model, [TimedSet(unknown, (1.0,))]) == []


def test_a_profile_without_transfers_is_one_clear_line(two: Path, tmp_path: Path) -> None:
    with Profile.open(two) as profile:
        machine = profile.machine
    WritableProfile.create(tmp_path / "a.wwp", machine, {}, plan_json=b"{}").close()
    with (
        Profile.open(tmp_path / "a.wwp") as profile,
        pytest.raises(ModelError, match="nothing to model") as error,
    ):
        profile_capacities(profile)
    assert "\n" not in str(error.value)


def test_sets_can_be_predicted_from_fitted_curves_of_single_transfers(two: Path) -> None:
    """Measured sizes have nearly the same times in both."""
    with Profile.open(two) as profile:
        frame = SeriesFrame.read(profile)
        model = profile_capacities(profile, frame)
        curves = {each.text: each for each in fit_curves(times_of(frame, profile.machine))}
    both = " -> device@gpu:0 by copy-engine of 64MiB; device@gpu:1 -> "
    workload = Workload.parse(f"pinned@numa:0{both}pinned@numa:0 by copy-engine of 32MiB")
    curves = {text: curves[text] for text in model.curves if text in curves}
    fitted = CapacityModelReader(model, curves).predicted(workload)
    assert fitted.span == pytest.approx(model.predicted(workload).span, rel=0.03)
