"""The page of sets says what the kept surveys give."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from script_module import script_module

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "models" / "sets.md"


@pytest.fixture(scope="module")
def model_sets() -> ModuleType:
    return script_module(ROOT / "benchmarks/model_sets.py")


@pytest.mark.parametrize("part", ["recorded_sets", "grown_machine"])
def test_a_part_of_the_page_is_current(part: str, model_sets: ModuleType) -> None:
    made = "".join(getattr(model_sets, part)())
    assert made in PAGE.read_text(), "run: python benchmarks/model_sets.py -o " + str(PAGE)
