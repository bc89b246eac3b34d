"""One bandwidth of a path at a size, whatever view of a profile shows it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from statistics import geometric_mean

import pytest
from rich.console import Console

from kept import RESULTS, unpacked
from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.curve import outliers_text
from waywiser.curves.overview import overview
from waywiser.curves.subject import read_subject
from waywiser.notebook.comparison_view import compare_profiles
from waywiser.notebook.profile_view import ProfileView, read_profile
from waywiser.profile import Profile
from waywiser.render.assessment import assess
from waywiser.render.chapters.headlines import headlines
from waywiser.render.entry import read
from waywiser.render.parts import Sheet
from waywiser.render.terminal import print_parts
from waywiser.render.views.comparison import comparison_parts
from waywiser.render.views.profile import profile_parts
from waywiser.words.number_format import format_rate

CHECKS = RESULTS / "2026-11-22-check-two-gpus"
SURVEYS = RESULTS / "2026-11-23-surveys"

FIGURES = re.compile(r"before ([0-9.]+) (\S+); now ([0-9.]+) (\S+); change ([-+0-9.]+)%")
UNITS = {"GB/s": 1e-9, "ns": 1e9, "us": 1e6, "µs": 1e6, "ms": 1e3, "s": 1.0}


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
    return {line.text: line.estimate.median for line in view.overview.series if line.estimate}


def test_compare_has_the_times_that_show_has(files: list[Path], pair: list[ProfileView]) -> None:
    before, now = map(medians, pair)
    found = compare(*([read_subject(file)] for file in files[:2]))
    sizes = [size for path in found.measured for part in path.parts for size in part.sizes]
    assert len(sizes) == len(before) == 11
    for size in sizes:
        assert size.seconds_before == pytest.approx(before[size.series], rel=1e-12)
        assert size.seconds_now == pytest.approx(now[size.series], rel=1e-12)


def test_no_view_uses_a_process_that_is_an_outlier(tmp_path: Path) -> None:
    """One of eight processes moved D2H at 25 GB/s instead of 55: another user of the machine."""
    busy, quiet = (
        unpacked(RESULTS / f"2026-11-23-surveys/{name}.wwp.xz", tmp_path / f"{name}.wwp")
        for name in ("h100-busy-check-1b", "h100-check-1")
    )
    view = read_profile(busy)
    d2h = next(line for line in view.overview.series if line.name.startswith("device@gpu:0 ->"))
    assert d2h.estimate is not None and d2h.estimate.relative is not None
    assert len(d2h.estimate.blocks) == 8 and len(d2h.estimate.outliers) == 1
    assert d2h.estimate.relative < 0.02
    found = compare([read_subject(quiet)], [read_subject(busy)])
    sizes = {size.series: size for path in found.measured for p in path.parts for size in p.sizes}
    assert sizes[d2h.text].seconds_now == pytest.approx(d2h.estimate.median, rel=1e-12)
    assert outliers_text(view.overview.series) == (
        "1 of 8 processes is an outlier and not used, in 1 of 3 series"
    )
    assert assess(read([busy])[0]).quality.endswith(
        "; 1 of 8 processes is an outlier and not used, in 1 of 3 series"
    )
    shown = io.StringIO()
    with Profile.open(busy) as profile:
        print_parts(Console(file=shown, width=200), profile_parts(profile, overview(profile)))
    assert "p  1 of 8 processes is an outlier and not used, in 1 of 3 series: " in shown.getvalue()
    assert "55.1  ±1.1 %" in shown.getvalue()


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
    for cell, first in zip(h2d.cells[1:3], firsts, strict=True):
        known = (first.gb_per_s_high - first.gb_per_s_low) / 2 / first.gb_per_s
        assert cell.text == format_rate(first.gb_per_s * 1e9, known)
    change = firsts[1].gb_per_s / firsts[0].gb_per_s - 1
    assert f"({change * 100:.1f} %)".replace("-", "−") in h2d.cells[2].note


def test_three_surveys_have_the_geometric_mean_of_their_medians(files: list[Path]) -> None:
    sides = [[read_subject(file) for file in files[:3]], [read_subject(files[3])]]
    views = [medians(read_profile(file)) for file in files]
    for path in compare(*sides).measured:
        for part in path.parts:
            for size in part.sizes:
                middle = geometric_mean([view[size.series] for view in views[:3]])
                assert size.seconds_before == pytest.approx(middle, rel=1e-12)
                assert size.seconds_now == pytest.approx(views[3][size.series], rel=1e-12)


def rounded(text: str, unit: str) -> tuple[float, float]:
    """What a printed figure can have been, in B/s or seconds."""
    whole, _, decimals = text.partition(".")
    zeros = 0 if decimals else len(whole) - len(whole.rstrip("0"))
    half = 0.5 * 10.0 ** (zeros - len(decimals))
    return (float(text) - half) / UNITS[unit], (float(text) + half) / UNITS[unit]


@pytest.mark.parametrize(
    ("base", "now", "paths"),
    [
        ("h100-standard-1", ("h100-standard-2",), 40),
        ("h100-check-1", ("h100-check-2", "h100-check-3"), 3),
    ],
)
def test_a_printed_change_is_the_ratio_of_the_two_figures_beside_it(
    tmp_path: Path, base: str, now: tuple[str, ...], paths: int
) -> None:
    before, *after = (
        read_subject(unpacked(SURVEYS / f"{name}.wwp.xz", tmp_path / f"{name}.wwp"))
        for name in (base, *now)
    )
    found = compare([before], after)
    for path in found.measured:
        for part in path.parts:
            assert part.decision in [size.decision for size in part.sizes]
            for size in part.sizes:
                ratio = size.seconds_before / size.seconds_now
                assert size.decision.ratio == pytest.approx(ratio, rel=1e-9)
    output = io.StringIO()
    print_parts(Console(file=output, width=80), comparison_parts(found, everything=True))
    rows = FIGURES.findall(" ".join(output.getvalue().split()))
    assert len(rows) == len(found.measured) >= paths
    for was, unit, value, unit_now, percent in rows:
        (low, high), (low_now, high_now) = rounded(was, unit), rounded(value, unit_now)
        least, most = low_now / high, high_now / low
        assert least - 0.00051 <= 1 + float(percent) / 100 <= most + 0.00051
