"""One bandwidth of a path at a size, whatever view of a profile shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.comparison.comparison import compare
from waywiser.comparison.node import read_node
from waywiser.notebook.comparison_view import compare_profiles
from waywiser.notebook.profile_view import ProfileView, read_profile
from waywiser.report.chapters.headlines import headlines
from waywiser.report.entry import read
from waywiser.report.parts import Sheet
from waywiser.words.number_format import format_rate

CHECKS = RESULTS / "2026-11-22-check-two-gpus"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pair")
    names = ("check-1", "check-2", "check-3", "check-4")
    return [unpacked(CHECKS / f"{name}.wwp.xz", folder / f"{name}.wwp") for name in names]


@pytest.fixture(scope="module")
def pair(files: list[Path]) -> list[ProfileView]:
    return [read_profile(file) for file in files[:2]]


def medians(view: ProfileView) -> dict[str, float]:
    """The median time of each series, as ``waywiser show`` has it."""
    return {line.workload: line.estimate.median for line in view.overview.series if line.estimate}


def test_compare_has_the_times_that_show_has(files: list[Path], pair: list[ProfileView]) -> None:
    before, now = map(medians, pair)
    found = compare(*([read_node(file)] for file in files[:2]))
    sizes = [size for path in found.measured for part in path.parts for size in part.sizes]
    assert len(sizes) == len(before) == 11
    for size in sizes:
        assert size.seconds_before == pytest.approx(before[size.series], rel=1e-12)
        assert size.seconds_now == pytest.approx(now[size.series], rel=1e-12)


def test_the_headline_bandwidths_of_all_views_are_equal(
    files: list[Path], pair: list[ProfileView]
) -> None:
    compared = {row.path: row for row in compare_profiles(*pair).paths}
    rows = [{row.path: row for row in view.headline()} for view in pair]
    assert len(rows[0]) == 10
    for path, row in rows[0].items():
        assert compared[path].gb_per_s_before == pytest.approx(row.gb_per_s, rel=1e-12)
        assert compared[path].gb_per_s_now == pytest.approx(rows[1][path].gb_per_s, rel=1e-12)
        (size,) = pair[0].curve(path)
        assert size.gb_per_s == row.gb_per_s
    (sheet,) = headlines(read(files[:2])).blocks
    assert isinstance(sheet, Sheet)
    (h2d,) = (row for row in sheet.rows if row.cells[0].text == "H2D, GB/s")
    firsts = [next(row for row in each.values() if row.group == "H2D") for each in rows]
    for cell, first in zip(h2d.cells[1:], firsts, strict=True):
        known = (first.gb_per_s_high - first.gb_per_s_low) / 2 / first.gb_per_s
        assert cell.text == format_rate(first.gb_per_s * 1e9, known)
    change = firsts[1].gb_per_s / firsts[0].gb_per_s - 1
    assert f"({change * 100:.1f} %)".replace("-", "−") in h2d.cells[2].note


def test_several_surveys_have_the_median_of_their_medians(files: list[Path]) -> None:
    sides = [[read_node(file) for file in files[:3]], [read_node(files[3])]]
    views = [medians(read_profile(file)) for file in files]
    for path in compare(*sides).measured:
        for part in path.parts:
            for size in part.sizes:
                middle = sorted(view[size.series] for view in views[:3])[1]
                assert size.seconds_before == pytest.approx(middle, rel=1e-12)
                assert size.seconds_now == pytest.approx(views[3][size.series], rel=1e-12)
