"""``waywiser predict --crossovers``: what it prints, and what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchpress_jobs import InventedCluster
from verb_output import Output, error, output
from waywiser.exchange.imports.profiles import import_files


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("cluster")
    import_files(InventedCluster(sizes=9).write(folder), folder / "x.wwp", machine="invented")
    return str(folder / "x.wwp")


def test_the_answer_comes_first_and_what_is_not_known_is_said(file: str, capsys: Output) -> None:
    text = output(["predict", file, "--crossovers"], capsys)
    first = text.splitlines()[0]
    assert first.startswith("Messages from a GPU to GPUs of another node, the fastest strategy ")
    assert "1 message: direct " in first and "4 messages: " in first
    assert "of those measured at each size" in first and "unknown" not in first
    assert "2 processes of the host share the bytes" in text
    assert "Copies between a process and its GPU are on-socket." in text
    assert "unknown from 5 on" in text  # four messages of a GPU were measured
    assert len(output(["predict", file, "--crossovers", "--all"], capsys)) > len(text)


def test_the_same_as_json(file: str, capsys: Output) -> None:
    found = json.loads(output(["predict", file, "--crossovers", "--json"], capsys))
    assert found["processes"] == 2 and found["node"]["ranks"] == 8 and found["node"]["gpus"] == 4
    measured, modelled = found["bases"]
    assert (measured["basis"], modelled["basis"]) == ("measured", "modelled")
    for basis in (measured, modelled):
        assert {"direct", "3-step", "all cores"} <= set(basis["strategies"])
        assert {each["count"] for each in basis["times"]} == set(range(1, 9))
        for each in basis["comparisons"]:
            values = found["counts"] if each["axis"] == "messages" else found["sizes"]
            assert (each["ranges"][0]["low"], each["ranges"][-1]["high"]) == (values[0], values[-1])
    words = ["--processes", "3", "--copies", "off-socket", "--json"]
    more = json.loads(output(["predict", file, "--crossovers", *words], capsys))
    assert (more["processes"], more["copies"]) == (3, "on-node")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--crossovers", "--processes", "0"], "--processes"),
        (["--crossovers", "--processes", "two"], "--processes"),
        (["--crossovers", "--copies", "there"], "write on-socket or on-node"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    file: str, capsys: Output, words: list[str], says: str
) -> None:
    assert says in error(["predict", file, *words], capsys)


def test_a_profile_without_messages_says_what_it_lacks(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "copies.out"
    path.write_text("Memcpy Host To Device:\nCPU 0, GPU 0:\t1.000000e-05\t1.100000e-05\t\n")
    import_files([path], tmp_path / "x.wwp", machine="invented")
    said = error(["predict", str(tmp_path / "x.wwp"), "--crossovers"], capsys)
    assert "has no messages between GPUs of two nodes" in said and "mult_pong" in said


def test_one_job_is_said_and_nothing_is_sure(tmp_path: Path, capsys: Output) -> None:
    import_files(InventedCluster(sizes=6, jobs=1).write(tmp_path), tmp_path / "x.wwp", machine="x")
    text = output(["predict", str(tmp_path / "x.wwp"), "--crossovers"], capsys)
    assert "rest on one job" in text
    tables = text.split("The fastest strategy")[1]
    assert "(surely" not in tables and "nowhere surely" not in tables
