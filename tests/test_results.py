"""Results that are kept stay readable, and their pages say what their profiles hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAGES = sorted(RESULTS.glob("*/README.md"))


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("result_tables", RESULTS / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_results() -> None:
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_says_what_its_profiles_hold(page: Path, tables: ModuleType) -> None:
    assert tables.current(page) == page.read_text(), f"run: python docs/results/tables.py {page}"
