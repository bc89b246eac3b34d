"""What a survey of a cluster lacks on this machine is found before the first test."""

from __future__ import annotations

import os
import resource
import shlex
from pathlib import Path

import pytest

from waywiser import cli
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys import survey as survey_module
from waywiser.cluster.surveys.survey import survey_cluster
from waywiser.cluster.surveys.survey_hosts import HostsUnknown, SurveyHosts, survey_hosts
from waywiser.cluster.surveys.survey_needs import missing_needs
from waywiser.measure.ranks.mpi_library import MpiError
from waywiser.profile.cluster_folder import ClusterFolder
from waywiser.words.cluster import ClusterPlan

Output = pytest.CaptureFixture[str]

OPTIONS = ClusterSurveyOptions(nodes=3)
BRIDGE_TEXT = "MPICH Version: 5.0.2"


def program(path: Path, text: str = "exit 0") -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def without_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No MPI is in PATH or in the Python environment, and this is no allocation of Slurm."""
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "WAYWISER_MPICC", TOKEN_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))


def missing(
    options: ClusterSurveyOptions = OPTIONS, transport: str = "mpi", agents: str = ""
) -> list[str]:
    hosts = SurveyHosts(("a", "b"), "hostfile", agents) if agents else SurveyHosts()
    return [str(error) for error in missing_needs(options, hosts, transport)]


def test_mpi_needs_a_compiler_and_nccl_needs_nothing_here() -> None:
    (line,) = missing()
    assert line.startswith("no mpicc was found") and "load the MPI module of this site" in line
    assert missing(transport="nccl") == missing(transport="") == []


def test_a_compiler_that_compiles_nothing(tmp_path: Path) -> None:
    mpicc = program(tmp_path / "bin" / "mpicc", "echo 'error: no mpi.h' >&2; exit 1")
    (line,) = missing()
    assert line.startswith(f"{mpicc}: mpicc cannot compile the bridge to MPI: error: no mpi.h")


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an ``mpicc`` whose bridge is there, and which has no ``mpiexec`` beside it."""
    program(tmp_path / "bin" / "mpicc")
    library = "waywiser.measure.ranks.mpi_library"
    monkeypatch.setattr(f"{library}._compile", lambda mpicc: b"a bridge")
    monkeypatch.setattr(f"{library}._library_text", lambda mpicc, bridge: BRIDGE_TEXT)
    return tmp_path / "bin"


def test_mpi_needs_a_launcher(compiled: Path) -> None:
    (line,) = missing()
    assert "no mpiexec is beside mpicc" in line
    program(compiled / "mpiexec")
    assert missing() == []


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("jsrun -n {ranks} {command}", "jsrun: the launcher cannot be run: there is no such"),
        ("mpiexec -n {ranks}", "the launcher cannot be used: {command} is missing"),
        ("mpiexec -n {ranks} -h {host} {command}", "the launcher cannot be used: there is no {h"),
    ],
)
def test_a_launcher_of_ranks_that_cannot_be_used(template: str, says: str, compiled: Path) -> None:
    program(compiled / "mpiexec")
    (line,) = missing(ClusterSurveyOptions(nodes=3, launcher=template))
    assert says in line
    usable = "mpiexec -n {ranks} -f {hostfile} {command}"
    assert missing(ClusterSurveyOptions(nodes=3, launcher=usable)) == []


def test_a_launcher_of_agents_is_looked_for_whatever_the_transport(tmp_path: Path) -> None:
    (line,) = missing(transport="nccl", agents="pdsh -w {hosts} {command}")
    assert line.startswith("pdsh: the launcher cannot be run: there is no such program (load")
    program(tmp_path / "bin" / "pdsh")
    assert missing(transport="nccl", agents="pdsh -w {hosts} {command}") == []


def test_more_nodes_than_files_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    assert missing(ClusterSurveyOptions(nodes=900), "nccl") == []
    (line,) = missing(ClusterSurveyOptions(nodes=2000), "nccl")
    assert (
        "may open 1024 files, and 2000 nodes take 2064 (raise the limit: ulimit -Hn 2064)" in line
    )


def test_a_token_that_can_be_guessed_and_no_place_for_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "guess")
    (line,) = missing(transport="nccl")
    assert "has fewer than 16 characters" in line

    def no_folder(path: Path, mode: int = 0o777) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "mkdir", no_folder)
    (line,) = missing(transport="nccl")
    assert "no temporary folder can be made: No space left" in line


def test_a_survey_over_mpi_ends_before_it_waits_for_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listens(*_: object) -> None:
        raise AssertionError("the coordinator listens")

    monkeypatch.setattr(survey_module, "Coordinator", listens)
    with (
        ClusterFolder.create(tmp_path / "c", ClusterPlan("mpi", 0)) as folder,
        pytest.raises(MpiError, match="no mpicc was found"),
    ):
        survey_cluster(OPTIONS, SurveyHosts(), folder, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("", 0, "missing if most nodes have no GPU with NCCL: no mpicc was found"),
        ("--transport nccl", 0, ""),
        ("--transport mpi", 1, "missing: no mpicc was found"),
        ("--transport nccl -o full", 1, "missing: full: the folder is not empty (name another"),
        ("--transport nccl -o full/file/c", 1, "missing: full/file/c: "),
        ("--transport nccl --hostfile hosts --launcher 'x {command}'", 1, "missing: x: the laun"),
    ],
)
def test_a_dry_run_says_what_is_missing(
    words: str,
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts").write_text("localhost\n")
    Path("full").mkdir()
    Path("full/file").touch()
    command = ["cluster", "survey", "--nodes", "3", "--dry-run", *shlex.split(words)]
    assert cli.run(command) == code
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if line.startswith("missing")]
    assert [line for line in lines if line.startswith(says)] == lines[: bool(says)]
    assert len(lines) == bool(says), said


def test_a_dry_run_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["cluster", "survey", "--nodes", "3", "--dry-run", "-o", "a/b"]
    assert cli.run(words) == 0
    assert not Path("a").exists()


def test_slurms_variables_without_srun_are_named(tmp_path: Path) -> None:
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "PATH": str(tmp_path)}
    with pytest.raises(HostsUnknown, match="srun, which starts the agents, is not in PATH"):
        survey_hosts(ClusterSurveyOptions(), job)
    assert survey_hosts(ClusterSurveyOptions(nodes=2), job).names == ()
    (tmp_path / "srun").touch(mode=0o755)
    assert survey_hosts(ClusterSurveyOptions(), job).origin == "slurm"
