"""Results that are kept stay readable, and their pages say what their profiles hold."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from script_module import script_module

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAGES = sorted(RESULTS.glob("*/README.md"))


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    return script_module(RESULTS / "tables.py")


def test_there_are_results() -> None:
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_says_what_its_profiles_hold(page: Path, tables: ModuleType) -> None:
    assert tables.current(page) == page.read_text(), f"run: python docs/results/tables.py {page}"
