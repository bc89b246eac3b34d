"""The policies of kept profiles at sizes that they were not made of."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import pytest

from kept import RESULTS
from script_module import script_module
from waywiser.analysis.policy.build import decision_tables, policy_of
from waywiser.analysis.policy.decision_table import DecisionTable, Method
from waywiser.analysis.policy.table import Policy
from waywiser.stats.order import median

pytestmark = pytest.mark.slow

FOLDER = RESULTS / "2026-11-23-policy"


@cache
def script() -> ModuleType:
    return script_module(FOLDER / "held_out.py")


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
    own, *_ = [line for line in lines if line.startswith(f"| {kept.name} |")]
    assert own.replace(kept.name, name) in script().page().splitlines()


@cache
def tables_of(survey: str, tuned: str) -> tuple[Policy, tuple[DecisionTable, ...]]:
    packed = (f"2026-11-23-surveys/{survey}", f"2026-11-23-tuning/live/{tuned}")
    subjects = [script().subject_of(RESULTS / f"{name}.wwp.xz") for name in packed]
    tables = decision_tables(subjects)
    return policy_of(tables, subjects), tables


@pytest.mark.parametrize(
    ("survey", "tuned"), [("h100-standard-3", "h100-tuned"), ("h200-standard-5", "h200-tuned")]
)
@pytest.mark.parametrize(
    ("source", "destination"), [("pageable", "device"), ("device", "pageable")]
)
def test_policies_that_a_gpu_has_shown_to_be_slow_are_not_made_again(
    survey: str, tuned: str, source: str, destination: str
) -> None:
    """The first policies of these profiles had 7 to 18 % less bandwidth than the defaults in
    transfers.md: with `staged` for 4 MiB D2H, and with 4 threads for large D2H on the H100."""
    policy, tables = tables_of(survey, tuned)
    found = policy.class_of(source, destination)
    assert found is not None
    few = found.row(4 * 2**20, 1, 16)
    assert few is not None and few.executor == "copy-engine"
    (table,) = [
        each
        for each in tables
        if (each.kind.source, each.kind.destination, each.count) == (source, destination, 1)
    ]
    usual = table.methods.index(Method("staged", {}))
    for size in (2**28, 2**30):
        row = found.row(size, 1, 16)
        assert row is not None and row.executor == "staged"
        assert int(row.settings["threads"]) >= 8
        at = table.at(size)
        assert at is not None
        default = at.times[usual]
        assert default is not None and at.time.seconds <= 1.02 * default.seconds
