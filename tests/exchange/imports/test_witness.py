"""The table is the witness: what contradicts it is an error of the table, with both facts."""

from __future__ import annotations

import pytest

from exchange.imports.test_nccl_text import as_text
from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.nccl_text import read as read_nccl
from waywiser.exchange.imports.osu import read as read_osu


def osu(
    command: str, mpi: str = "MPI-CUDA", title: str = "Bandwidth", value: str = "9000.00"
) -> str:
    unit = "Bandwidth (MB/s)" if "Bandwidth" in title else "Avg Latency(us)"
    return f"{command}\n# OSU {mpi} {title} Test v7.5\n# Size  {unit}\n4194304  {value}\n"


def ends(text: str) -> tuple[str, str]:
    (found,) = read_osu(text, "x")
    path = found.measured[0].workload.transfers[0].path
    return str(path.source), str(path.destination)


HOST, GPU = ("pageable@numa:0", "pageable@numa:1"), ("device@gpu:0", "device@gpu:1")


@pytest.mark.parametrize("above", ["", "\n".join(f"[n7:{n}] Rank {n} bound to core {n}" for n in
                                                  range(40)) + "\n", "\n\n\n\n\n"])  # fmt: skip
@pytest.mark.parametrize(
    ("pair", "expected"),
    [("D D", GPU), ("H D", (HOST[0], GPU[1])), ("D H", (GPU[0], HOST[1])), ("H H", HOST)],
)
def test_the_command_counts_however_far_above_it_stands(
    above: str, pair: str, expected: tuple[str, str]
) -> None:
    assert ends(osu(f"$ mpirun -n 2 osu_bw -d cuda {pair}\n{above}")) == expected


@pytest.mark.parametrize(
    "line",
    ["$ cd osu_files", "$ ls osu_bw osu_latency", "running osu tests", "osu_bw:", "# see osu_bw"],
)
def test_no_word_above_makes_host_memory_of_a_gpu(line: str) -> None:
    (found,) = read_osu(osu(line), "x")
    assert "GPUs are assumed" in found.measured[0].notes[1]


@pytest.mark.parametrize(
    "line",
    [
        "=== osu_bw, H D ===",
        "*** H D, one node",
        "osu_bw (H->D)",
        "## Host to device",
        "H2D bandwidth",
    ],
)
def test_a_heading_says_where_the_buffers_are(line: str) -> None:
    assert ends(osu(line)) == (HOST[0], GPU[1])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (osu("$ mpirun -n 2 osu_bw H H", value="350000.00"), "350 GB/s is more than host memory"),
        (osu("$ mpirun -n 2 osu_bw -d cuda"), "names no buffers"),
        (osu("$ mpirun -n 2 osu_bw D D", "MPI"), "its title names no GPU"),
        (osu("$ mpirun -n 2 osu_bw -T mpi_int D D").replace(
            "# Size", "# Datatype: MPI_CHAR.\n# Size"),
         "of MPI_CHAR, and its command of MPI_INT"),
        (osu("mpirun -n 2 osu_bw D D\nmpirun -n 2 osu_bw H D"), "2 commands stand above"),
        (osu("$ mpirun -n 2 osu_bw D H").replace(
            "# Size", "# Send Buffer on HOST (H) and Receive Buffer on DEVICE (D)\n# Size"),
         "the table says H D, and its command D H"),
    ],
)  # fmt: skip
def test_what_contradicts_an_osu_table(text: str, what: str) -> None:
    with pytest.raises(Malformed, match=what.replace("(", r"\(")):
        read_osu(text, "x")


def test_the_command_of_another_test_is_not_that_of_a_table() -> None:
    (found,) = read_osu(osu("$ mpirun -n 2 osu_bw H H", title="Latency"), "x")
    assert "GPUs are assumed" in found.measured[0].notes[1]


def nccl(collective: str, ranks: int = 4, named: bool = False) -> str:
    return as_text(collective, ranks, [(2**20, 20.0), (2**22, 50.0)], named=named)


def collectives(found: list[ForeignFile]) -> set[str]:
    return {each.workload.transfers[0].collective for file in found for each in file.measured}


@pytest.mark.parametrize(
    "above",
    ["$ ls build\nscatter_perf alltoall_perf\n", "sendrecv_perf\n", "$ cat broadcast_perf.md\n",
     "all_gather_perf, reduce_perf: not today\n", "$ file build/gather_perf\n"],
)  # fmt: skip
def test_a_word_above_names_no_collective(above: str) -> None:
    assert collectives(read_nccl(above + nccl("all_reduce"), "x")) == {"allreduce"}


@pytest.mark.parametrize("name", ["gathered.txt", "broadcast_and_more.log", "scatterplot.out"])
def test_a_file_named_after_another_collective_does_not_name_it(name: str) -> None:
    assert collectives(read_nccl(nccl("reduce_scatter"), f"/x/{name}")) == {"reduce-scatter"}


@pytest.mark.parametrize(
    ("above", "what"),
    [
        ("$ ./build/all_gather_perf -g 4\n", "its command names all_gather, and its columns"),
        ("$ ./build/reduce_perf -g 4\n", "redop sum, root -1, busbw/algbw 1.50 of 4 ranks"),
        ("$ ./build/all_reduce_perf -g 8\n", "its command has -g 8, and the table 4"),
        ("$ mpirun -np 2 ./build/all_reduce_perf -g 4\n", "starts 8 ranks, and the table lists 4"),
        ("# Collective test starting: alltoall_perf\n", "the tool's line names alltoall"),
    ],
)
def test_what_contradicts_an_nccl_table(above: str, what: str) -> None:
    with pytest.raises(Malformed, match=what):
        read_nccl(above + nccl("all_reduce"), "x")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [("node3", "node4", "on node3 and node4"), ("Pid     81", "Pid     99", "processes 81 and 99"),
     ("0000:10", "0000:77", "at 0000:10:00 and 0000:77:00")],
)  # fmt: skip
def test_two_jobs_in_one_text_are_not_blocks(old: str, new: str, what: str) -> None:
    text = nccl("all_reduce")
    line = next(line for line in text.splitlines() if line.startswith("#  Rank  0"))
    with pytest.raises(Malformed, match=what):
        read_nccl(text.replace(line, f"{line}\n{line.replace(old, new)}"), "x")


def test_a_size_that_its_elements_cannot_have_is_damaged() -> None:
    text = nccl("all_reduce").replace(f"{2**20:>12} {2**18:>12}", f"{2**20:>12} {2**18 - 3:>12}")
    (found,) = read_nccl(text, "x")
    assert len(found.measured) == 2
    assert "is not that of 262141 elements of 4 bytes" in found.unsupported_paths[0].reason


def test_an_operator_that_is_left_empty_shifts_no_column() -> None:
    text = "$ ./build/alltoall_perf -g 4\n" + nccl("alltoall").replace(" none ", "      ")
    (found,) = read_nccl(text, "x")
    assert collectives([found]) == {"alltoall"}
    assert [each.samples.span[0] for each in found.measured[::2]] == pytest.approx([20e-6, 50e-6])


def test_time_stamps_are_one_column() -> None:
    text = "\n".join(
        f"{line}   timestamp" if line.startswith("#       size") else
        f"{line}  2026-10-14 12:01:05" if line[:1] == " " else line
        for line in nccl("all_reduce").splitlines()
    )  # fmt: skip
    assert len(read_nccl(text, "x")[0].measured) == 4


def test_rows_of_the_next_tool_belong_to_it() -> None:
    text = nccl("all_reduce") + "# Avg bus bandwidth    : 22.1\n" + osu("=== osu", "MPI")
    for found in (read_nccl(text, "x"), read_osu(text, "x")):
        assert not [each for file in found for each in file.unsupported_paths]


@pytest.mark.parametrize("text", ["# OSU results\n\nSee below.\n", "# OSU MPI on node7\n12 34\n"])
def test_a_text_about_osu_is_no_damaged_table(text: str) -> None:
    with pytest.raises(Malformed, match="has no table of its benchmarks"):
        read_osu(text, "x")


TABLE = "# OSU MPI-CUDA Bandwidth Test v7.5\n# Size  Bandwidth (MB/s)\n4194304  9000.00\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("$ for m in 'H D' 'D H'; do srun -n 2 osu_bw $m; done", ["H D", "D H"]),
        ("$ for m in D H; do srun -n 2 osu_bw -d cuda D $m; done", ["D D", "D H"]),
        ("$ WHERE='D H'; srun -n 2 osu_bw $WHERE; srun -n 2 osu_bw H D", ["D H", "H D"]),
        ("$ BENCH='srun -n 2 osu_bw -d cuda'\n$ $BENCH D H; $BENCH H D", ["D H", "H D"]),
        ("$ srun -n 2 osu_bw ${WHERE:-D H}; srun -n 2 osu_bw D D", ["D H", "D D"]),
    ],
)
def test_variables_of_several_words_are_words(lines: str, expected: list[str]) -> None:
    (found,) = read_osu(f"{lines}\n{TABLE}{TABLE}", "x")
    kinds = {"D": "device", "H": "pageable"}
    paths = [each.workload.transfers[0].path for each in found.measured]
    assert [(path.source.kind, path.destination.kind) for path in paths] == [
        (kinds[pair[0]], kinds[pair[2]]) for pair in expected
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "$ srun -n 1 osu_bw D D : -n 1 osu_bw D H",
        "$ srun -n 2 osu_bw D D &\n$ srun -n 2 osu_bw D H",
        "$ srun -n 2 osu_bw D D > a\n$ srun -n 2 osu_bw D H > b",
        "$ for m in $PAIRS; do srun -n 2 osu_bw $m; done",
        "$ docker compose logs osu_bw",
    ],
)
def test_buffers_are_unknown_if_two_commands_may_have_made_the_table(lines: str) -> None:
    with pytest.raises(Malformed, match="where its buffers were is unknown"):
        read_osu(f"{lines}\n{TABLE}", "x")


@pytest.mark.parametrize("word", ["H to D", "H-to-D", "host to device", "H, D"])
def test_buffers_in_words(word: str) -> None:
    assert ends(osu(f"--- {word} ---")) == (HOST[0], GPU[1])


def test_a_table_below_a_command_that_writes_to_a_file_has_a_note() -> None:
    (found,) = read_osu(f"$ srun -n 2 osu_bw D H > run.txt\n{TABLE}", "x")
    assert "the command above the table writes to run.txt" in found.measured[0].notes[-1]
    (found,) = read_osu(f"$ srun -n 2 osu_bw D H > run.txt\n$ cat run.txt\n{TABLE}", "x")
    assert not any("writes to" in note for note in found.measured[0].notes)


@pytest.mark.parametrize(("option", "value"), [("-m", 8), ("-G", 1), ("-t", 2)])
def test_an_option_that_the_head_contradicts(option: str, value: int) -> None:
    text = f"$ ./all_reduce_perf -g 4 {option} {value}\n{nccl('all_reduce')}"
    with pytest.raises(Malformed, match=f"its command has {option} {value}, and the table"):
        read_nccl(text, "x")


def test_an_option_that_only_the_command_says() -> None:
    (found,) = read_nccl(f"$ ./all_reduce_perf -g 4 -z 1\n{nccl('all_reduce')}", "x")
    assert "blocking=yes" in found.measured[0].workload.curve
