"""Verdicts about clusters in words: the answer, its severity, what was measured."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from planted_faults import NETWORKS, outcome, plant, simulated
from planted_verdicts import COUNTED, CRASH, GROUP, SLOW, nodes, planted
from simulated_clusters import survey

from waywiser.analysis.cluster.texts import (
    REMEDIES,
    SEVERITIES,
    UNSEEN_SWITCHES,
    answer,
    cluster_finding,
    counts_text,
    detectable_text,
    finding_remedy,
    has_finding,
    measured_text,
    severity_of,
    standing_remedy,
)
from waywiser.analysis.cluster.verdict_values import (
    NODE_REASONS,
    ClusterVerdict,
    NodeVerdict,
)
from waywiser.curves.answer import Finding
from waywiser.words import Reason


def test_every_kind_of_finding_has_a_remedy_and_a_severity() -> None:
    assert set(REMEDIES) == set(SEVERITIES)


def test_the_answer_names_what_is_slow() -> None:
    found = planted(nodes(8, {"n03": "slow"}), SLOW, COUNTED)
    covered = "all 21 pairs of the other 7 nodes were tested"
    covered += ", and no pair is slow by 9.0 % or more or fails"
    assert answer(found) == f"{SLOW.text}; {covered}"
    assert severity_of(found) == "error"
    assert has_finding(found)
    assert counts_text(found) == "1 slow, 7 ok of 8 nodes"


def test_the_answer_names_nodes_without_findings() -> None:
    found = planted(nodes(8, {"n01": "not reached", "n02": "not reached", "n04": "stuck"}))
    assert answer(found).startswith("n04 is stuck; n[01-02] are not reached; all 10 pairs of the ")
    assert severity_of(found) == "error"


def test_the_answer_is_short_whatever_was_found() -> None:
    found = planted(nodes(32, {"n06": "excluded"}), CRASH, SLOW, GROUP)
    assert "fast among themselves; and 1 more finding; all 465 pairs of" in answer(found)


def test_the_answer_quotes_the_begin_of_a_long_failure() -> None:
    found = planted(
        nodes(8, {"n05": "failed"}), replace(CRASH, statement=f"n05 fails: {'x' * 5000}")
    )
    assert answer(found).startswith("n05 fails: xxx") and "x…; all 21 pairs" in answer(found)
    assert len(answer(found)) < 300


def test_a_healthy_cluster_is_said_to_be() -> None:
    found = planted(nodes(8), COUNTED)
    assert answer(found) == (
        "none of 8 tested nodes hangs or is slow by 4.0 % or more; crossing between 2 groups is "
        "not slow; all 28 pairs of 8 nodes were tested, "
        "and no pair is slow by 9.0 % or more or fails"
    )
    assert (severity_of(found), has_finding(found)) == ("info", False)
    assert detectable_text(found).endswith("with 95 % probability: 4.0 %")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (planted(nodes(8), complete=False), "until now none of 8 tested nodes"),
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
    slow = cluster_finding("slow pair", ("n00", "n01"), "n00 and n01 are slow to one another")
    found = planted(nodes(2, {"n00": "pair", "n01": "pair"}), slow)
    assert answer(found) == f"{slow.text}; they were tested with one another alone"
    assert has_finding(found)


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (SLOW, "1.12 × the usual time (1.10–1.14 with 95 %), 8 tests"),
        (CRASH, "3 tests"),
        (COUNTED, ""),
        (
            cluster_finding("below interface rate", ("n1",), "", (0.42, 0.0, 0.0), tests=9),
            "42% of the rate, 9 tests",
        ),
        (
            cluster_finding("collective slow", ("n1",), "", (1.5, 0.0, 0.0), tests=1),
            "1.50 × the predicted time, 1 test",
        ),
    ],
)
def test_what_was_measured_has_ratio_interval_and_tests(finding: Finding, text: str) -> None:
    assert measured_text(finding) == text


@pytest.mark.parametrize("share", [0.9999, 0.31, 0.007, 0.0004])
def test_pairs_that_were_not_tested_are_never_said_to_be_fast(share: float) -> None:
    found = planted(nodes(512), share=share)
    said = answer(found)
    tested = found.coverage.tested
    assert f"({tested:,} of 130,816); a single slow pair would have been missed with " in said
    assert "no pair" not in said and "all " not in said
    shown, missed = (float(each) for each in re.findall(r"([\d.]+) %(?: of|$)", said))
    assert 0 < shown < 100 and 0 < missed < 100
    assert shown + missed == pytest.approx(100)


@pytest.mark.parametrize("smallest", [0.0, 1.2, 2.47])
def test_what_would_hide_a_slow_node_is_not_fine(smallest: float) -> None:
    found = planted(nodes(4), smallest=smallest)
    assert answer(found).startswith("not decided: ")
    assert "none" not in answer(found) and "no pair" not in answer(found)
    assert severity_of(found) == "warning"
    assert not has_finding(found)
    assert (f"{100 * (smallest - 1):.1f} %" in answer(found)) == (smallest > 0)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("smallest", [1.04, 1.3, 0.0])
def test_every_verdict_says_which_pairs_were_tested(
    complete: bool, share: float, smallest: float
) -> None:
    """Each kind of finding and each standing is tried, alone and beside others."""
    findings = [
        cluster_finding(kind, ("n01", "n02"), f"{kind} of n01 and n02", tests=3)
        for kind in tuple(SEVERITIES)
    ]
    chosen = [(), *((each,) for each in findings), tuple(findings)]
    for own in chosen:
        for standing in NODE_REASONS:
            members = nodes(9, {"n00": standing, "n01": standing})
            found = planted(members, *own, complete=complete, smallest=smallest, share=share)
            said = answer(found)
            pairs, tested = found.coverage.pairs, found.coverage.tested
            if not tested:
                assert "no pair" in said and "was tested" in said
            elif tested < pairs:
                assert f"({tested} of {pairs}); a single slow pair would have been missed" in said
            else:
                assert f"all {pairs} pairs of " in said
            may_claim = complete and share == 1 and smallest == 1.04
            assert ("pair is slow by" in said) <= may_claim
            assert not complete or smallest == 1.04 or "none of" not in said


SHUFFLED = next(each for each in NETWORKS if each.name == "2:1, shuffled")


@pytest.mark.parametrize("knows_groups", [True, False])
def test_a_slow_switch_of_unknown_groups_is_found_or_stated(knows_groups: bool) -> None:
    """The times of this cluster show no group: all pairs pass, and one switch is 10 % slow."""
    cluster = simulated(SHUFFLED, 32, 6005)
    expected = plant(cluster, "switch", 0.1)
    found = survey(cluster, cluster.plan(groups=knows_groups, seed=6005)).verdict
    assert not found.findings or knows_groups
    assert (UNSEEN_SWITCHES in answer(found)) is not knows_groups
    result = outcome(found, expected, 0.1)
    assert result.stated and result.right is knows_groups


def test_switches_of_few_nodes_are_not_stated_to_be_unknown() -> None:
    """Up to eight nodes are compared in pairs alone, whatever is below them."""
    cluster = simulated(SHUFFLED, 8, 1)
    assert UNSEEN_SWITCHES not in answer(survey(cluster, cluster.plan(seed=1)).verdict)


def test_too_few_tests_find_no_slowness() -> None:
    assert "too few tests" in detectable_text(planted(nodes(3), smallest=0.0))


@pytest.mark.parametrize("kind", tuple(SEVERITIES))
def test_a_remedy_names_no_transport_that_the_run_does_not_have(kind: str) -> None:
    assert "UCX" not in finding_remedy(kind, "nccl")
    for transport in ("mpi", "simulated", ""):
        assert "NCCL" not in finding_remedy(kind, transport)
        assert "rings" not in finding_remedy(kind, transport)


@pytest.mark.parametrize("standing", [each for each in NODE_REASONS if each not in ("ok", "slow")])
@pytest.mark.parametrize("complete", [False, True])
def test_each_node_that_no_finding_explains_has_something_to_do(
    standing: Reason, complete: bool
) -> None:
    """A slow node always has a finding. One whose agent was killed is ``failed``."""
    found = planted(nodes(9, {"n05": standing}), complete=complete)
    assert len(standing_remedy(standing, found)) > 10


def test_a_pair_alone_was_tested_with_one_another() -> None:
    found = planted(nodes(2, {"n00": "pair", "n01": "pair"}), share=0.0)
    said = answer(found)
    assert said.endswith("they were tested with one another alone") and "no pair" not in said
    assert counts_text(found) == "2 in a pair of 2 nodes"
