"""``cluster show``: the answer first, lines for schedulers, and one clear line for bad folders."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from analysis.cluster.simulated_clusters import failure
from analysis.cluster.stored_clusters import stored_cluster
from verb_output import error, output
from waywiser.analysis.cluster.summary import ClusterSummary
from waywiser.cli import run
from waywiser.words.cluster import FailedTest, PlannedTest

Output = pytest.CaptureFixture[str]


def crash(test: PlannedTest) -> FailedTest | None:
    return failure("crash", "n5", rank=5) if "n5" in test.nodes else None


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Eight nodes: n3 sends at half speed, n5 crashes."""
    folder = tmp_path_factory.mktemp("cluster") / "c"
    return str(stored_cluster(folder, slow={(3, -1, 0): 1.0}, fail=crash))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(stored_cluster(tmp_path_factory.mktemp("cluster") / "c"))


def test_the_answer_names_the_bad_nodes(slow: str, capsys: Output) -> None:
    assert run(["cluster", "show", slow]) == 1
    first, counts, *_ = capsys.readouterr().out.splitlines()
    assert "n3" in first and "n5" in first
    assert counts.startswith("1 failed, 1 slow, 6 ok of 8 nodes; ")


def test_a_healthy_cluster_is_0(healthy: str, capsys: Output) -> None:
    assert run(["cluster", "show", healthy]) == 0
    said = capsys.readouterr().out
    assert said.startswith("none of 8 tested nodes hangs or is slow by ")
    assert "; all 28 pairs of 8 nodes were tested, and no pair is slow by " in said
    assert "\n8 ok of 8 nodes; " in said
    assert "with 95 %" in said


def test_a_survey_that_is_not_complete_is_3(tmp_path: Path, capsys: Output) -> None:
    folder = str(stored_cluster(tmp_path / "c", tests=6))
    assert run(["cluster", "show", folder]) == 3
    assert f"waywiser cluster survey -o {folder} --resume" in capsys.readouterr().out


def test_json_has_the_summary(slow: str, capsys: Output) -> None:
    assert run(["cluster", "show", slow, "--json"]) == 1
    found = msgspec.json.decode(capsys.readouterr().out, type=ClusterSummary)
    assert {each.node for each in found.verdict.nodes if each.verdict != "ok"} == {"n3", "n5"}
    assert found.severity == "error"
    assert found.failed_tests


def test_lists_for_schedulers_are_printed_alone(slow: str, capsys: Output) -> None:
    assert output(["cluster", "show", slow, "--exclude"], capsys) == "n[3,5]\n"
    assert output(["cluster", "show", slow, "--good-hosts"], capsys).split() == (
        ["n0", "n1", "n2", "n4", "n6", "n7"]
    )
    lines = output(["cluster", "show", slow, "--drain"], capsys).splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["scontrol", "update", "NodeName=n5"],
        ["scontrol", "update", "NodeName=n3"],
    ]


def test_nothing_is_excluded_from_a_healthy_cluster(healthy: str, capsys: Output) -> None:
    assert output(["cluster", "show", healthy, "--exclude"], capsys) == ""
    assert output(["cluster", "show", healthy, "--drain"], capsys) == ""


def test_several_lists_follow_one_another(slow: str, capsys: Output) -> None:
    lines = output(["cluster", "show", slow, "--drain", "--exclude"], capsys).splitlines()
    assert lines[0] == "n[3,5]" and lines[1].startswith("scontrol update NodeName=n5 ")
    both = json.loads(
        output(["cluster", "show", slow, "--good-hosts", "--drain", "--json"], capsys)
    )
    assert both["good_hosts"] == ["n0", "n1", "n2", "n4", "n6", "n7"]
    assert both["drain"] == lines[1:] and "exclude" not in both


@pytest.mark.parametrize("kind", ["missing", "empty", "file", "plan", "nodes", "tests"])
def test_a_folder_that_is_none_is_one_line(tmp_path: Path, capsys: Output, kind: str) -> None:
    folder = tmp_path / "c"
    if kind == "empty":
        folder.mkdir()
    elif kind == "file":
        folder.write_text("x")
    elif kind != "missing":
        stored_cluster(folder, nodes=3)
        name = {"plan": "plan.json"}.get(kind, f"{kind}.jsonl")
        (folder / name).write_bytes(b"\x00\xff{\n" + b"[" * 5000 + b"\n")
    assert str(folder) in error(["cluster", "show", str(folder)], capsys)


def test_a_torn_last_line_is_of_a_run_that_goes_on(tmp_path: Path, capsys: Output) -> None:
    folder = stored_cluster(tmp_path / "c", nodes=3)
    with (folder / "tests.jsonl").open("ab") as file:
        file.write(b'{"test": {"phase"')
    assert run(["cluster", "show", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("none of 3 tested nodes")


def test_an_empty_survey_knows_nothing(tmp_path: Path, capsys: Output) -> None:
    folder = stored_cluster(tmp_path / "c", nodes=3, tests=0)
    assert run(["cluster", "show", str(folder)]) == 3
    assert capsys.readouterr().out.startswith("nothing is known")
