"""What the page about the paper of 2013 says is what its profiles say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from exchange.imports.shared_files import shared
from script_module import script_module
from waywiser.measure.tune.search import SearchAxis, configurations

RESULTS = Path(__file__).parents[1] / "docs" / "results"
STAGED = "pageable@numa:0 -> device@gpu:0 by staged"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    return script_module(RESULTS / "auto_tuning_2013.py")


def test_the_page_is_current(page: ModuleType) -> None:
    text = page.PAGE.read_text()
    assert page.current(text) == text, "run: python docs/results/auto_tuning_2013.py"


def test_its_figures_are_there_and_are_drawn_from_the_profiles(page: ModuleType) -> None:
    text = page.PAGE.read_text()
    for name, drawing in page.figures().items():
        assert (RESULTS / name).read_text() == drawing, (
            "run: python docs/results/auto_tuning_2013.py"
        )
        assert name in text


def test_the_part_about_a_dgx_1_is_current(page: ModuleType) -> None:
    text, folder = page.PAGE.read_text(), shared("dgx-1")
    marks = page.BEGIN_DGX, page.END_DGX
    made = page.current(text, *marks, lambda: page.made_of_dgx(folder))
    assert made == text, "run: python docs/results/auto_tuning_2013.py FOLDER"


def test_what_is_not_measured_is_named(page: ModuleType) -> None:
    for figure in page.FIGURES:
        assert list(figure.today()) or figure.missing, figure.then


def test_a_value_is_shown_with_its_own_best_other_settings(page: ModuleType) -> None:
    axes = (
        SearchAxis("slots", "ordered", ("2", "1")),
        SearchAxis("threads", "ordered", ("4", "1", "8")),
    )
    rates = {("2", "4"): 8e9, ("2", "1"): 3e9, ("2", "8"): 9e9}
    rates |= {("1", "4"): 7e9, ("1", "1"): 2e9, ("1", "8"): 6e9}
    grid = page.StagedGrid(STAGED, 2**24, axes, rates, 1e9)
    assert grid.name == "to the GPU"
    assert grid.over("slots") == {"1": 7e9, "2": 9e9}
    assert list(grid.over("threads")) == ["1", "4", "8"]
    assert grid.gains("slots", "1", "2", threads="1") == [1.5]
    assert grid.gains("slots", "1", "2") == pytest.approx([8 / 7, 1.5, 1.5])


def test_both_grids_of_staged_copies_are_complete(page: ModuleType) -> None:
    to_gpu, from_gpu = page.grids()
    assert (to_gpu.name, from_gpu.name) == ("to the GPU", "from the GPU")
    for grid in (to_gpu, from_gpu):
        assert len(grid.rates) == len(list(configurations(grid.axes)))
        assert next(iter(grid.rates)) == tuple(axis.values[0] for axis in grid.axes)
