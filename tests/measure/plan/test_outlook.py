"""The outlook of a plan costs the same work however far its deadline is."""

from __future__ import annotations

import pytest
from machines import machine

from effort import result_and_calls
from waywiser.measure.plan import outlook as module
from waywiser.measure.plan.outlook import Outlook, outlook
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import Request

pytestmark = pytest.mark.usefixtures("scripted")

MINUTE = 60.0


def calls(deadline: float, gpus: int = 1) -> tuple[Outlook, int]:
    request = Request(preset="quick", only=("h2d",), deadline_seconds=deadline)
    plan = make_plan(machine(gpus=gpus), request)
    return result_and_calls(lambda: outlook(plan))


@pytest.fixture
def _played_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAYED_SECONDS", MINUTE)


@pytest.mark.usefixtures("_played_for_a_minute")
def test_a_day_costs_no_more_than_an_hour() -> None:
    (hour, of_hour), (day, of_day) = calls(60 * MINUTE), calls(24 * 60 * MINUTE)
    assert of_day < 1.5 * of_hour
    assert day.visits == pytest.approx(24 * hour.visits, rel=0.02)
    assert 24 * 60 * MINUTE - 10 < day.seconds <= 24 * 60 * MINUTE


@pytest.mark.parametrize("gpus", [1, 2])
def test_what_is_counted_is_what_would_be_played(
    gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, of_all = calls(8 * MINUTE, gpus)
    monkeypatch.setattr(module, "PLAYED_SECONDS", MINUTE)
    counted, of_some = calls(8 * MINUTE, gpus)
    assert counted.seconds == pytest.approx(played.seconds)
    assert (counted.processes, counted.visits) == (played.processes, played.visits)
    assert counted.skipped == played.skipped
    assert of_some < 0.5 * of_all
