from __future__ import annotations

from pathlib import Path

import pytest

import profiles
from waywiser.cli.figure_range import range_of, range_text
from waywiser.profile import Profile
from waywiser.series.line import Line
from waywiser.series.overview import overview
from waywiser.words.number_format import format_rate


@pytest.mark.parametrize(
    ("ordered", "text"),
    [
        ([], ""),
        (["55.2"], "55.2"),
        (["55.2", "55.4", "55.6"], "55.2–55.6"),
        (["88%", "88%"], "88%"),
        (["2.2 µs", "8.6 µs"], "2.2–8.6 µs"),
        (["900 ns", "1.2 µs"], "900 ns–1.2 µs"),
        (["8 B", "64 KiB"], "8 B–64 KiB"),
        (["64 MiB", "256 MiB"], "64–256 MiB"),
        (["76%", "88%"], "76–88%"),
    ],
)
def test_a_range_has_its_unit_once(ordered: list[str], text: str) -> None:
    assert range_text(ordered) == text


def rate(line: Line) -> float | None:
    return line.estimate.rate.value if line.estimate and line.estimate.rate else None


def test_both_ends_have_the_digits_that_the_wider_interval_allows(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        lines = {line.workload: line for line in overview(profile).series}
    sharp = lines[f"{profiles.H2D} of {2**30}"]
    wide = lines[f"{profiles.HOST} of {2**20}"]
    assert range_of([sharp], rate, format_rate) == "55.01"
    assert range_of([sharp, wide], rate, format_rate) == "10–60"
    assert range_of([lines["empty-interval@gpu:0"]], rate, format_rate) == ""
