"""One order of statuses holds for all that is measured."""

from __future__ import annotations

import pytest

from waywiser.analysis.cluster.verdict_values import NODE_REASONS
from waywiser.analysis.comparison.checkup import CHECK_REASONS
from waywiser.analysis.comparison.fleet import HOST_REASONS
from waywiser.analysis.comparison.path_change import PATH_REASONS
from waywiser.analysis.history.history import NIGHT_REASONS
from waywiser.notebook.verb_result import exit_code_of
from waywiser.words.status import SEVERITIES, SEVERITY_ORDER, STATUSES, Reason, Status, rank

DECIDED_PATHS = tuple(each for each in PATH_REASONS if each != "not decided")
LISTS = (DECIDED_PATHS, NIGHT_REASONS, HOST_REASONS, NODE_REASONS)


@pytest.mark.parametrize("reasons", [tuple(STATUSES), *LISTS])
def test_the_worst_is_first(reasons: tuple[Reason, ...]) -> None:
    assert sorted(reasons, key=rank) == list(reasons)
    found = [STATUSES[reason] for reason in reasons]
    assert found == sorted(found, reverse=True)


def test_each_reason_is_of_something() -> None:
    of_ranges, of_references = {"below", "normal", "above", ""}, {"not compared"}
    assert set(STATUSES) == of_ranges.union(of_references, CHECK_REASONS, *LISTS)


def test_a_worse_status_is_no_less_grave() -> None:
    severities = [SEVERITY_ORDER.index(SEVERITIES[status]) for status in Status]
    assert severities == sorted(severities)


@pytest.mark.parametrize("status", Status)
def test_only_ok_is_clean_and_only_what_failed_is_a_finding(status: Status) -> None:
    assert (exit_code_of(status) == 0) == (status is Status.OK)
    assert (exit_code_of(status) == 1) == (status is Status.FAILED)
