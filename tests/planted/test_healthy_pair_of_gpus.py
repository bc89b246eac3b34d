"""Comparisons of five checks of one healthy machine with two GPUs, which were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.subject import Subject, read_subject

LINKS = ("H2D", "D2H", "P2P")
SETS = ("host-to-all", "all-to-host")


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Subject]:
    folder = tmp_path_factory.mktemp("checks")
    kept: Sequence[Path] = sorted((RESULTS / "2026-11-22-check-two-gpus").glob("*.xz"))
    assert len(kept) == 5
    return [read_subject(unpacked(each, folder / each.stem)) for each in kept]


def test_no_pair_shows_a_loss_and_each_says_how_small_a_loss_it_would_find(
    checks: Sequence[Subject],
) -> None:
    gains = 0
    for before, now in combinations(checks, 2):
        found = compare([before], [now])
        assert not found.of("regression", "suspected", "missing")
        gains += len(found.of("improvement"))
        for path in found.measured:
            assert path.detectable is not None
            if path.headline in LINKS:
                assert path.detectable <= 0.04
            if path.headline in SETS:
                assert path.detectable <= 0.15
    assert gains <= 1  # of 110 paths; the five surveys make the pairs depend on each other


def test_each_check_is_ok_against_the_others(checks: Sequence[Subject]) -> None:
    for now in checks:
        base = [each for each in checks if each is not now]
        assert check_up(now, base).status == "ok"
