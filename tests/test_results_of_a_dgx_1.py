"""What the page of the DGX-1 says is what its files say, where they are at hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from exchange.imports.shared_files import shared
from script_module import script_module

RESULTS = Path(__file__).parents[1] / "docs" / "results"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    return script_module(RESULTS / "dgx_1.py")


@pytest.fixture(scope="module")
def imported(page: ModuleType) -> Any:
    return page.imported(shared("dgx-1"))


def test_the_page_is_current(page: ModuleType, imported: Any) -> None:
    text = page.PAGE.read_text()
    assert page.current(text, imported) == text, "run: python docs/results/dgx_1.py FOLDER"


def test_the_chapter_is_agreed_with_but_for_three_claims(page: ModuleType, imported: Any) -> None:
    wrong = [f"{each.where}: {each.says}" for each in page.CLAIMS if not each.found(imported)[0]]
    assert len(page.CLAIMS) == 28
    assert wrong == [
        "affinity: pageable <- GPU: no",
        "anisotropy: pinned: 2 GB/s",
        "pinned copies: 60–70 % of the PCIe 3 x16 bandwidth",
    ]


def test_its_figures_are_there_and_are_drawn_from_the_files(
    page: ModuleType, imported: Any
) -> None:
    for name, drawing in page.figures(imported).items():
        assert (RESULTS / name).read_text() == drawing, "run: python docs/results/dgx_1.py FOLDER"
        assert name in page.PAGE.read_text()
