"""Errors of interfaces as findings, and as evidence of others."""

from __future__ import annotations

from waywiser.analysis.cluster.error_counters import error_findings, with_new_errors
from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.words.cluster import ClusterNode

OLD = {"mlx5_0 symbol_error": 40, "mlx5_1 link_downed": 1}
NODES = (
    ClusterNode("n1", counters=OLD, new_errors={"mlx5_0 symbol_error": 12}),
    ClusterNode("n2", counters=OLD),
    ClusterNode("n3", counters={"mlx5_0 symbol_error": 0}),
)


def test_errors_during_the_survey_and_before_it_differ() -> None:
    new, old = error_findings(NODES)
    assert (new.id, new.nodes) == ("new errors", ("n1",))
    assert new.text == "interfaces of n1 counted errors during the survey: mlx5_0 symbol_error: 12"
    assert new.evidence[-1] == (
        "since their drivers were loaded: mlx5_0 symbol_error: 40, mlx5_1 link_downed: 1"
    )
    assert (old.id, old.nodes) == ("errors counted", ("n2",))
    assert "during the survey" not in old.text


def test_they_are_evidence_of_what_a_bad_link_may_explain_and_of_nothing_else() -> None:
    slow = cluster_finding("slow node", ("n1",), "n1 is slow", (1.2, 0.0, 0.0), tests=8)
    pair = cluster_finding("slow pair", ("n2", "n1"), "they are slow", evidence=("5 tests",))
    other = cluster_finding("slow node", ("n2",), "n2 is slow", tests=8)
    group = cluster_finding("slow group", ("n1", "n3"), "they share something slow")
    line = "interfaces of n1 counted errors during the survey: mlx5_0 symbol_error: 12"
    first, second, *rest = with_new_errors([slow, pair, other, group], NODES)
    assert first.evidence == ("1.20 × the usual time, 8 tests", line)
    assert second.evidence == ("5 tests", line)
    assert rest == [other, group]
