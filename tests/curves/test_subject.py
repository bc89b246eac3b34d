"""A subject is the same from a file and from series in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import profiles
from tests.analysis.questions.subjects import curve, of_series, postal, sized, subject

from waywiser.curves.subject import Subject
from waywiser.profile import Profile
from waywiser.words import Place


def test_in_memory_it_is_what_it_is_from_a_file(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        from_file = Subject.of(profile)
        from_memory = of_series(
            profile.machine,
            profile.series(),
            environment=profiles.ENVIRONMENT,
            unsupported_paths=profile.unsupported_paths,
            health=profile.health(),
        )
    assert from_memory.curves == from_file.curves
    assert from_memory.environment == from_file.environment == profiles.ENVIRONMENT
    for field in (
        "series",
        "unsupported_paths",
        "failures",
        "skipped",
        "warnings",
        "visits",
        "summary",
    ):
        assert getattr(from_memory.overview, field) == getattr(from_file.overview, field)


def test_curves_are_grouped_and_in_order_of_size() -> None:
    found = subject(
        curve(profiles.H2D, postal(5e-6, 55e9), (2**20, 8)), curve(profiles.D2H, postal(6e-6, 5e9))
    )
    assert [each.text for each in found.curves] == [profiles.H2D, profiles.D2H]
    first = found.curve(profiles.H2D)
    assert first is not None
    assert [point.bytes for point in first.measured] == [8, 2**20]
    assert first.measured[0].seconds == pytest.approx(5e-6, rel=0.01)
    assert first.at(2**20) is first.measured[1]


def test_a_device_is_named_so_that_it_is_found() -> None:
    found = subject(curve(profiles.H2D, postal(5e-6, 55e9)))
    assert str(found.device(Place("gpu", 1))) == "gpu:1 (0000:02:00.0, GPU-00000001)"
    assert str(found.device(Place("numa", 0))) == "numa:0"


def test_a_layout_takes_whole_units() -> None:
    what = sized("pinned@numa:0 -> device@gpu:0 by sm as list[piece=3000]", 2**20)
    assert what.bytes == 2**20 // 3000 * 3000
