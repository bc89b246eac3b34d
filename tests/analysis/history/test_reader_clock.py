from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from analysis.history.planted_nights import planted
from waywiser.analysis.history.nodes import nodes_of

NIGHTS = 12


def last() -> datetime:
    return datetime.fromisoformat(planted("n1", NIGHTS, 1)[-1].created)


@given(st.integers(0, 100 * 365))
def test_a_reader_whose_clock_is_behind_uses_all_profiles(days: int) -> None:
    surveys = planted("n1", NIGHTS, 1)
    now = max(last() - timedelta(days=days), datetime(1970, 1, 1, tzinfo=UTC))
    (node,), unused = nodes_of(surveys, now)
    assert (len(node.surveys), unused) == (NIGHTS, {})


@given(st.integers(0, 100 * 365))
def test_a_reader_whose_clock_is_ahead_uses_all_profiles(days: int) -> None:
    surveys = planted("n1", NIGHTS, 1)
    (node,), unused = nodes_of(surveys, last() + timedelta(days=days))
    assert (len(node.surveys), unused) == (NIGHTS, {})
