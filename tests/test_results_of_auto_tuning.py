"""What the page about the paper of 2013 says is what its profiles say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from analysis.subjects import curve, postal, subject
from imports.shared_files import shared

RESULTS = Path(__file__).parents[1] / "docs" / "results"
STAGED = "pageable@numa:0 -> device@gpu:0 by staged"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "auto_tuning_2013", RESULTS / "auto_tuning_2013.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["auto_tuning_2013"] = module
    spec.loader.exec_module(module)
    return module


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


def test_grids_of_buffers_are_used_if_a_profile_has_them(page: ModuleType) -> None:
    sizes = (2**20, 2**24)
    found = [
        curve(f"{STAGED}[slots={n}]", postal(1e-5, rate), sizes)
        for n, rate in ((1, 5e9), (2, 10e9), (4, 12e9))
    ]
    found += [
        curve(f"{STAGED}[chunk={n}]", postal(1e-5, rate), sizes)
        for n, rate in ((2**16, 3e9), (2**20, 9e9), (2**22, 12e9))
    ]
    found += [curve(f"{STAGED}[slots={n},threads=1]", postal(1e-5, 1e9), sizes) for n in (1, 2, 4)]
    grid = subject(*found)
    slots = list(page.over_setting(page.SLOTS, [grid]))
    assert len(slots) == 2, "with the other settings of the fastest curve"
    assert "best with slots=4" in slots[1] and "slots=1 reaches 42% of it" in slots[1]
    chunks = list(page.over_setting(page.CHUNK, [grid]))
    assert "best with chunk=4 MiB" in chunks[1] and "chunk=64 KiB reaches 25% of it" in chunks[1]
    drawn = page.setting_figures([grid])
    assert set(drawn) == {page.SLOTS.file, page.CHUNK.file}
    assert "slots=2" in drawn[page.SLOTS.file] and "chunk=1 MiB" in drawn[page.CHUNK.file]
    assert list(page.over_setting(page.SLOTS, [])) == []
