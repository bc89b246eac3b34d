"""The reference of the Python API is current, and everything in it says what it is."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import waywiser
from script_module import script_module
from waywiser import transfer

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def api() -> ModuleType:
    return script_module(DOCS / "api.py")


def test_the_page_is_current(api: ModuleType) -> None:
    remedy = "run: python docs/api.py > docs/api.md"
    assert api.document() == (DOCS / "api.md").read_text(), remedy


def test_every_public_name_is_in_it() -> None:
    page = (DOCS / "api.md").read_text()
    for name in {*waywiser.__all__, "open"} - {"__version__", "VerbResult"}:
        assert f"### waywiser.{name}\n" in page
    assert "### VerbResult\n" in page
    for name in transfer.__all__:
        assert f"### transfer.{name}\n" in page or f"`waywiser.transfer.errors.{name}`" in page


def test_every_call_and_class_says_what_it_is() -> None:
    """Where a docstring is missing, its place is empty."""
    page = (DOCS / "api.md").read_text()
    assert re.findall(r"^.*\n\n\n.*", page, re.MULTILINE) == []
