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


def test_the_list_of_results_is_current() -> None:
    contents = script_module(RESULTS / "contents.py")
    assert contents.document() == (RESULTS / "README.md").read_text(), (
        "run: python docs/results/contents.py"
    )


def test_every_result_is_in_the_list() -> None:
    """Each page, and each folder with its page."""
    listed = (RESULTS / "README.md").read_text()
    folders = [
        f
        for f in RESULTS.iterdir()
        if f.is_dir() and f.name not in ("models", "__pycache__") and any(f.iterdir())
    ]
    pages = [f"{folder.name}/README.md" for folder in folders]
    pages += [page.name for page in RESULTS.glob("*.md") if page.name != "README.md"]
    pages += [f"models/{page.name}" for page in RESULTS.glob("models/*.md")]
    assert [page for page in pages if f"({page})" not in listed] == []
