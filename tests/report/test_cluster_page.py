"""The page of a cluster: the answer first, a matrix per rail, each node by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiles
from analysis.cluster.planted_verdicts import SLOW, nodes, planted
from analysis.cluster.simulated_clusters import failure
from analysis.cluster.stored_clusters import stored_cluster
from verb_output import error
from waywiser.analysis.cluster.summary import summarise_cluster
from waywiser.analysis.cluster.verdict_values import PairTime
from waywiser.cli import run
from waywiser.profile.cluster_folder import ClusterFolder, ClusterResult
from waywiser.render.cluster import cluster_document
from waywiser.render.figures.node_matrix import SCALE_WIDTH, node_matrix, step_of
from waywiser.render.parts import Assessment, Document, Remarks, Sheet
from waywiser.words.cluster import ClusterNode, ClusterPlan

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six nodes with two rails: n3 sends slowly on rail 1, n5 crashes; two have profiles."""
    path = stored_cluster(
        tmp_path_factory.mktemp("cluster") / "c",
        nodes=6,
        rails=2,
        slow={(3, 1, 0): 0.5},
        fail=lambda test: failure("crash", "n5", 5) if "n5" in test.nodes else None,
    )
    made = profiles.write(tmp_path_factory.mktemp("profiles") / "a.wwp", 1)
    with ClusterFolder.resume(path) as stored:
        for node in ("n0", "n3"):
            with stored.new_profile(node) as part:
                part.write_bytes(made.read_bytes())
    return path


def document(count: int = 8) -> Document:
    verdict = planted(nodes(count, {"n03": "slow", "n04": "not reached"}, n04="<b>no</b>"), SLOW)
    members = tuple(ClusterNode(each.node) for each in verdict.nodes)
    result = ClusterResult(ClusterPlan(transport="mpi", seed=0), members, (), {})
    return cluster_document(summarise_cluster(result, verdict), result, None)


def test_the_answer_comes_first() -> None:
    made = document()
    verdict = made.sections[0].blocks[0]
    assert isinstance(verdict, Assessment)
    assert verdict.severity == "error"
    assert verdict.statement.startswith("n03 is 12 % slow")
    (remarks,) = made.sections[1].blocks
    assert isinstance(remarks, Remarks)
    first, second = remarks.remarks
    assert first.devices == ("n03, rail 2 (mlx5_2), sending",)
    assert second.statement == "n04: not reached"
    table = made.sections[2].blocks[0]
    assert isinstance(table, Sheet)
    assert {row.cells[1].text for row in table.rows} == {"ok", "slow", "not reached"}


def test_each_rail_has_a_matrix_with_its_slowest_pairs() -> None:
    (picture,) = document().pictures()
    assert picture.name == "pairs-rail-0"
    assert "Slowest: n00 to n07" in picture.description
    assert picture.data is not None and picture.data.rows[0].cells[3].text == "1.07 ×"
    assert picture.draw().marks


def test_dark_is_slow() -> None:
    steps = [step_of(ratio) for ratio in (0.5, 1.0, 1.04, 1.07, 1.15, 1.3, 1.7, 9.0)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 6)


def test_a_large_matrix_has_few_shapes() -> None:
    verdict = planted(nodes(64))
    names = [each.node for each in verdict.nodes]
    pair = verdict.pairs[0]
    pairs = [type(pair)(a, b, 0, 0.001, 1.0, 1) for a in names for b in names if a != b]
    assert len(node_matrix(0, names, pairs).draw().marks) < 400


def test_report_takes_the_folder_of_a_survey(folder: Path, tmp_path: Path, capsys: Output) -> None:
    page = tmp_path / "c.html"
    assert run(["report", str(folder), "-o", str(page)]) == 0
    text = page.read_text()
    assert "n3 is" in text and "sending" in text
    assert "Each node by itself" in text
    assert f"waywiser report {folder}/nodes/" in text
    assert "nodes/n3.wwp" in text
    capsys.readouterr()
    assert run(["report", str(folder), "--format", "md"]) == 0
    assert "n3" in capsys.readouterr().out
    assert run(["report", str(folder), "--figure", "list", "--format", "svg"]) == 0
    assert "pairs-rail-1" in capsys.readouterr().out


def test_text_of_nodes_stays_text() -> None:
    from waywiser.render.page import page

    assert "&lt;b&gt;no&lt;/b&gt;" in page(document())


def test_a_folder_has_a_report_of_its_own(folder: Path, capsys: Output) -> None:
    said = error(["report", str(folder), "x.wwp"], capsys)
    assert f"{folder} is the folder of a cluster survey" in said


def test_a_damaged_folder_is_one_line(tmp_path: Path, capsys: Output) -> None:
    path = stored_cluster(tmp_path / "c", nodes=3)
    (path / "tests.jsonl").write_text("{}\n")
    assert "tests.jsonl" in error(["report", str(path)], capsys)


def test_the_scale_of_a_matrix_of_two_nodes_is_not_cut() -> None:
    pairs = (PairTime("a", "b", 0, 1.0, 1.5, 3), PairTime("b", "a", 0, 0.8, 1.0, 3))
    two, many = (node_matrix(0, names, pairs).draw() for names in ("ab", "abcdefghijklmnopqrst"))
    assert two.width >= SCALE_WIDTH
    assert many.width >= two.width
