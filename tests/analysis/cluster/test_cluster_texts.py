"""Verdicts about clusters in words: the answer, its severity, what was measured."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace
from planted_verdicts import COUNTED, CRASH, GROUP, SLOW, nodes, planted

from waywiser.analysis.cluster.texts import (
    REMEDIES,
    SEVERITIES,
    answer,
    counts_text,
    detectable_text,
    finding_remedy,
    has_finding,
    measured_text,
    severity_of,
)
from waywiser.analysis.cluster.verdict_values import (
    ClusterFinding,
    ClusterVerdict,
    FindingKind,
    NodeVerdict,
)


def test_every_kind_of_finding_has_a_remedy_and_a_severity() -> None:
    assert set(REMEDIES) == set(SEVERITIES) == set(get_args(FindingKind))


def test_the_answer_names_what_is_slow() -> None:
    found = planted(nodes(8, {"n03": "slow"}), SLOW, COUNTED)
    assert answer(found) == SLOW.text
    assert severity_of(found) == "error"
    assert has_finding(found)
    assert counts_text(found) == "1 slow, 7 ok of 8 nodes"


def test_the_answer_names_nodes_without_findings() -> None:
    found = planted(nodes(8, {"n01": "not reached", "n02": "not reached", "n04": "stuck"}))
    assert answer(found) == "n04 is stuck; n[01-02] are not reached"
    assert severity_of(found) == "error"


def test_the_answer_is_short_whatever_was_found() -> None:
    found = planted(nodes(32, {"n06": "excluded"}), CRASH, SLOW, GROUP)
    assert answer(found).endswith("fast among themselves; and 1 more finding")


def test_the_answer_quotes_the_begin_of_a_long_failure() -> None:
    found = planted(nodes(8, {"n05": "failed"}), replace(CRASH, text=f"n05 fails: {'x' * 5000}"))
    assert answer(found).startswith("n05 fails: xxx") and answer(found).endswith("x…")
    assert len(answer(found)) < 200


def test_a_healthy_cluster_is_said_to_be() -> None:
    found = planted(nodes(8), COUNTED)
    assert answer(found) == "no node, pair or group is slow, and none hangs"
    assert (severity_of(found), has_finding(found)) == ("info", False)
    assert detectable_text(found).endswith("with 95 % probability: 4.0 %")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (planted(nodes(8), complete=False), "until now no node"),
        (planted(nodes(2, {"n00": "pair", "n01": "pair"})), "n00 and n01 pass; with two nodes"),
        (planted(nodes(8, {"n01": "not decided"})), "not decided: n01 may be slow"),
        (ClusterVerdict(nodes=()), "nothing is known"),
        (ClusterVerdict(nodes=(NodeVerdict("n0", "not decided"),)), "nothing is known"),
    ],
)
def test_what_is_open_is_neither_healthy_nor_a_finding(found: ClusterVerdict, says: str) -> None:
    assert answer(found).startswith(says)
    assert severity_of(found) == "warning"
    assert not has_finding(found)


def test_two_nodes_that_are_slow_blame_neither() -> None:
    slow = ClusterFinding("slow pair", ("n00", "n01"), "n00 and n01 are slow to one another")
    found = planted(nodes(2, {"n00": "pair", "n01": "pair"}), slow)
    assert answer(found) == slow.text
    assert has_finding(found)


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (SLOW, "1.12 × the usual time (1.10–1.14 with 95 %), 8 tests"),
        (CRASH, "3 tests"),
        (COUNTED, ""),
        (
            ClusterFinding("below interface rate", ("n1",), "", ratio=0.42, tests=9),
            "42% of the rate, 9 tests",
        ),
        (
            ClusterFinding("collective slow", ("n1",), "", ratio=1.5, tests=1),
            "1.50 × the predicted time, 1 test",
        ),
    ],
)
def test_what_was_measured_has_ratio_interval_and_tests(finding: ClusterFinding, text: str) -> None:
    assert measured_text(finding) == text


def test_too_few_tests_find_no_slowness() -> None:
    assert "too few tests" in detectable_text(planted(nodes(3), smallest=0.0))


@pytest.mark.parametrize("kind", get_args(FindingKind))
def test_a_remedy_names_no_transport_that_the_run_does_not_have(kind: FindingKind) -> None:
    assert "UCX" not in finding_remedy(kind, "nccl")
    for transport in ("mpi", "simulated", ""):
        assert "NCCL" not in finding_remedy(kind, transport)
        assert "rings" not in finding_remedy(kind, transport)
