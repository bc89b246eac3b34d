"""Validation of a model by what it was not fitted to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import profiles
from kept import RESULTS, unpacked
from model_curves import curve
from waywiser.exchange.imports.profiles import import_files
from waywiser.model.held_out import divided, held_out_sizes, thinned, validation
from waywiser.profile import Profile, WritableProfile

TWO = RESULTS / "2026-11-20-h200" / "two-gpus" / "standard.wwp.xz"
FILES = Path(__file__).parents[1] / "exchange" / "imports" / "data"


def test_every_second_size_is_held_out_and_never_an_end() -> None:
    whole = curve(lambda n: 1e-6 + n / 1e10)
    kept, out = divided(whole)
    assert sorted(kept + out) == list(range(len(whole.blocks.bytes)))
    assert {0, len(whole.blocks.bytes) - 1} <= set(kept)
    assert all(b - a == 2 for a, b in pairwise(out))
    assert thinned(whole, kept).blocks.bytes == [whole.blocks.bytes[n] for n in kept]


def test_a_line_is_predicted_at_sizes_that_were_held_out() -> None:
    found = list(held_out_sizes([curve(lambda n: 1e-6 + n / 1e10)]))
    assert len(found) > 10
    assert all(abs(each.error) < 0.05 for each in found)
    assert all(each.is_in_interval for each in found)


def test_links_of_an_h200_are_predicted(tmp_path: Path) -> None:
    with Profile.open(unpacked(TWO, tmp_path / "a.wwp")) as profile:
        found = validation(profile)
    (links,) = [row for row in found.rows if row.what == "size, link"]
    assert links.number >= 50
    assert links.median < 0.02
    assert links.coverage is not None and links.coverage > 0.85
    assert found.notes == ("the profile has no validation sets: survey the machine with --model",)


def test_validation_sets_are_predicted(tmp_path: Path) -> None:
    with Profile.open(unpacked(TWO, tmp_path / "a.wwp")) as profile:
        series = list(profile.iter_series())
        machine = profile.machine
    sets = [each for each in series if len(each.workload.transfers) == 2]
    of_gpus = [e for e in sets if all(p.kind == "gpu" for p in e.workload.places)]
    plan = msgspec.json.encode({"validation": [each.workload.identity for each in of_gpus[:2]]})
    with WritableProfile.create(tmp_path / "b.wwp", machine, {}, plan_json=plan) as written:
        for each in series:
            for visit in each.visits:
                written.commit_visit(visit)
    with Profile.open(tmp_path / "b.wwp") as profile:
        found = validation(profile)
    (row,) = [row for row in found.rows if row.what == "set of GPUs"]
    assert row.number == len(found.sets) == 2
    assert row.worst < 0.2


def test_numbers_of_messages_are_held_out(tmp_path: Path) -> None:
    names = ("ping_pong", "mult_pong")
    import_files([FILES / f"benchpress_{n}.out" for n in names], tmp_path / "a.wwp")
    with Profile.open(tmp_path / "a.wwp") as profile:
        found = validation(profile)
    assert all("message" in row.what for row in found.rows)


def test_a_profile_with_nothing_to_hold_out_says_so(tmp_path: Path) -> None:
    profiles.new(tmp_path / "a.wwp").close()
    with Profile.open(tmp_path / "a.wwp") as profile:
        found = validation(profile)
    assert found.rows == ()
    assert "no curve has sizes that can be held out" in found.notes


@pytest.mark.parametrize("count", [1, 2])
def test_curves_of_few_sizes_are_not_held_out(count: int) -> None:
    few = curve(lambda n: 1e-6 + n / 1e10, sizes=[2**n for n in range(10, 10 + count)])
    assert list(held_out_sizes([few])) == []
