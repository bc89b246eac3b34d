"""A cluster as text: the answer first, each finding with its evidence, then tables."""

from __future__ import annotations

import io

import msgspec
from msgspec.structs import replace
from rich.console import Console

from analysis.cluster.planted_verdicts import COUNTED, GROUP, SLOW, nodes, planted
from tree import ROOT
from waywiser.analysis.cluster.summary import ClusterSummary, summarise_cluster
from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.analysis.cluster.verdict_values import ClusterVerdict, NodeGroup
from waywiser.profile.cluster_folder import ClusterResult
from waywiser.render.terminal import print_parts
from waywiser.render.views.cluster import cluster_parts
from waywiser.words.cluster import ClusterNode, ClusterPlan

TUTORIAL = ROOT / "docs" / "tutorials" / "first-hour-with-32-nodes.md"


def summary(verdict: ClusterVerdict) -> ClusterSummary:
    found = [ClusterNode(each.node, versions={"mpi": "5.0"}) for each in verdict.nodes]
    found[-1] = ClusterNode(found[-1].name, versions={"mpi": "4.1"})
    plan = ClusterPlan(transport="mpi", seed=0)
    made = summarise_cluster(ClusterResult(plan, tuple(found), (), {}), verdict)
    return replace(made, tests=sum(each.tests for each in verdict.nodes) // 2)


def lines(verdict: ClusterVerdict) -> list[str]:
    stream = io.StringIO()
    print_parts(Console(file=stream, width=400), cluster_parts(summary(verdict), "c"))
    return stream.getvalue().splitlines()


def test_the_answer_comes_first_and_each_finding_has_its_evidence() -> None:
    group = dict.fromkeys(GROUP.nodes, "slow")
    bad = {**group, "n03": "slow", "n01": "not reached", "n02": "not reached"}
    found = nodes(32, bad, n01="it did not join in 60 s", n02="it did not join in 60 s")  # type: ignore[arg-type]
    said = lines(planted(found, SLOW, GROUP, COUNTED))
    assert said[0].startswith("n03 is 12 % slow to every node, sending, on rail 2 (mlx5_2); n[16-")
    assert said[1] == "versions differ: mpi: 5.0 on 31 nodes, 4.1 on n31"
    assert said[2] == "17 slow, 2 not reached, 13 ok of 32 nodes; 465 tests over mpi"
    assert (
        said[3] == "smallest slowness of one node that this run finds with 95 % probability: 4.0 %"
    )
    at = said.index(f"× {SLOW.text}")
    assert said[at + 1] == "    8 tests: 12 % slower, 95 % interval 10 % to 14 %"
    assert said[at + 2].startswith("    to do: keep the node off jobs")
    at = said.index(f"× {GROUP.text}")
    assert said[at + 1] == "    1.30 × the usual time (1.25–1.36 with 95 %), 240 tests"
    assert "× n[01-02]: not reached: it did not join in 60 s" in said
    assert said.count("Groups") == 1
    assert any(line.startswith("left ") and "n[00-15]" in line for line in said)
    assert "Groups from --groups." in said


def test_counters_alone_are_one_line() -> None:
    names = [f"n{n:02}" for n in range(8)]
    counted = [cluster_finding("errors counted", (name,), f"{name} counted") for name in names]
    said = lines(planted(nodes(8, {"n03": "slow"}), SLOW, *counted))
    assert "i n03 counted" in said
    assert "i n[00-02,04-07] counted errors of interfaces since their drivers were loaded" in said
    assert "i n04 counted" not in said


def test_a_finding_of_a_test_does_not_hide_the_reason_of_its_nodes() -> None:
    whole = cluster_finding(
        "collective slow", ("n00", "n01"), "the collective is slow", (2.0, 0.0, 0.0)
    )
    found = nodes(2, {"n00": "not decided"}, n00="it stands out")
    said = lines(planted(found, whole))
    assert "? the collective is slow" in said
    assert "? n00: not decided: it stands out" in said


def test_rails_and_pairs_are_tables() -> None:
    said = lines(planted(nodes(8)))
    rail = said[said.index("Rails") + 2].split()
    assert rail == ["0", "mlx5_0", "1.00", "ms", "45.0", "90%", "4.0%"]
    assert said[said.index("Slowest pairs") + 2].split()[:3] == ["n00", "n07", "0"]


def test_of_many_groups_the_slowest_are_listed() -> None:
    groups = tuple(NodeGroup(f"leaf{n}", (f"n{n:02}",), 1 + n / 100) for n in range(32))
    said = lines(replace(planted(nodes(32)), groups=groups))
    assert said[said.index("Groups") + 2].split()[0] == "leaf31"
    assert "Groups from --groups. 16 more are not shown." in said


def test_a_survey_that_is_not_complete_says_how_to_go_on() -> None:
    said = lines(planted(nodes(8), complete=False))
    assert said[0].startswith("until now none of 8 tested nodes")
    assert any(line.endswith("waywiser cluster survey -o c --resume") for line in said)


def test_nothing_is_said_of_what_is_not_known() -> None:
    said = lines(ClusterVerdict(nodes=nodes(1, {"n00": "not decided"})[:1]))  # type: ignore[arg-type]
    assert said[0] == "nothing is known: no test between nodes has finished; no pair was tested"
    assert "Rails" not in said
    assert "Groups" not in said


def test_json_has_the_whole_summary() -> None:
    found = summary(planted(nodes(8, {"n03": "slow"}), SLOW))
    assert msgspec.json.decode(msgspec.json.encode(found), type=ClusterSummary) == found


def test_the_tutorial_shows_what_is_printed() -> None:
    """To write it anew: put the text of the assertion between the marks."""
    found = nodes(32, {"n03": "slow", "n17": "not reached"}, n17="it did not join in 60 s")
    said = lines(planted(found, SLOW))
    del said[1]  # versions differ
    del said[said.index("") :]
    shown = TUTORIAL.read_text().split("<!-- example -->")[1].split("<!-- end -->")[0]
    assert shown == "\n```\n{}\n```\n".format("\n".join(said))
