from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import profiles
from waywiser.cli import run
from waywiser.curves.overview import overview
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.words.records import SUMMARY

DATA = Path(__file__).parents[1] / "imports" / "data"


def exported(file: Path, folder: Path) -> Path:
    target = folder / "out.json"
    arguments = ["export", str(file), "--format", "google-benchmark", "-o", str(target)]
    assert run(arguments) == 0
    return target


def rows(file: Path) -> list[dict[str, Any]]:
    found = json.loads(file.read_text())
    assert set(found) == {"context", "benchmarks"}
    return list(found["benchmarks"])


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("benchmark") / "a.wwp")


def test_a_sample_is_a_repetition_as_plots_of_comm_scope_read_it(
    profile: Path, tmp_path: Path
) -> None:
    name = "Comm_cudaMemcpyAsync_PinnedToGPU/0/0/log2(N):20/manual_time"
    found = [row for row in rows(exported(profile, tmp_path)) if row["run_name"] == name]
    first, last = found[0], found[-1]
    expected = {"name", "run_type", "iterations", "real_time", "time_unit", "bytes_per_second",
              "bytes", "label"}  # fmt: skip
    assert expected <= set(first)
    assert first["run_type"] == "iteration" and first["time_unit"] == "ns"
    assert first["bytes"] == 2**20 and (first["cuda_id"], first["numa_id"]) == (0, 0)
    assert first["bytes_per_second"] == pytest.approx(2**20 / first["real_time"] * 1e9)
    assert [row["repetition_index"] for row in found[:-1]] == list(range(len(found) - 1))
    assert (last["run_type"], last["aggregate_name"]) == ("aggregate", "median")
    assert last["name"] == f"{last['run_name']}_median"


def medians(file: Path) -> dict[str, tuple[float, bool]]:
    with Profile.open(file) as opened:
        return {
            line.text: (line.estimate.median, line.estimate.interval is None)
            for line in overview(opened).series
            if line.estimate is not None
        }


@pytest.mark.parametrize("source", ["survey", "commscope.json", "nvbandwidth.json", "nccl.json"])
def test_there_and_back_keeps_medians(source: str, profile: Path, tmp_path: Path) -> None:
    first, again = profile, tmp_path / "again.wwp"
    if source != "survey":
        first = tmp_path / "first.wwp"
        import_files([DATA / source], first)
    import_files([exported(first, tmp_path)], again)
    expected, found = medians(first), medians(again)
    assert set(found) == set(expected)
    for text, (middle, bare) in expected.items():
        assert found[text] == (pytest.approx(middle, rel=1e-12), bare)


def test_a_summary_stays_one(tmp_path: Path) -> None:
    import_files([DATA / "osu_bw.txt"], tmp_path / "a.wwp")
    out = exported(tmp_path / "a.wwp", tmp_path)
    assert {row["run_type"] for row in rows(out)} == {"aggregate"}
    import_files([out], tmp_path / "b.wwp")
    with Profile.open(tmp_path / "b.wwp") as again:
        assert {visit.samples.flags for visit in again.visits()} == {(SUMMARY,)}


def test_a_failure_is_reported_as_google_benchmark_does(profile: Path, tmp_path: Path) -> None:
    failed = [row for row in rows(exported(profile, tmp_path)) if row.get("error_occurred")]
    assert failed and all(row["error_message"] for row in failed)
    assert all("real_time" not in row for row in failed)


def test_a_label_that_is_no_workload_is_an_error(tmp_path: Path) -> None:
    import_files([DATA / "osu_bw.txt"], tmp_path / "a.wwp")
    out = exported(tmp_path / "a.wwp", tmp_path)
    value = json.loads(out.read_text())
    value["benchmarks"][0]["label"] = "nonsense"
    (tmp_path / "bad.json").write_text(json.dumps(value))
    found = import_files([tmp_path / "bad.json"], tmp_path / "b.wwp")
    assert any(
        "its label is not a workload" in unsupported.reason
        for unsupported in found.unsupported_paths
    )
