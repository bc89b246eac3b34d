"""Healthy nodes, and nodes with one slow path, under 1 % of noise between nights, as
`benchmarks/night_noise.py` measures them by the thousand."""

from __future__ import annotations

import pytest

from kept import unpacked
from script_module import script_module
from tree import ROOT
from waywiser.curves.headline import headline
from waywiser.curves.subject import Subject, read_subject

nights = script_module(ROOT / "benchmarks" / "night_noise.py")
NOISE = 0.01
MOST_BY_CHANCE = 2
"""The most of 40 healthy nodes that fail. If one in 300 does, more do in one of 1,000 runs."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return read_subject(unpacked(nights.FOUR, tmp_path_factory.mktemp("nights") / "node.wwp"))


def found(node: Subject, of: int, loss: float, case: tuple[int, int]) -> int:
    known = {series.curve: series.workload for series in node.points}
    headlines = sorted(headline(node.machine, known.values()))
    return sum(nights.is_accused(node, headlines, seed, NOISE, loss, case) for seed in range(of))


@pytest.mark.parametrize("case", [(1, 1), (3, 1)])
def test_healthy_nodes_hardly_ever_fail(node: Subject, case: tuple[int, int]) -> None:
    assert found(node, 40, 0.0, case) <= MOST_BY_CHANCE


@pytest.mark.parametrize(("case", "least"), [((1, 1), 0.4), ((3, 0), 0.5), ((3, 1), 0.85)])
def test_losses_of_five_percent_are_found(
    node: Subject, case: tuple[int, int], least: float
) -> None:
    assert found(node, 40, 0.05, case) >= least * 40


def test_one_survey_beside_one_baseline_is_no_verdict(node: Subject) -> None:
    assert found(node, 10, 0.2, (1, 0)) == 0


def test_a_fleet_names_the_node_with_a_slow_path(node: Subject) -> None:
    slow = "pinned@numa:0 -> device@gpu:1 by copy-engine"
    accused = [nights.fleet_accuses(node, seed, NOISE, slow.__eq__, 0.06) for seed in range(12)]
    assert sum(right for right, _ in accused) >= 8
    assert sum(wrong for _, wrong in accused) <= 1
