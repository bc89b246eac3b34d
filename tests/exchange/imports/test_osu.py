from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.osu import read
from waywiser.words.records import SUMMARY

DATA = Path(__file__).parent / "data"
TITLE = "# OSU MPI Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n"


def seconds(found: ForeignFile) -> dict[str, float]:
    return {str(each.workload): each.samples.span[0] for each in found.measured}


def test_rates_are_in_10_to_the_6_bytes_and_buffers_are_reported_by_the_command() -> None:
    found = detect.read(DATA / "osu_bw.txt")[0]
    path = "device@gpu:0 -> pageable@numa:1 by mpi[test=bw]"
    assert seconds(found) == {f"{path} of 1": pytest.approx(0.5e-6),
                              f"{path} of 1024": pytest.approx(0.5e-6)}  # fmt: skip
    assert {each.samples.flags for each in found.measured} == {(SUMMARY,)}
    assert [unsupported.reason for unsupported in found.unsupported_paths] == ["its figure is 0"]
    assert found.version == "7.2"


def test_several_tables_of_one_text() -> None:
    found = detect.read(DATA / "osu_latency.txt")[0]
    one = "device@gpu:0 -> device@gpu:1 by mpi[test=latency]"
    there = "pageable@numa:0 -> pageable@numa:1 by mpi[test=bibw] of 1048576"
    back = "pageable@numa:1 -> pageable@numa:0 by mpi[test=bibw] of 1048576"
    assert seconds(found) == {
        f"{one} of 8": pytest.approx(2.5e-6),
        f"{one} of 1048576": pytest.approx(110e-6),
        f"{there}; {back}": pytest.approx(2 * 1048576 / 1000e6),
    }
    reasons = [unsupported.reason for unsupported in found.unsupported_paths]
    assert any("0 bytes" in reason for reason in reasons)
    assert any("found wrong bytes" in reason for reason in reasons)
    assert any("the number of its ranks is unknown" in reason for reason in reasons)


def test_a_title_for_gpus_alone_suggests_where_buffers_are_and_says_so() -> None:
    (found,) = read("# OSU MPI-CUDA Latency Test v7.5\n# Size  Avg Latency(us)\n8  2.5\n", "x")
    (measured,) = found.measured
    assert str(measured.workload.transfers[0].path.source) == "device@gpu:0"
    assert "unknown" in measured.notes[1]


def test_extra_columns_are_passed_over() -> None:
    text = "# OSU MPI Latency Test v7.5\n# Size Avg Latency(us) Min Lat(us) Iterations\n8 2 1 100\n"
    assert list(seconds(read(text, "x")[0]).values()) == [pytest.approx(2e-6)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TITLE, "x:1: the table has no row: it is truncated"),
        (TITLE + "1 2.0\n", "x:3: a row before the line '# Size"),
        (
            TITLE + "# Size  Speed (parsecs)\n1 2\n",
            "x:3: the column 'Speed .parsecs.' is not in MB/s",
        ),
        (TITLE + "# Size  Bandwidth (MB/s)\n4 ?\n", "x:4: no row of a size and a figure"),
        (TITLE + "# Size  Bandwidth (MB/s)\n999999999999999999 2\n", "x:4: a message of"),
        ("nothing", "no title"),
    ],
)
def test_what_breaks_the_rules_is_reported_with_its_line(text: str, what: str) -> None:
    with pytest.raises(Malformed, match=what.replace("?", r"\?")):
        read(text, "x")


ONE_SIDED = ("Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap")
OTHERS = ("MPI Multiple Bandwidth / Message Rate", "MPI Allreduce Latency", "MPI Multi Latency",
          "MPI Multi-threaded Latency", "MPI Allgather Persistent Latency", "SHMEM Put",
          "UPC++ Async Copy (Put)", "NCCL Allreduce Latency", "OpenSHMEM Get")  # fmt: skip


def table(title: str, unit: str, rows: str = "8  2.0\n1024  3.0\n", extra: str = "") -> str:
    return f"# OSU {title} Test v7.5\n{extra}# Size  {unit}\n{rows}\n"


LATENCY = table("MPI Latency", "Avg Latency(us)")


@pytest.mark.parametrize("what", ["Latency", "latency", "Bandwidth", "bandwidth"])
@pytest.mark.parametrize("operation", ONE_SIDED)
def test_another_operation_is_never_merged(operation: str, what: str) -> None:
    unit = "Latency (us)" if what.lower() == "latency" else "Bandwidth (MB/s)"
    other = table(f"MPI_{operation} {what}", unit, "8  9.0\n", "# Synchronization: MPI_Win_flush\n")
    for text in (other + LATENCY, LATENCY + other):
        (found,) = read(text, "x")
        assert sorted(seconds(found).values()) == pytest.approx([2e-6, 3e-6])
        (unsupported,) = found.unsupported_paths
        assert f"MPI_{operation} is another operation" in unsupported.reason


@pytest.mark.parametrize("title", OTHERS)
@pytest.mark.parametrize("unit", ["MB/s  Messages/s", "Avg Latency(us)", "anything"])
def test_a_test_without_a_counterpart_does_not_lose_the_others(title: str, unit: str) -> None:
    (found,) = read(LATENCY + table(title, unit), "x")
    assert len(found.measured) == 2
    assert len(found.unsupported_paths) == 1


@pytest.mark.parametrize(
    "change",
    [
        "# Datatype: MPI_INT.\n",
        "# Datatype: MPI_FLOAT.\n",
        "# Buffers: 2\n",
        "# Window size: 128\n",
    ],
)
def test_what_names_the_operation_is_in_the_series(change: str) -> None:
    (found,) = read(LATENCY + table("MPI Latency", "Avg Latency(us)", "8  7.0\n", change), "x")
    assert len({each.workload.identity for each in found.measured}) == 3


def test_all_datatypes_of_one_run_are_series_of_their_own() -> None:
    parts = [f"# Datatype: {name}.\n# Size  Avg Latency(us)\n8  {n + 1}.0\n"
             for n, name in enumerate(("MPI_CHAR", "MPI_INT", "MPI_FLOAT"))]  # fmt: skip
    (found,) = read("# OSU MPI Latency Test v7.5\n" + "".join(parts), "x")
    assert len({each.workload.identity for each in found.measured}) == 3
    assert str(found.measured[0].workload).endswith("by mpi[test=latency] of 8")


@pytest.mark.parametrize("option", ["-W 128", "--window-size=128", "-W128"])
def test_the_window_of_the_command_is_in_the_series(option: str) -> None:
    bandwidth = table("MPI Bandwidth", "Bandwidth (MB/s)")
    (found,) = read(f"$ osu_bw\n{bandwidth}$ mpirun ./osu_bw {option}\n{bandwidth}", "x")
    assert len({each.workload.identity for each in found.measured}) == 4


def test_two_runs_of_one_test_are_blocks() -> None:
    (found,) = read(LATENCY * 2, "x")
    assert len(found.measured) == 4
    assert len({each.workload.identity for each in found.measured}) == 2


def test_derived_datatypes_are_listed() -> None:
    text = table("MPI Latency", "Avg Latency(us)  Transmit Size", "8  2.0  4\n")
    (found,) = read(LATENCY + text, "x")
    assert len(found.measured) == 2
    assert "derived datatypes" in found.unsupported_paths[0].reason


BUFFER = {"Allreduce": "allreduce", "Reduce": "reduce", "Reduce_scatter": "reduce-scatter",
          "Broadcast": "broadcast"}  # fmt: skip
PARTS = {"Allgather": "allgather", "Gather": "gather", "Scatter": "scatter",
         "All-to-All Personalized Exchange": "alltoall"}  # fmt: skip


def collective(title: str, command: str, unit: str = "Avg Latency(us)") -> str:
    return f"$ {command}\n\n{table(f'MPI {title} Latency', unit, '1024  3.0 2.0 4.0 1000')}"


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize(("title", "word"), [*BUFFER.items(), *PARTS.items()])
def test_a_collective_has_the_bytes_of_the_larger_side(title: str, word: str, ranks: int) -> None:
    (found,) = read(collective(title, f"mpirun -n {ranks} ./osu_x -m 1024"), "x")
    (measured,) = found.measured
    memory = f"pageable@rank:0-{ranks - 1}"
    size = 1024 * (ranks if title in PARTS else 1)
    way = f"by mpi[collective={word}] of {size}"
    assert str(measured.workload) == f"{memory} -> {memory} {way}"
    assert measured.samples.span == pytest.approx((3e-6,))
    assert "means over the ranks" in measured.notes[0]


@pytest.mark.parametrize(
    ("command", "ranks"),
    [("mpirun -np 4 osu_allreduce", 4), ("srun -n4 ./osu_allreduce", 4),
     ("srun --ntasks=6 -c 2 osu_allreduce", 6), ("mpiexec -ppn 2 -n 8 /x/osu_allreduce -f", 8),
     ("srun -N2 --ntasks-per-node=4 \\\n  --mpi=pmi2 \\\n  osu_allreduce", 8),
     ("srun -N2 -c 4 osu_allreduce", 0), ("mpirun -n 1 osu_allreduce", 0), ("osu_allreduce", 0),
     ("mpirun -n 4 hostname", 0)],
)  # fmt: skip
def test_the_command_says_how_many_ranks_there_are(command: str, ranks: int) -> None:
    (found,) = read(collective("Allreduce", command), "x")
    places = [{place.index for place in each.workload.places} for each in found.measured]
    assert places == ([set(range(ranks))] if ranks else [])
    assert bool(found.unsupported_paths) == (not ranks)


def test_the_command_of_another_table_does_not_say_it() -> None:
    text = collective("Allreduce", "mpirun -n 4 osu_allreduce")
    (found,) = read(text + table("MPI Reduce Latency", "Avg Latency(us)"), "x")
    assert len(found.measured) == 1
    assert "keep the command" in found.unsupported_paths[0].reason


def test_the_slowest_rank_counts_if_its_time_is_there() -> None:
    columns = "Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
    (found,) = read(collective("Allreduce", "mpirun -n 4 osu_allreduce -f", columns), "x")
    assert found.measured[0].samples.span == pytest.approx((4e-6,))
    assert not found.measured[0].notes


def test_a_row_without_the_time_of_the_slowest_is_damaged() -> None:
    columns = "Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
    text = collective("Allreduce", "mpirun -n 4 osu_allreduce -f", columns)
    with pytest.raises(Malformed, match="a row without the figure"):
        read(text.replace("3.0 2.0 4.0 1000", "3.0 2.0"), "x")


@pytest.mark.parametrize(
    ("mpi", "option", "kind"),
    [("MPI", "", "pageable"), ("MPI-CUDA", " -d cuda", "device"), ("MPI-ROCM", "", "device"),
     ("MPI-CUDA", " -d managed", "managed")],
)  # fmt: skip
def test_memory_of_a_collective(mpi: str, option: str, kind: str) -> None:
    text = collective("Allreduce", f"mpirun -n 2 osu_allreduce{option}").replace(
        "OSU MPI", "OSU " + mpi
    )
    (found,) = read(text, "x")
    assert {end.kind for end in found.measured[0].workload.transfers[0].path.ends} == {kind}


@pytest.mark.parametrize("title", ["Non-blocking Allreduce", "Allgatherv", "Allgather Persistent",
                                   "All-to-Allv Personalized Exchange", "Barrier"])  # fmt: skip
def test_other_collectives_have_no_counterpart(title: str) -> None:
    (found,) = read(collective(title, "mpirun -n 4 osu_x") + LATENCY, "x")
    assert len(found.measured) == 2
    assert "blocking collectives" in found.unsupported_paths[0].reason
