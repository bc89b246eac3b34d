"""Each table has the command that made it, or none; runs that may differ are not blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.imports.test_made_texts import read
from exchange.imports.test_nccl_text import as_text
from exchange.imports.test_run_labels import TABLE, series
from waywiser.exchange.imports.foreign_file import ImportFailed

GATHER = "# OSU MPI Allgather Latency Test v7.4\n# Size  Avg Latency(us)\n64  {:.2f}\n"


def ranks(text: str, folder: Path) -> list[int]:
    """The ranks of each table that is read, in their order."""
    path = folder / "a.txt"
    path.write_text(text)
    try:
        files = read(path)
    except ImportFailed:
        return []
    return [len(set(each.workload.places)) for file in files for each in file.measured]


def runs(one: str, other: str, folder: Path, middle: str = "") -> list[int]:
    """How many blocks each series of two runs of one collective has."""
    path = folder / "a.txt"
    tables = [as_text("all_reduce", 4, [(2**20, time)], named=False) for time in (20.0, 70.0)]
    path.write_text(f"{one}\n{tables[0]}\n{middle}{other}\n{tables[1]}")
    found: dict[str, int] = {}
    for each in (each for file in read(path) for each in file.measured):
        found[str(each.workload)] = found.get(str(each.workload), 0) + 1
    return sorted(found.values())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$ srun -n 3 osu_allgather; srun -n 5 osu_allgather", [3, 5]),
        ("+ mpirun -np 6 osu_allgather && mpirun -np 2 osu_allgather", [6, 2]),
        ("$ ssh w1 'srun -n 3 osu_allgather; srun -n 7 osu_allgather'", [3, 7]),
        ("$ bash -c 'srun -n 3 osu_allgather && srun -n 7 osu_allgather'", [3, 7]),
        ("$ for k in 2 6; do srun -n $k osu_allgather; done", [2, 6]),
        ("$ for k in 3 5\n> do srun -n $k osu_allgather\n> done", []),
        ("$ for k in 3 5; do\n>   srun -n $k osu_allgather\n> done", [3, 5]),
        ("$ for k in {2..3}; do srun -n $k osu_allgather; done", [2, 3]),
        ("$ for k in $LIST; do srun -n $k osu_allgather; done", []),
        ("$ srun -n 3 osu_allgather & srun -n 5 osu_allgather", []),
        ("$ srun -n 3 osu_allgather; srun -n 5 osu_allgather; srun -n 7 osu_allgather", []),
        ("$ srun -n 3 osu_allgather > a; srun -n 5 osu_allgather > b; cat b a", []),
    ],
)
def test_commands_of_one_line_made_the_tables_in_their_order(
    line: str, expected: list[int], tmp_path: Path
) -> None:
    assert ranks(f"{line}\n{GATHER.format(9.0)}\n{GATHER.format(11.0)}", tmp_path) == expected


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ("$ srun -n 3 osu_allgather\nsrun: error: no nodes\n$ ./gather.sh 9", []),
        ("$ srun -n 3 osu_allgather\nfailed\n$ srun -n 4 $(which osu_allgather)", [4]),
        ("$ srun -n 3 osu_allgather\n$ srun -n 6 --what? osu_allgather !", []),
        ("Command: srun -n 3 osu_allgather\n$ python3 sweep.py", []),
        ("$ cat gather.sh\nsrun -n 3 osu_allgather\n$ cat last/gather.txt", []),
        ("$ cat gather.sh\nsrun -n 3 osu_allgather\n$ bash gather.sh", [3]),
        ("Usage: srun -n 3 osu_allgather", []),
        ("# try this: srun -n 3 osu_allgather", []),
        ("$ srun -n 3 osu_allgather\n$ cd /tmp\n$ date", [3]),
        ("$ srun -n 3 osu_allgather > three\n$ srun -n 5 osu_allgather > five\n$ cat three", [3]),
        ("$ srun -n 3 osu_allgather &> x\n$ srun -n 5 osu_allgather &> y\n$ cat z", []),
        ("bench@login:/scratch/omb (dev)$ srun -n 3 osu_allgather", [3]),
        ("srun -n 3 osu_allgather  # one node", [3]),
    ],
)
def test_the_last_command_above_a_table_decides(
    above: str, expected: list[int], tmp_path: Path
) -> None:
    assert ranks(f"{above}\n{GATHER.format(9.0)}", tmp_path) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$ ssh w1 'NCCL_PROTO=LL ./all_reduce_perf -g 4'",
         "$ ssh w1 'NCCL_PROTO=Simple ./all_reduce_perf -g 4'"),
        ("# su bench -c 'NCCL_PROTO=LL ./all_reduce_perf -g 4'",
         "# su bench -c 'NCCL_PROTO=LL128 ./all_reduce_perf -g 4'"),
        ("$ NCCL_PROTO=LL $(which all_reduce_perf) -g 4", "$ $(which all_reduce_perf) -g 4"),
        ("--- NCCL_P2P_LEVEL=SYS ---", "--- NCCL_P2P_LEVEL=LOC ---"),
        ("=== NCCL_P2P_LEVEL=SYS ===", "=== usual ==="),
        ("NCCL_P2P_LEVEL=SYS", "NCCL_P2P_LEVEL=NVL"),
        ("w1:8:9 [0] NCCL INFO NCCL_PROTO set by environment to LL",
         "w1:8:9 [0] NCCL INFO NCCL_PROTO set by environment to Simple"),
        ("==> with.log <==", "==> without.log <=="),
        ("NCCL_PROTO=LL ./all_reduce_perf -g 4 # low latency",
         "NCCL_PROTO=Simple ./all_reduce_perf -g 4 # many bytes"),
        ("Starting NCCL_PROTO=LL ./all_reduce_perf -g 4 ...",
         "Starting NCCL_PROTO=Simple ./all_reduce_perf -g 4 ..."),
        ("$ ./ring.sh", "$ ./tree.sh"),
        ("--- with peer access ---", "--- without peer access ---"),
        ("$ module load a && ./all_reduce_perf -g 4", "$ module load b && ./all_reduce_perf -g 4"),
        ("$ export NCCL_PROTO=LL; ./all_reduce_perf -g 4",
         "$ unset NCCL_PROTO; ./all_reduce_perf -g 4"),
        ("$ source a.sh; ./all_reduce_perf -g 4; source b.sh; ./all_reduce_perf -g 4", ""),
        ("$ NCCL_PROTO=LL ./all_reduce_perf ?", "$ NCCL_PROTO=Simple ./all_reduce_perf ?"),
        ("$ ./all_reduce_perf -g 4 -R $REG", "$ ./all_reduce_perf -g 4 -R $REG"),
        ("$ (export NCCL_PROTO=LL; ./all_reduce_perf -g 4)", "$ ./all_reduce_perf -g 4"),
        ("$ cat s.sh\nNCCL_PROTO=LL ./all_reduce_perf\nNCCL_PROTO=Simple ./all_reduce_perf\n"
         "$ ./s.sh", ""),
        ("$ for p in LL Simple; do NCCL_PROTO=$p ./all_reduce_perf -g 4; done", ""),
        ("$ while read p; do NCCL_PROTO=$p ./all_reduce_perf -g 4; done < protos", ""),
        ("$ NCCL_PROTO=LL ./all_reduce_perf -g 4; NCCL_PROTO=Simple ./all_reduce_perf -g 4", ""),
    ],
)  # fmt: skip
def test_runs_that_may_differ_are_not_blocks(one: str, other: str, tmp_path: Path) -> None:
    assert runs(one, other, tmp_path) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$ ./gather.sh", "$ ./gather.sh"),
        ("=== run 1 ===", "=== run 2 ==="),
        ("$ export NCCL_PROTO=LL; ./all_reduce_perf -g 4", "$ ./all_reduce_perf -g 4"),
        ("--- NCCL_P2P_LEVEL=SYS ---", "--- NCCL_P2P_LEVEL=SYS ---"),
        ("$ NCCL_PROTO=LL ./all_reduce_perf -g 4; NCCL_PROTO=LL ./all_reduce_perf -g 4", ""),
        ("$ for n in a b; do ./all_reduce_perf -g 4; done", ""),
        ("$ for n in $(seq 1 2); do NCCL_PROTO=LL ./all_reduce_perf -g 4; done", ""),
        ("$ while true; do ./all_reduce_perf -g 4; done", ""),
        ("$ X=$HOME/lib ./all_reduce_perf -g 4", "$ X=$HOME/lib ./all_reduce_perf -g 4"),
        ("", ""),
    ],
)
def test_runs_with_the_same_command_are_blocks(one: str, other: str, tmp_path: Path) -> None:
    assert runs(one, other, tmp_path) == [2, 2]


@pytest.mark.parametrize(
    ("lines", "applied"),
    [
        ("$ cat setup.sh\nexport UCX_TLS=sm\n$ srun -n 2 osu_bw", False),
        ("$ export UCX_TLS=sm\n$ ssh w4\n$ srun -n 2 osu_bw", False),
        ("$ srun -n 2 osu_bw\nyou can do\nexport UCX_TLS=sm\n$ srun -n 2 osu_bw", False),
        ("$ export UCX_TLS=sm\n$ srun -n 2 osu_bw", True),
        ("export UCX_TLS=sm\nsrun -n 2 osu_bw", True),
    ],
)
def test_only_what_ran_in_this_shell_changes_it(lines: str, applied: bool, tmp_path: Path) -> None:
    text = f"{lines}\n{TABLE.format('MPI', 7.0)}$ UCX_TLS=rc srun -n 2 osu_bw\n"
    found = series(f"{text}{TABLE.format('MPI', 8.0)}", tmp_path)
    assert any("UCX_TLS=sm" in each for each in found) == applied


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("kubectl exec -it bench-0 -c mpi -n hpc -- mpirun -np 6 osu_allgather", 6),
        ("mpiexec_mpt -np 6 osu_allgather -f", 6),
        ("salloc -N 2 -n 6 srun osu_allgather", 6),
        ("salloc -n 32 mpirun -np 6 osu_allgather", 6),
        ("kubectl --context west -n hpc exec bench-0 -- mpirun -np 6 osu_allgather", 6),
        ("docker compose exec bench mpirun -np 6 osu_allgather", 6),
        ("docker-compose run --rm bench mpirun -np 6 osu_allgather", 6),
        ("singularity -q exec --nv a.sif mpirun -np 6 osu_allgather", 6),
        ("runuser -u ann -- mpirun -np 6 osu_allgather", 6),
        ("bsub -Is -n 12 -q hpc jsrun -n 2 -a 3 osu_allgather", 6),
        ("N=6; mpirun -np $N osu_allgather", 6),
        ("watch -n 5 mpirun -np 6 osu_allgather", 6),
    ],
)
def test_more_launchers_say_how_many_ranks_there_are(
    command: str, expected: int, tmp_path: Path
) -> None:
    assert ranks(f"$ {command}\n{GATHER.format(9.0)}", tmp_path) == [expected]


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -H a,b -npersocket 3 osu_allgather",
        "mpirun --map-by ppr:2:numa -H a,b osu_allgather",
        "xargs -n 1 mpirun -np 4 osu_allgather",
        "script -c 'mpirun -np 4 osu_allgather' log",
    ],
)
def test_what_does_not_say_the_number_of_ranks_is_named(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"$ {command}\n{GATHER.format(9.0)}")
    (found,) = read(path)
    (listed,) = found.unsupported_paths
    assert not found.measured
    assert "cannot be read as a command" in listed.reason or "does not say it" in listed.reason


def test_an_allocation_starts_its_program_once(tmp_path: Path) -> None:
    line = "$ salloc -N 1 -n 12 ./all_reduce_perf -g 4"
    assert runs(line, line, tmp_path) == [2, 2]
    assert ranks(f"$ salloc -n 6 osu_allgather\n{GATHER.format(9.0)}", tmp_path) == []


@pytest.mark.parametrize(
    "variable", ["SLURM_STEP_ID", "SLURM_SRUN_COMM_PORT", "SSH_CLIENT", "XDG_SESSION_ID"]
)
def test_variables_of_a_session_are_no_settings(variable: str, tmp_path: Path) -> None:
    lines = [f"export {variable}={n}\n./all_reduce_perf -g 4" for n in (1, 2)]
    assert runs(*lines, tmp_path) == [2, 2]


NVBANDWIDTH = """nvbandwidth Version: v0.8
Device 0: NVIDIA H200 (00000000:1b:00)
Device 1: NVIDIA H200 (00000000:43:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     51.10     52.20

SUM host_to_device_memcpy_ce 103.30
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("numactl -m 1 nvbandwidth", "pinned@numa:1 -> device@gpu:0 by copy-engine of"),
        ("numactl --membind=0,1 nvbandwidth", "run=membind=0+1"),
        ("numactl --interleave=all nvbandwidth", "run=interleave=all"),
        ("docker run --gpus device=4,6 img nvbandwidth", "device@gpu:6 by copy-engine of"),
        ("docker run --gpus '\"device=4,6\"' img nvbandwidth", "device@gpu:4 by copy-engine of"),
        ("NVIDIA_VISIBLE_DEVICES=5,7 nvbandwidth", "run=NVIDIA_VISIBLE_DEVICES=5+7"),
        ("srun -n 1 --gpu-bind=map_gpu:3,1 nvbandwidth", "run=gpu-bind=map_gpu:3+1"),
        ("CUDA_VISIBLE_DEVICES=GPU-aa,GPU-bb nvbandwidth", "run=CUDA_VISIBLE_DEVICES=GPU-aa"),
        ("docker run --gpus all img nvbandwidth", "device@gpu:1 by copy-engine of"),
    ],
)
def test_what_places_memory_or_chooses_gpus_is_read_or_shown(
    command: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"$ {command} -t host_to_device_memcpy_ce\n{NVBANDWIDTH}")
    found = [str(each.workload) for file in read(path) for each in file.measured]
    assert any(expected in each for each in found), found
