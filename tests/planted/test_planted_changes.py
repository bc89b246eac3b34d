"""`check` and `compare` find planted changes, and accuse a healthy node hardly ever."""

from __future__ import annotations

from functools import cache

import pytest

from analysis.comparison import nodes
from planted.changes import slow_group, slow_path, survey
from waywiser.analysis.comparison.checkup import Checkup, check_up

HEALTHY = range(500)
CHANGED = range(100_000, 100_040)


def checked(seed: int, slow: nodes.Slow = lambda _: 1.0) -> tuple[Checkup, Checkup]:
    """A check, and the same after suspected paths were measured again."""
    base, new = survey(3 * seed), survey(3 * seed + 1, slow)
    first = check_up(new, [base])
    if not first.suspects:
        return first, first
    return first, check_up(new, [base], repeats=[survey(3 * seed + 2, slow)])


@cache
def healthy() -> list[tuple[Checkup, Checkup]]:
    return [checked(seed) for seed in HEALTHY]


def test_a_healthy_node_fails_in_less_than_one_of_a_thousand_checks() -> None:
    failed = sum(final.status == "failed" for _, final in healthy())
    assert failed <= 1  # more have a chance of under 10 % at one in a thousand


def test_a_comparison_without_a_change_shows_one_in_at_most_one_of_twenty() -> None:
    found = [first.comparison for first, _ in healthy()]
    alarms = sum(bool(nodes.losses(each) or each.of("improvement")) for each in found)
    assert alarms <= 0.05 * len(HEALTHY)


def test_a_healthy_node_is_rarely_inconclusive() -> None:
    inconclusive = sum(final.status == "inconclusive" for _, final in healthy())
    assert inconclusive <= 0.1 * len(HEALTHY)


@pytest.mark.parametrize(
    ("slow", "names"),
    [
        pytest.param(slow_path(nodes.h2d(1), 1 / 0.95), "gpu:1", id="H2D by 5 %"),
        pytest.param(slow_path(nodes.d2h(1), 1 / 0.95), "gpu:1", id="D2H by 5 %"),
        pytest.param(slow_path(nodes.peer(0, 1), 1 / 0.95), "gpu:0", id="P2P by 5 %"),
        pytest.param(slow_group("bidirectional", 1.25), "<->", id="bidirectional by 20 %"),
        pytest.param(slow_group("host-to-all", 1.25), "host-to-all", id="host-to-all by 20 %"),
        pytest.param(slow_group("all-to-host", 1.25), "all-to-host", id="all-to-host by 20 %"),
    ],
)
def test_a_change_is_found_and_named_in_19_of_20_checks(slow: nodes.Slow, names: str) -> None:
    found = [checked(seed, slow)[1] for seed in CHANGED]
    named = [each.status == "failed" and names in each.findings[0].text for each in found]
    assert sum(named) >= 0.95 * len(CHANGED)
    others = sum(any(names not in finding.text for finding in each.findings) for each in found)
    assert others <= 1
