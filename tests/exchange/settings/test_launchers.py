"""What launchers take, as text, by the command, and as real launchers understand it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from machine.captured import machine as captured
from mpi_wheels import mpicc_of
from waywiser.analysis.questions.rank_binding import BoundRank, RankBinding
from waywiser.cli import run
from waywiser.exchange.settings.launchers import mpich, openmpi, slurm
from waywiser.measure.ranks.launcher import launch_environment
from waywiser.profile.writable import write_profile

ONE_CPU = RankBinding("n", tuple(BoundRank(n, n, n, (2 * n,), (4 * n + 1,)) for n in range(2)), ())
TWO_CORES = RankBinding(
    "n", (BoundRank(0, 0, 0, (0, 1), (0, 2, 8, 10)), BoundRank(1, 1, 1, (2, 4), (64, 65))),
    ("gpu:0: numa:0 was measured to be better",),
)  # fmt: skip


def test_slurm() -> None:
    assert slurm(ONE_CPU) == "--ntasks=2 --cpu-bind=map_cpu:1,5\n"
    assert slurm(TWO_CORES) == "--ntasks=2 --cpu-bind=mask_cpu:0x505,0x30000000000000000\n"


def test_mpich() -> None:
    assert mpich(TWO_CORES) == "-n 2 -bind-to user:0+2+8+10,64+65\n"


def test_open_mpi_has_a_rankfile_of_logical_cores() -> None:
    lines = openmpi(TWO_CORES).splitlines()
    assert lines[0] == "# gpu:0: numa:0 was measured to be better"
    assert [line for line in lines if not line.startswith("#")] == [
        "rank 0=n slot=0-1",
        "rank 1=n slot=2,4",
    ]


@pytest.fixture
def two_sockets(tmp_path: Path) -> str:
    file = tmp_path / "two.wwp"
    write_profile(file, captured("two-socket-4gpu"), {}, [], plan_json="{}", command=("waywiser",))
    return str(file)


def test_the_command_writes_what_a_launcher_takes_and_why(
    two_sockets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", two_sockets, "--for", "slurm"]
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert out == "--ntasks=4 --cpu-bind=mask_cpu:0xff,0xff00,0xff0000,0xff000000\n"
    assert "gpu:2: numa:1 is named by the system, and no measurement decides" in err
    assert "rank 3: gpu:3, CPUs 24-31 of numa:1" in err
    assert run([*words, "--ranks-per-gpu", "8"]) == 0
    cpus = ",".join(map(str, range(32)))
    assert capsys.readouterr().out == f"--ntasks=32 --cpu-bind=map_cpu:{cpus}\n"
    assert run([*words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["text"] == out and document["binding"]["ranks"][1]["cpus"] == [*range(8, 16)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--for", "pbs"], "--for does not know 'pbs' (write --for and one of waywiser, ucx, "),
        (["other.wwp", "--for", "slurm"], "--for slurm is of one profile"),
        (["--for", "slurm", "--ranks-per-gpu", "0"], "is not a whole number from 1 to 256"),
        (["--for", "slurm", "--ranks-per-gpu", "9"], "16 cores for 18 processes"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    two_sockets: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", two_sockets, *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and says in err and err.count("\n") == 1


SHOWS = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status | cut -f2"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_launchers_of_mpi_libraries_place_processes_so(name: str, tmp_path: Path) -> None:
    """One process on the last CPU, by its number and by that of its core: this host's cores have
    one thread each, or its numbers would not be those of CPUs."""
    cpus = sorted(os.sched_getaffinity(0))
    if cpus != list(range(len(cpus))) or len(cpus) < 2 or not has_single_threads(cpus):
        pytest.skip("logical and other numbers of CPUs differ here")
    last = cpus[-1]
    found = RankBinding(socket.gethostname(), (BoundRank(0, 0, 0, (last,), (last,)),), ("why",))
    if name == "openmpi":
        file = tmp_path / "ranks"
        file.write_text(openmpi(found))
        options = ["-n", "1", "--map-by", f"rankfile:file={file}"]
    else:
        options = mpich(found).split()
    launcher = Path(mpicc_of(name)).with_name("mpiexec")
    answer = subprocess.run(
        [launcher, *options, *SHOWS],
        env=launch_environment(1, "", str(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == [str(last)]


def has_single_threads(cpus: list[int]) -> bool:
    siblings = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return all(Path(siblings.format(cpu)).read_text().strip() == str(cpu) for cpu in cpus)
