from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from machine.captured import CAPTURES
from waywiser.curves.overview import overview
from waywiser.exchange.imports.benchpress_places import STATED
from waywiser.exchange.imports.foreign_file import ImportFailed
from waywiser.exchange.imports.profiles import files_of, import_files
from waywiser.exchange.imports.topology_check import UNCHECKED
from waywiser.profile import ExistingFile, Profile

DATA = Path(__file__).parent / "data"
NAME = "Comm_cudaMemcpyAsync_GPUToPinned/0/1/log2(N):10/manual_time"
TEXT = "device@gpu:1 -> pinned@numa:0 by copy-engine of 1024"


def result(path: Path, time: float, *, host: str = "node7", name: str = NAME) -> Path:
    row = {"name": name, "run_type": "iteration", "iterations": 9, "real_time": time,
           "time_unit": "us"}  # fmt: skip
    context = {"date": "2026-11-20T10:00:00+00:00", "host_name": host}
    path.write_text(json.dumps({"context": context, "benchmarks": [row] * 3}))
    return path


def written(target: Path) -> Profile:
    return Profile.open(target)


def test_the_same_series_of_several_files_are_its_blocks(tmp_path: Path) -> None:
    files = [result(tmp_path / f"{n}.json", 10.0 + n) for n in range(6)]
    found = import_files(files, tmp_path / "a.wwp")
    assert (found.series, found.visits) == (1, 6)
    with written(tmp_path / "a.wwp") as profile:
        (line,) = overview(profile).series
        visits = list(profile.visits())
    assert [visit.block for visit in visits] == list(range(6))
    assert line.text == TEXT and line.estimate is not None
    assert line.estimate.median == pytest.approx(12.5e-6)
    assert line.estimate.kind == "between processes"


def test_a_file_that_is_named_twice_or_was_copied_is_one_block(tmp_path: Path) -> None:
    first, other = result(tmp_path / "1.json", 10.0), result(tmp_path / "2.json", 10.5)
    copy = tmp_path / "copy" / "1.json"
    copy.parent.mkdir()
    copy.write_bytes(first.read_bytes())
    found = import_files([first, copy, first, other], tmp_path / "a.wwp")
    assert (found.series, found.visits) == (1, 2)
    assert [file.skipped for file in found.files] == [
        "", "it has the same content as 1.json", "it has the same content as 1.json", "",
    ]  # fmt: skip
    with written(tmp_path / "a.wwp") as profile:
        assert [unsupported.path for unsupported in profile.unsupported_paths] == ["1.json"]


def test_importing_twice_gives_the_same_series(tmp_path: Path) -> None:
    files = [result(tmp_path / f"{n}.json", 10.0 + n) for n in range(3)]
    identities = []
    for target, order in (("a.wwp", files), ("b.wwp", files), ("c.wwp", files[::-1])):
        import_files(order, tmp_path / target)
        with written(tmp_path / target) as profile:
            identities.append([workload.identity for workload in profile.workloads()])
            (line,) = overview(profile).series
            assert line.estimate is not None
            assert line.estimate.median == pytest.approx(11e-6)
    assert identities[0] == identities[1] == identities[2]


def test_where_every_number_came_from_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "of somebody"
    folder.mkdir()
    result(folder / "b.json", 2.0)
    (folder / "a.json").touch()
    import_files([folder], tmp_path / "a.wwp", command=("waywiser", "import", "x"))
    with written(tmp_path / "a.wwp") as profile:
        environment, plan = profile.environment, json.loads(profile.plan_json)
        (visit,), (run,), unsupported_paths = (
            list(profile.visits()),
            profile.runs,
            profile.unsupported_paths,
        )
        identity = profile.workloads()[0].identity
    empty, full = environment["imported"]
    assert empty["file"] == "a.json" and "is empty" in empty["left_out"]
    assert (full["file"], full["tool"]) == ("b.json", "Google Benchmark")
    assert full["date"] == "2026-11-20T10:00:00+00:00"
    assert "of somebody" not in json.dumps(environment)
    assert plan["imported"] == {identity: [{"file": "b.json", "name": NAME}]}
    assert visit.started == "2026-11-20T10:00:00+00:00"
    assert visit.notes[0].startswith("imported from Comm_cudaMemcpyAsync_GPUToPinned of Google")
    assert run.command == ("waywiser", "import", "x") and run.ended
    assert [unsupported.path for unsupported in unsupported_paths] == ["a.json"]


def test_files_of_several_machines_are_distinguished_unless_they_are_said_to_be_one(
    tmp_path: Path,
) -> None:
    files = [result(tmp_path / "1.json", 1.0), result(tmp_path / "2.json", 1.0, host="node8")]
    with pytest.raises(ImportFailed, match="are of 2 machines: node7, node8"):
        import_files(files, tmp_path / "a.wwp")
    assert import_files(files, tmp_path / "a.wwp", machine="twin").machine.hostname == "twin"


def test_a_machine_made_of_results_says_what_it_does_not_know(tmp_path: Path) -> None:
    machine = import_files([result(tmp_path / "1.json", 1.0)], tmp_path / "a.wwp").machine
    assert [gpu.index for gpu in machine.gpus] == [1]
    assert [node.index for node in machine.numa] == [0]
    assert "not known" in machine.notes[0]


def test_peers_are_those_between_which_direct_access_was_measured(tmp_path: Path) -> None:
    machine = import_files([DATA / "nvbandwidth.json"], tmp_path / "a.wwp").machine
    assert [gpu.peers for gpu in machine.gpus] == [(1,), (0,)]
    without = import_files([DATA / "microbench.json"], tmp_path / "b.wwp").machine
    assert {gpu.peers for gpu in without.gpus} == {()}


def test_places_of_ranks_say_so(tmp_path: Path) -> None:
    machine = import_files([DATA / "osu_bw.txt"], tmp_path / "a.wwp").machine
    assert any("of rank N" in note for note in machine.notes)
    with written(tmp_path / "a.wwp") as profile:
        (reason,) = (group.reason for group in overview(profile).unbounded)
    assert "between ranks" in reason


def test_a_topology_may_be_given(tmp_path: Path) -> None:
    capture = CAPTURES / "two-socket-4gpu.json"
    file = result(tmp_path / "1.json", 1.0)
    machine = import_files([file], tmp_path / "a.wwp", topology=capture).machine
    assert len(machine.gpus) == 4 and machine.hostname == "node7"
    far = result(tmp_path / "2.json", 1.0, name=NAME.replace("/0/1/", "/0/6/"))
    with pytest.raises(ImportFailed, match=r"the results are about gpu:6, which this machine"):
        import_files([far], tmp_path / "b.wwp", topology=capture)
    assert not (tmp_path / "b.wwp").exists()


def test_the_topology_of_other_gpus_is_an_error(tmp_path: Path) -> None:
    cells = {"status": "Passed", "bandwidth_matrix": [["50"]]}
    value = {"nvbandwidth": {
        "GPU Device list": ["0: NVIDIA GeForce RTX 5090 (0000:0c:00.0)"],
        "testcases": [{"name": "host_to_device_memcpy_ce", **cells}]}}  # fmt: skip
    (tmp_path / "1.json").write_text(json.dumps(value))
    capture = CAPTURES / "two-socket-4gpu.json"
    with pytest.raises(ImportFailed, match="the results are of NVIDIA GeForce RTX 5090 at gpu:0"):
        import_files([tmp_path / "1.json"], tmp_path / "a.wwp", topology=capture)


def test_with_a_topology_nvbandwidths_host_memory_is_near_its_gpu(tmp_path: Path) -> None:
    capture = CAPTURES / "two-socket-4gpu.json"
    value = {"nvbandwidth": {"testcases": [
        {"name": "host_to_device_memcpy_ce", "status": "Passed",
         "bandwidth_matrix": [["50"]]}]}}  # fmt: skip
    (tmp_path / "1.json").write_text(json.dumps(value))
    import_files([tmp_path / "1.json"], tmp_path / "a.wwp", topology=capture)
    with written(tmp_path / "a.wwp") as profile:
        numa = {gpu.index: gpu.numa for gpu in profile.machine.gpus}
        assert len(set(numa.values())) == 2
        for workload in profile.workloads():
            path = workload.transfers[0].path
            assert path.source.place.index == numa[path.destination.place.index]


def test_an_existing_file_stays(tmp_path: Path) -> None:
    (tmp_path / "a.wwp").write_text("mine")
    with pytest.raises(ExistingFile):
        import_files([result(tmp_path / "1.json", 1.0)], tmp_path / "a.wwp")
    assert (tmp_path / "a.wwp").read_text() == "mine"


def test_one_bad_file_among_good_ones_leaves_no_profile(tmp_path: Path) -> None:
    good = result(tmp_path / "1.json", 1.0)
    bad = tmp_path / "2.json"
    bad.write_text(good.read_text()[:-20])
    with pytest.raises(ImportFailed, match=r"2\.json:1: the file ends in the middle"):
        import_files([good, bad], tmp_path / "a.wwp")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["1.json", "2.json"]


def test_files_without_a_counterpart_are_an_error_with_the_reason(tmp_path: Path) -> None:
    file = result(tmp_path / "1.json", 1.0, name="CUBLAS_SGEMM/1/2/3")
    with pytest.raises(ImportFailed, match=r"1\.json: nothing in it is imported: "):
        import_files([file], tmp_path / "a.wwp")


def test_of_a_folder_what_is_no_result_is_skipped_and_listed(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    result(folder / "1.json", 1.0)
    (folder / "lscpu.txt").write_text("Architecture: x86_64\n")
    found = import_files([folder], tmp_path / "a.wwp")
    assert [unsupported.path for unsupported in found.unsupported_paths] == ["lscpu.txt"]
    with pytest.raises(ImportFailed, match=r"lscpu\.txt: has no format"):
        import_files([folder / "1.json", folder / "lscpu.txt"], tmp_path / "b.wwp")


def test_a_bad_file_of_a_folder_is_skipped_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    good = result(folder / "1.json", 1.0)
    (folder / "cut.json").write_text(good.read_text()[:-20])
    (folder / "bytes.txt").write_bytes(b"one\n\xff")
    (folder / "matrix.json").write_text(
        json.dumps({"nvbandwidth": {"testcases": [{"name": "x", "status": "odd"}]}})
    )
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("missing")
    os.mkfifo(folder / "pipe.log")
    found = import_files([folder], tmp_path / "a.wwp")
    assert found.series == 1
    assert {unsupported.path: unsupported.reason for unsupported in found.unsupported_paths} == {
        "cut.json": "the file ends in the middle: it is truncated, at line 1",
        "bytes.txt": "is not text, at line 2",
        "matrix.json": "'odd' is not a status, at testcases[0].status",
        "folder.json": "is a directory and not a regular file",
        "link.json": "there is no such file",
        "pipe.log": "is a FIFO and not a regular file",
    }
    with pytest.raises(ImportFailed, match=r"cut\.json:1: the file ends in the middle"):
        import_files([folder, folder / "cut.json"], tmp_path / "b.wwp")
    assert not (tmp_path / "b.wwp").exists()


def test_a_folder_of_bad_files_alone_is_an_error_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text("{")
    with pytest.raises(ImportFailed, match=r"1\.json: the file ends in the middle"):
        import_files([tmp_path], tmp_path / "a.wwp")


def test_a_folder_is_its_result_files_by_name(tmp_path: Path) -> None:
    for name in ("b.json", "a.csv", "c.wwp", "README.md", ".hidden.json"):
        (tmp_path / name).touch()
    assert [path.name for path in files_of([tmp_path])] == ["a.csv", "b.json"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFailed, match="has no file that ends in"):
        files_of([tmp_path / "empty"])
    with pytest.raises(ImportFailed, match="0 files"):
        files_of([])


@pytest.mark.parametrize("file", sorted(DATA.iterdir()), ids=lambda file: file.name)
def test_every_format_gives_a_profile_that_is_shown(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from waywiser.cli import run

    target = str(tmp_path / "a.wwp")
    assert run(["import", str(file), "-o", target]) == 0
    for verb in (["show", target], ["show", target, "--json"], ["export", target]):
        assert run(verb) == 0, capsys.readouterr().err
    assert "imported from" in capsys.readouterr().out


def test_memory_is_bounded_by_a_few_times_the_text(tmp_path: Path) -> None:
    row: dict[str, Any] = {"name": NAME, "run_type": "iteration", "iterations": 9,
                           "real_time": 1.0, "time_unit": "us", "bytes": 1024.0}  # fmt: skip
    path = tmp_path / "1.json"
    path.write_text(json.dumps({"benchmarks": [row] * 20_000}))
    size = path.stat().st_size
    tracemalloc.start()
    try:
        import_files([path], tmp_path / "a.wwp")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * size


def test_a_topology_that_contradicts_the_files_is_kept_on_demand_alone(tmp_path: Path) -> None:
    files, target = [DATA / "nvbandwidth.txt"], tmp_path / "a.wwp"
    capture = CAPTURES / "two-socket-4gpu.json"
    with pytest.raises(ImportFailed, match="--topology-anyway"):
        import_files(files, target, topology=capture)
    assert not target.exists()
    found = import_files(files, target, topology=capture, topology_anyway=True)
    assert len(found.machine.gpus) == 4
    assert found.topology_notes and set(found.topology_notes) <= set(found.machine.notes)


def test_a_topology_that_nothing_confirms_is_said(tmp_path: Path) -> None:
    capture = CAPTURES / "two-socket-4gpu.json"
    found = import_files([result(tmp_path / "1.json", 1.0)], tmp_path / "a.wwp", topology=capture)
    assert found.topology_notes == (UNCHECKED,)


def test_every_reason_is_named_if_no_file_is_good(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "1.txt").write_text("no result\n")
    (folder / "2.json").write_text('{"nvbandwidth": {"testcases": [{"name": "x", "sta')
    (folder / "3.txt").write_text("# OSU MPI_Put Latency Test v7.5\n# Size  Latency (us)\n8 1\n")
    with pytest.raises(ImportFailed) as caught:
        import_files([folder], tmp_path / "a.wwp")
    text = str(caught.value)
    assert "none of 3 files" in text
    for reason in ("no format", "truncated", "MPI_Put is another operation"):
        assert reason in text


def test_assumptions_are_said_with_the_number_of_series(tmp_path: Path) -> None:
    found = import_files([DATA / "benchpress_placed.out"], tmp_path / "a.wwp")
    assert (STATED, 6) in found.notes
