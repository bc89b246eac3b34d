from __future__ import annotations

import pytest

from waywiser.profile.planned import Foreseen, Planned, StoredRequest, planned


def test_readers_see_what_they_ask_for_of_a_plan() -> None:
    text = """{"request": {"preset": "full", "only": ["*"], "seed": 1}, "selection": {},
               "estimate": {"points": 2, "visits": 6}, "waywiser": "1"}"""
    assert planned(text) == Planned(StoredRequest("full", only=("*",)), Foreseen(6))


@pytest.mark.parametrize("text", ["{}", "", "[1]", '{"request": 3}', '{"visits": 7}'])
def test_another_programs_plan_shows_nothing(text: str) -> None:
    assert planned(text) == Planned()
