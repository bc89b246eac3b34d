"""The page of sets says what the kept surveys give."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "models" / "sets.md"


@pytest.fixture(scope="module")
def model_sets() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_sets", ROOT / "benchmarks/model_sets.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("part", ["recorded_sets", "grown_machine"])
def test_a_part_of_the_page_is_current(part: str, model_sets: ModuleType) -> None:
    made = "".join(getattr(model_sets, part)())
    assert made in PAGE.read_text(), "run: python benchmarks/model_sets.py -o " + str(PAGE)
