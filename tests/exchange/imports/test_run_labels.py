"""Runs with different settings are never blocks; runs with equal settings are."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.imports.test_made_texts import read
from exchange.imports.test_nccl_text import as_text
from waywiser.exchange.imports.profiles import import_files
from waywiser.exchange.imports.run_labels import LONGEST, label_of
from waywiser.words import Workload

TABLE = "# OSU {} Bandwidth Test v7.5\n# Size  Bandwidth (MB/s)\n1048576  {:.2f}\n"


def text_of(commands: list[str], mpi: str = "MPI") -> str:
    return "\n".join(f"{c}\n{TABLE.format(mpi, 1000.0 * n)}" for n, c in enumerate(commands, 1))


def series(text: str, folder: Path) -> dict[str, list[float]]:
    """Workload -> MB/s of its blocks."""
    path = folder / "a.txt"
    path.write_text(text)
    found: dict[str, list[float]] = {}
    for file in read(path):
        for each in file.measured:
            rate = each.workload.bytes / each.samples.span[0] / 1e6
            found.setdefault(str(each.workload), []).append(round(rate))
            assert each.workload.curve == Workload.parse(str(each.workload)).curve
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$ mpirun -np 2 osu_bw", "$ mpirun -np 2 -H a,b osu_bw"),
        ("$ UCX_NET_DEVICES=a:1 srun -n 2 osu_bw", "$ UCX_NET_DEVICES=b:1 srun -n 2 osu_bw"),
        ("export FI_A=cxi\n$ srun -n 2 osu_bw", "export FI_A=tcp\n$ srun -n 2 osu_bw"),
        ("$ numactl -C 0,1 mpirun -np 2 osu_bw", "$ numactl -C 0,64 mpirun -np 2 osu_bw"),
        ("$ mpirun -np 2 --mca btl self,vader osu_bw", "$ mpirun -np 2 --mca btl self,tcp osu_bw"),
        ("$ docker run --rm a:1 mpirun -np 2 osu_bw", "$ docker run --rm b:2 mpirun -np 2 osu_bw"),
        ("$ module load a\n$ srun -n 2 osu_bw", "$ module swap a b\n$ srun -n 2 osu_bw"),
        ("$ mpirun -np 2 osu_bw", "a table whose command is lost"),
    ],
)  # fmt: skip
def test_runs_that_differ_are_series_of_their_own(one: str, other: str, tmp_path: Path) -> None:
    found = series(text_of([one, other, one]), tmp_path)
    both = [[1000], [2000], [3000]] if "module" in one else [[1000, 3000], [2000]]
    assert sorted(found.values()) == both


def test_repetitions_are_blocks(tmp_path: Path) -> None:
    commands = ["$ srun -n 2 -o a.txt osu_bw", "+ srun -n2 osu_bw -i 5", "$ srun --ntasks=2 osu_bw"]
    found = series(text_of(commands), tmp_path)
    assert found == {
        "pageable@numa:0 -> pageable@numa:1 by mpi[test=bw] of 1048576": [1000, 2000, 3000]
    }


def test_a_loop_has_one_command_for_all_its_tables(tmp_path: Path) -> None:
    text = "$ for i in 1 2; do mpirun -np 2 osu_bw D D; done\n" + 2 * TABLE.format("MPI-CUDA", 7.0)
    assert [len(each) for each in series(text, tmp_path).values()] == [2]


@pytest.mark.parametrize("variable", ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"])
def test_visible_devices_are_places(variable: str, tmp_path: Path) -> None:
    commands = [f"$ {variable}={pair} mpirun -np 2 osu_bw D D" for pair in ("4,5", "4,7", "6,1")]
    found = series(text_of(commands, "MPI-ROCM"), tmp_path)
    assert [each.partition(" by")[0] for each in found] == [
        f"device@gpu:{one} -> device@gpu:{other}" for one, other in ((4, 5), (4, 7), (6, 1))
    ]


@pytest.mark.parametrize(
    "launch",
    ["srun -N 2 -n 2", "srun -n 2", "srun --ntasks-per-node=1 -n 2", "mpirun -np 2 -H p,q",
     "mpirun -np 2 --hostfile where", "mpiexec -n 2 -ppn 1", "mpirun -n 2 --map-by ppr:1:node",
     "mpirun -n 2 --map-by node"],
)  # fmt: skip
def test_devices_of_ranks_on_two_nodes_are_a_label(launch: str, tmp_path: Path) -> None:
    commands = [f"$ CUDA_VISIBLE_DEVICES={n} {launch} osu_bw D D" for n in ("0,1", "2,3")]
    found = series(text_of(commands, "MPI-CUDA"), tmp_path)
    assert len(found) == 2
    assert all("run=CUDA_VISIBLE_DEVICES" in each for each in found)


def test_a_label_is_one_word_of_its_own() -> None:
    assert label_of(["A=1,2", "B=x[3] y"]) == "A=1+2&B=x(3)_y"
    one, other = (label_of([f"A={'x' * LONGEST}{n}"]) for n in (1, 2))
    assert one != other
    assert label_of(["A=é"]) != label_of(["A=è"])


def test_runs_of_several_hosts_in_one_text_are_no_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    one, other = (as_text("all_reduce", 4, [(2**20, time)], named=True) for time in (20.0, 40.0))
    path.write_text(one + other.replace("node3", "node4"))
    found = {str(each.workload) for file in read(path) for each in file.measured}
    assert len(found) == 4
    assert sum("run=host=node4" in each for each in found) == 2


def test_files_of_several_hosts_are_no_blocks(tmp_path: Path) -> None:
    text = as_text("all_reduce", 4, [(2**20, 30.0)], named=True)
    for host in ("p7", "p8"):
        (tmp_path / f"{host}.txt").write_text(text.replace("node3", host))
    found = import_files([tmp_path], tmp_path / "a.wwp", machine="pair")
    assert (found.series, found.visits) == (4, 4)


@pytest.mark.parametrize("title", ["MPI Allgather", "MPI Reduce", "MPI-CUDA Allreduce"])
def test_files_of_which_nothing_is_read_are_not_the_same(title: str, tmp_path: Path) -> None:
    for n, name in enumerate(("a.out", "b.txt", "c.log"), 1):
        table = f"# OSU {title} Latency Test v7.4\n# Size  Avg Latency(us)\n8  {n}.00\n"
        (tmp_path / name).write_text(table)
    (tmp_path / "d.out").write_text(TABLE.format("MPI", 7.0))
    found = import_files([tmp_path], tmp_path / "a.wwp")
    assert [each.path.partition(":")[0] for each in found.unsupported_paths] == [
        "a.out", "b.txt", "c.log"
    ]  # fmt: skip
    assert all("number of its ranks" in each.reason for each in found.unsupported_paths)
