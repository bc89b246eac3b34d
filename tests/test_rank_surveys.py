"""Surveys of ranks: the command line, real MPI libraries, the fake GPU."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.measure.ranks.watching import OwnFiles, descendants, is_running, own_files

from mpi_wheels import mpicc_of
from own_lock import commands, finish
from waywiser.profile import Profile
from waywiser.words.records import Visit

OSU_LATENCY = "# OSU MPI Latency Test v7.4\n# Size  Latency (us)\n64  0.8\n4096  2.5\n"

Run = Callable[..., "subprocess.Popen[str]"]

MPI = "pageable@rank:0 -> pageable@rank:1 by mpi"

EXCHANGE = "pageable@rank:0-1 -> pageable@rank:0-1 by alltoall"

SERIES = 3 * 7 + 1
"""Messages and two exchanges, of 64 B to 4 KiB; and how well ranks start together."""

HOST = ("survey", "--ranks", "2", "--gpus", "none", "--preset", "quick")


@pytest.fixture
def files() -> Iterator[OwnFiles]:
    """What the commands that `run` starts make, of which nothing may be left."""
    with own_files() as files:
        yield files


@pytest.fixture
def run(fake_native_environment: dict[str, str], tmp_path: Path, files: OwnFiles) -> Iterator[Run]:
    """Starts ``waywiser`` over the fake GPU in ``tmp_path``."""
    own = {**files.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment = {**fake_native_environment, **own}
    with commands(tmp_path, environment) as start:
        yield start


@dataclass(frozen=True)
class Stopped:
    """A survey that was killed, went on, was interrupted, and went on to its end."""

    run: Run
    file: Path
    killed: list[Visit]
    """The visits that were stored when it was killed."""
    interrupted: list[Visit]
    said: str
    """The output of the interrupted survey."""
    environments: list[list[str]]
    """The environment of each rank."""


@pytest.fixture(scope="module")
def stopped(
    fake_native_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stopped]:
    folder = tmp_path_factory.mktemp("stopped")
    file = folder / "a.wwp"
    environment = {
        **fake_native_environment,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "WAYWISER_MPICC": mpicc_of("openmpi"),
    }
    with own_files() as files, commands(folder, {**environment, **files.environment}) as run:
        process = run(*HOST, "--sizes", "64:4KiB", "-o", "a.wwp")
        wait_for(lambda: process.poll() is not None or len(visits_of(file)) >= 2)
        ranks = [pid for pid in descendants(process.pid) if is_rank(pid)]
        environments = [environment_of(pid) for pid in ranks]
        process.kill()
        finish(process)
        wait_for(lambda: not any(map(is_running, ranks)))
        wait_for(lambda: not files.left())
        killed = visits_of(file)
        process = run("survey", "--resume", "-o", "a.wwp")
        wait_for(lambda: process.poll() is not None or len(visits_of(file)) > len(killed))
        process.send_signal(signal.SIGINT)
        code, _, said = finish(process)
        assert code == 130, said
        interrupted = visits_of(file)
        code, _, err = finish(run("survey", "--resume", "-o", "a.wwp"))
        assert code == 0, err
        wait_for(lambda: not files.left())
        yield Stopped(run, file, killed, interrupted, said, environments)


def survey(library: str, *more: str) -> tuple[str, ...]:
    return ("survey", "--ranks", "2", "--mpicc", mpicc_of(library), "--preset", "quick", *more)


def visits_of(file: Path) -> list[Visit]:
    """Returns the visits of a profile; none before it exists."""
    if not file.exists():
        return []
    with Profile.open(file) as profile:
        return list(profile.visits())


def wait_for(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.02)


def test_a_plan_of_messages_is_shown(run: Run) -> None:
    options = (*HOST, "--mpicc", mpicc_of("mpich"), "--sizes", "64,64KiB", "--dry-run")
    code, out, err = finish(run(*options))
    assert code == 0, err
    assert f"{MPI}: 2 sizes, 64 B to 64 KiB" in out and "2 ranks of MPICH 5" in out
    assert "neither end is on a GPU: nothing is staged" in " ".join(out.split())
    code, out, err = finish(run(*options, "--json"))
    assert code == 0, err
    planned = [each["workload"] for each in json.loads(out)["series"]]
    assert planned[:2] == [f"{MPI} of 64", f"{MPI} of 65536"]
    exchanges = [
        f"{EXCHANGE}{each} of {n}" for each in ("", "[exchange=pairs]") for n in (64, 65536)
    ]
    assert planned[2:] == [*exchanges, "barrier-skew@rank:0-1"]


@pytest.mark.slow
def test_nothing_that_was_finished_is_lost_or_measured_again(stopped: Stopped) -> None:
    after = visits_of(stopped.file)
    assert len(stopped.killed) < len(stopped.interrupted) < len(after) == SERIES
    assert after[: len(stopped.interrupted)] == stopped.interrupted
    assert stopped.interrupted[: len(stopped.killed)] == stopped.killed
    assert len({(v.workload.identity, v.block) for v in after}) == SERIES
    assert all(visit.failure is None for visit in after)
    assert "go on with: waywiser survey --resume -o a.wwp" in stopped.said
    assert "Traceback" not in stopped.said


@pytest.mark.slow
def test_multicast_is_off_in_ranks(stopped: Stopped) -> None:
    assert len(stopped.environments) == 2
    assert all("NCCL_NVLS_ENABLE=0" in each for each in stopped.environments)


@pytest.mark.slow
def test_a_survey_does_not_go_on_with_another_library(stopped: Stopped) -> None:
    before = visits_of(stopped.file)
    again = ("survey", "--resume", "-o", "a.wwp")
    code, _, err = finish(stopped.run(*again, WAYWISER_MPICC=mpicc_of("mpich")))
    assert code == 2 and err.count("\n") == 1
    assert "a.wwp: its MPI library is Open MPI 5.0.11, here it is MPICH 5.0.2 (name its mpi" in err
    assert visits_of(stopped.file) == before


@pytest.mark.slow
def test_messages_are_stored_and_shown_by_all_verbs(stopped: Stopped) -> None:
    with Profile.open(stopped.file) as profile:
        assert profile.machine.messages == "Open MPI 5.0.11"
        assert [rank.index for rank in profile.machine.ranks] == [0, 1]
        assert "Open MPI v5.0.11" in profile.environment["messages"]["library"]
    for verb, says in (
        (("show", "a.wwp", "--only", "between ranks"), MPI),
        (("report", "a.wwp", "-o", "a.html"), ""),
        (("export", "a.wwp", "-o", "a.csv"), ""),
        (("compare", "a.wwp", "a.wwp"), "the same survey"),
    ):
        code, out, err = finish(stopped.run(*verb))
        assert code == (3 if verb[0] == "compare" else 0), f"{verb}: {err}"  # it decides nothing
        assert says in out
    exported = stopped.file.with_suffix(".csv").read_text()
    assert MPI in exported and "barrier-skew@rank:0-1" in exported
    assert "rank:1" in stopped.file.with_suffix(".html").read_text()


@pytest.mark.slow
def test_imported_messages_are_compared_with_those_of_a_survey(stopped: Stopped) -> None:
    stopped.file.with_name("osu.txt").write_text(OSU_LATENCY)
    assert finish(stopped.run("import", "osu.txt", "-o", "osu.wwp"))[0] == 0
    _, out, err = finish(stopped.run("compare", "osu.wwp", "a.wwp", "--json"))
    (path,) = [each for each in json.loads(out)["paths"] if each["parts"]]
    assert path["curve"] == MPI, err
    assert [size["bytes"] for part in path["parts"] for size in part["sizes"]] == [64, 4096]


def is_rank(pid: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"waywiser.measure.ranks.rank_worker" in words and b"-m" in words[:2]


def environment_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_text().split("\0")


@pytest.mark.slow
def test_gpus_that_mpi_does_not_take_are_staged(run: Run, tmp_path: Path) -> None:
    """The library crashes where it is given memory of a GPU as it is: that is tried before."""
    only = (
        "--only",
        "device@rank:0 -> device@rank:1*",
        "--only",
        "device*by alltoall[exchange=pairs]",
    )
    sizes = ("--sizes", "300007", "--memory", "64MiB")
    crash = f"crash=copy@1;once={tmp_path / 'struck'}"
    process = run(*survey("mpich", *sizes, *only, "-o", "a.wwp"), WAYWISER_FAKE=crash)
    code, out, err = finish(process)
    assert code == 0, err
    assert "the MPI library does not send device: rank " in err
    assert "the MPI library does not send device memory" in " ".join(out.split())
    found = {str(visit.workload): visit for visit in visits_of(tmp_path / "a.wwp")}
    assert all(visit.failure is None for visit in found.values())
    assert [text.partition(" by ")[2] for text in sorted(found)] == [
        "mpi-staged of 300007", "alltoall[exchange=pairs] of 300007",
    ]  # fmt: skip
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert [rank.gpu for rank in profile.machine.ranks] == [0, 1]
        assert [rank.unsent for rank in profile.machine.ranks] == [("device",), ("device",)]


ALLTOALLV_CRASHES = """#include <mpi.h>
int MPI_Alltoallv(const void *s, const int n[], const int a[], MPI_Datatype t, void *r,
                  const int m[], const int b[], MPI_Datatype u, MPI_Comm c)
{
    __builtin_trap();
}
"""


def mpicc_whose_alltoallv_crashes(folder: Path) -> str:
    path, source = folder / "mpicc", folder / "alltoallv.c"
    source.write_text(ALLTOALLV_CRASHES)
    own = f'{mpicc_of("mpich")} -DMPI_Alltoallv=crashing_alltoallv "$@"'
    path.write_text(f"#!/bin/sh\ncase $* in *.c*) exec {own} {source};; *) exec {own};; esac\n")
    launcher = folder / "mpiexec"
    launcher.write_text(f'#!/bin/sh\nexec {Path(mpicc_of("mpich")).with_name("mpiexec")} "$@"\n')
    for each in (path, launcher):
        each.chmod(0o755)
    return str(path)


@pytest.mark.slow
def test_gpus_that_only_collective_calls_do_not_take_are_exchanged_in_pairs(
    run: Run, tmp_path: Path
) -> None:
    """That is tried too, with the sends, before anything is measured."""
    only = ("--only", "device*by alltoall[*strategy=direct]")
    library = mpicc_whose_alltoallv_crashes(tmp_path)
    command = ["survey", "--ranks", "2", "--mpicc", library, "--sizes", "64", "--memory", "64MiB"]
    code, _, err = finish(run(*command, "--preset", "quick", *only, "-o", "a.wwp"))
    assert code == 0, err
    assert "collective calls of the MPI library do not take device memory: " in err
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert [rank.unsent for rank in profile.machine.ranks] == [(), ()]
        assert [rank.unexchanged for rank in profile.machine.ranks] == [("device", "managed")] * 2
    found = visits_of(tmp_path / "a.wwp")
    assert found and all(visit.failure is None for visit in found)
    assert all("exchange=pairs,strategy=direct" in str(visit.workload) for visit in found)


def mpicc_that_fails(folder: Path) -> str:
    path = folder / "mpicc"
    path.write_text("#!/bin/sh\necho 'bridge.c:5:10: fatal error: mpi.h: not there' >&2\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def test_a_library_or_launcher_that_cannot_be_used_is_one_line_and_leaves_no_profile(
    run: Run, tmp_path: Path, files: OwnFiles
) -> None:
    """The error has the path and a remedy, and comes before anything is measured or written."""
    host = ("survey", "--ranks", "2", "--gpus", "none", "--sizes", "64", "-o", "a.wwp")
    mpich, failing = mpicc_of("mpich"), mpicc_that_fails(tmp_path)
    other = f"{mpich.replace('mpicc', 'mpiexec')} -n {{ranks}} {{command}}"
    cases = (
        ((), {"PATH": str(tmp_path / "nothing")}, "no mpicc was found: not with --mpicc, in WAY"),
        (("--mpicc", failing), {}, f"{failing}: mpicc cannot compile the bridge to MPI: bridge.c:"),
        (
            ("--mpicc", mpich, "--launcher", "false {ranks} {command}"),
            {},
            "false: the launcher ended with status 1 when 0 of 2 ranks had connected (see whether",
        ),
        (
            ("--mpicc", mpicc_of("openmpi"), "--launcher", other),
            {},
            "it is not the launcher of Open MPI (use the mpiexec of this library, or name the mpi",
        ),
    )
    for arguments, variables, says in cases:
        code, out, err = finish(run(*host, *arguments, **variables))
        assert code == 2 and out == ""
        (line,) = [line for line in err.splitlines() if line.startswith("waywiser: error: ")]
        assert says in line and line == err.splitlines()[-1]
        assert not (tmp_path / "a.wwp").exists()
    assert files.seen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--mpicc", "mpicc"), "--mpicc is for --ranks (add it)"),
        (("--ranks-per-gpu", "2"), "--ranks-per-gpu is for --ranks (add it)"),
        (("--ranks", "2", "--mpicc", "/nowhere/mpicc"), "/nowhere/mpicc: --mpicc names no program"),
        (("--ranks", "2", "--model"), "--model measures no messages between ranks"),
        (("--ranks", "1"), "--ranks"),
        (("--rank-cpus", "far"), "--rank-cpus is for --ranks (add it)"),
        (("--workload", MPI), "there is no rank:0 in this launch"),
    ],
)
def test_what_cannot_be_meant_is_one_line(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, out, err = finish(run("survey", *arguments, "-o", "a.wwp"))
    assert code == 2 and out == ""
    assert says in err and err.count("\n") == 1


@pytest.mark.slow
def test_the_best_chunk_is_searched(run: Run, tmp_path: Path) -> None:
    only = ("--only", "device@rank:0 -> device@rank:1*", "--sizes", "64KiB", "--memory", "64MiB")
    library = ("--ranks", "2", "--mpicc", mpicc_of("mpich"))
    code, out, err = finish(run("tune", "a.wwp", *library, *only, "--grid", "1"))
    assert code == 0, err
    assert "the grid is complete" in out
    found = [visit for visit in visits_of(tmp_path / "a.wwp") if visit.failure is None]
    chunks = {visit.workload.transfers[0].parameters.get("chunk") for visit in found}
    assert chunks >= {None, "65536", "2097152"}
    code, out, err = finish(run("predict", "a.wwp", "--crossovers"))
    assert code == 0, err
    assert "mpi-staged[chunk=2MiB]" in out
    code, _, err = finish(run("tune", "b.wwp", "--ranks-per-gpu", "2"))
    assert code == 2 and "--ranks-per-gpu is for --ranks" in err
