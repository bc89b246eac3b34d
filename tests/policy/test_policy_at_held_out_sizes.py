"""The policies of kept profiles at sizes that they were not made of."""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType

import pytest

from kept import RESULTS
from waywiser.stats.order import median

pytestmark = pytest.mark.slow

FOLDER = RESULTS / "2026-11-23-policy"


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("held_out", FOLDER / "held_out.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["H100, first survey", "H200, all executors", "four H200"])
def test_little_is_lost_at_sizes_between(name: str) -> None:
    found, _ = script().read(name)
    assert len(found) >= 10
    assert median([each.regret for each in found]) <= 0.01
    assert not any(each.below_plain for each in found)
    assert sum(each.regret > 0.05 for each in found) <= 0.1 * len(found)


def test_the_page_is_current() -> None:
    assert script().page() == (FOLDER / "README.md").read_text(), (
        "run: python docs/results/2026-11-23-policy/held_out.py"
    )


def test_other_profiles_are_lines_of_the_same_tables() -> None:
    name = "H100, first survey"
    kept = RESULTS / f"{script().PROFILES[name]}.wwp.xz"
    lines = script().lines_of([kept]).splitlines()
    (own,) = [line for line in lines if line.startswith(f"| {kept.name} |")]
    assert own.replace(kept.name, name) in script().page().splitlines()
