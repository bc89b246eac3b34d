"""The CSV of rccl-tests: columns of several versions, ranks that the bandwidths confirm."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ForeignFile, ImportFailed, Malformed
from waywiser.words.collective import bus_factor

OLD = "name,size,type,redop,inPlace,time,algBw,busBw,#wrong,gpus"
MPI = (
    "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,"
    "busbw,#wrong"
)
PLAIN = "numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong"


def rates(size: int, micros: float, factor: float) -> str:
    rate = size / micros / 1e3
    return f"{micros:.2f},{rate:.4f},{rate * factor:.4f}"


def read(tmp_path: Path, *lines: str) -> ForeignFile:
    file = tmp_path / "out.csv"
    file.write_text("\n".join(lines) + "\n")
    (found,) = detect.read(file)
    return found


def test_rows_are_collectives_over_all_gpus(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        OLD,
        f"AllReduce,2097152,float,sum,0,{rates(2097152, 88.5, 1.75)},0,8",
        f"AllReduce,2097152,float,sum,1,{rates(2097152, 90.25, 1.75)},0,8",
    )
    assert (found.format, found.tool) == ("rccl-csv", "rccl-tests")
    out, inside = found.measured
    assert out.workload.curve == "device@gpu:0-7 -> device@gpu:0-7 by nccl[collective=allreduce]"
    assert out.workload.bytes == 2097152 and out.samples.span == (pytest.approx(88.5e-6),)
    assert "in-place=yes" in inside.workload.curve


@pytest.mark.parametrize(
    ("name", "curve", "factor"),
    [
        ("AllGather", "allgather", bus_factor("allgather", 6)),
        ("ReduceScatter", "reduce-scatter", bus_factor("reduce-scatter", 6)),
        ("AlltoAll", "alltoall", bus_factor("alltoall", 6)),
        ("Broadcast", "broadcast", 1.0),
    ],
)
def test_ranks_of_mpi_are_times_their_gpus(
    name: str, curve: str, factor: float, tmp_path: Path
) -> None:
    found = read(
        tmp_path, MPI, f"0,{name},1,3,3,2,65536,half,none,0,{rates(65536, 31.0, factor)},N/A"
    )
    (series,) = found.measured
    assert f"collective={curve}" in series.workload.curve
    assert series.workload.curve.startswith("device@gpu:0-5 ->")
    assert any("root" in note for note in series.notes) == (name == "Broadcast")


def test_ranks_that_contradict_the_bandwidths_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match=r"allreduce of 2 ranks has 1 times .* has 1.75 times"):
        read(tmp_path, PLAIN, f"0,AllReduce,2,1048576,float,sum,0,{rates(1048576, 60.0, 1.75)},0")


def test_cycles_of_one_process_are_samples_of_one_block(tmp_path: Path) -> None:
    rows = [
        f"{n},AllReduce,4,1048576,float,sum,0,{rates(1048576, 60.0 + n, 1.5)},0" for n in range(3)
    ]
    (series,) = read(tmp_path, PLAIN, *rows).measured
    assert series.samples.span == pytest.approx((60e-6, 61e-6, 62e-6))


@pytest.mark.parametrize(
    ("one", "other", "settings"),
    [
        ("$ A_B=1 ./all_reduce_perf -Z csv", "$ A_B=2 ./all_reduce_perf -Z csv", 2),
        ("$ ./all_reduce_perf -Z csv", "$ ./all_reduce_perf -Z csv", 1),
        ("ring", "tree", 2),
        ("", "", 1),
    ],
)
def test_each_head_begins_a_run(one: str, other: str, settings: int, tmp_path: Path) -> None:
    rows = [f"0,AllReduce,4,1048576,float,sum,0,{rates(1048576, t, 1.5)},0" for t in (60.0, 90.0)]
    found = read(tmp_path, one, PLAIN, rows[0], other, PLAIN, rows[1])
    assert [each.samples.span for each in found.measured] == [
        (pytest.approx(60e-6),), (pytest.approx(90e-6),)
    ]  # fmt: skip
    assert len({each.settings for each in found.measured}) == settings
    assert not found.unsupported_paths


def test_a_row_that_stands_twice_is_of_another_run(tmp_path: Path) -> None:
    rows = [f"0,AllReduce,4,1048576,float,sum,0,{rates(1048576, t, 1.5)},0" for t in (60.0, 90.0)]
    assert [len(each.samples.span) for each in read(tmp_path, PLAIN, *rows).measured] == [1, 1]


def test_the_command_of_another_collective_contradicts_a_row(tmp_path: Path) -> None:
    row = f"0,AllReduce,4,1048576,float,sum,0,{rates(1048576, 60.0, 1.5)},0"
    with pytest.raises(Malformed, match="its command names all_gather, and the row all_reduce"):
        read(tmp_path, "$ ./all_gather_perf -Z csv", PLAIN, row)


def test_damaged_rows_are_listed_and_wrong_values_are_failures(tmp_path: Path) -> None:
    good = f"AllReduce,4096,float,sum,0,{rates(4096, 20.0, 1.5)},0,4"
    wrong = f"AllReduce,8192,float,sum,0,{rates(8192, 20.0, 1.5)},7,4"
    other = f"Hypercube,8192,float,sum,0,{rates(8192, 20.0, 1.5)},0,4"
    found = read(tmp_path, OLD, good, wrong, "AllReduce,16384,float,sum", other, good[:-9])
    ok, failed = found.measured
    assert ok.failure is None and failed.failure is not None
    assert [each.path for each in found.unsupported_paths] == ["line 4", "line 5", "line 6"]


def test_mutated_files_give_one_line_or_values_of_the_text(tmp_path: Path) -> None:
    rng = random.Random(5)
    text = "\n".join(
        [OLD, *(f"AllReduce,{2**n},float,sum,{n % 2},{rates(2**n, 20.0 + n, 1.5)},0,4"
                for n in range(10, 18))]
    )  # fmt: skip
    times = {round(20.0 + n, 2) for n in range(10, 18)}
    file = tmp_path / "a.csv"
    for _ in range(300):
        at = rng.randrange(len(text))
        changed = text[:at] + rng.choice(["", ",", "x", "\n", "-", "9", "nan"]) + text[at + 1 :]
        file.write_text(changed)
        try:
            runs = detect.read(file)
        except ImportFailed as error:
            assert "\n" not in str(error)
            continue
        spans = [round(span * 1e6, 2) for run in runs for each in run.measured
                 for span in each.samples.span]  # fmt: skip
        assert len([span for span in spans if span not in times]) <= 1
