"""``cluster survey`` and ``join`` as commands: their options, their plan, and how they end."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from analysis.cluster.stored_clusters import stored_cluster
from cluster.simulated_transport import SimulatedTransport, nodes
from mpi_wheels import mpicc_of
from waywiser import cli
from waywiser.analysis.cluster.procedure import next_round
from waywiser.analysis.cluster.verdict import verdict
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.notebook import cluster_call
from waywiser.notebook.cluster_call import resume_command
from waywiser.profile.cluster_folder import ClusterFolder, read_cluster
from waywiser.words.cluster import ClusterPlan

Output = pytest.CaptureFixture[str]

TOKEN = "0123456789abcdef"

PATIENCE_SECONDS = 120.0


@pytest.fixture(autouse=True)
def outside_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "the nodes to survey are not known (run it in a Slurm allocation, or "),
        ("--nodes 1", "--nodes 1 is not a whole number from 2 to 10000"),
        ("--nodes 3 --retry", "--resume needs the folder (name it with -o)"),
        ("--nodes 3 --resume", "--resume needs the folder (name it with -o)"),
        ("--hostfile missing", "missing: cannot be read: No such file"),
        ("--nodes 3 --transport ib", "there is no transport 'ib' (write one of nccl, mpi)"),
        ("--nodes 3 --size many", "'many'"),
        ("--nodes 3 --groups missing", "missing: cannot be read: No such file"),
        ("--nodes 3 --address host:port", "host:port: is no address"),
        ("--hostfile here --launcher 'run {command} {x}'", "the launcher cannot be used"),
        ("--hostfile here --launcher '/missing {command}'", "/missing: the launcher cannot be run"),
    ],
)
def test_options_that_cannot_be_meant(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").write_text("localhost\n")
    assert cli.run(["cluster", "survey", *shlex.split(words)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and says in said.err.splitlines()[-1]
    assert [each.name for each in tmp_path.iterdir()] == ["here"]


def test_a_folder_that_has_something_stays_as_it_is(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "mine").touch()
    assert cli.run(["cluster", "survey", "--nodes", "2", "-o", str(tmp_path)]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("option", ["--seed 3", "--transport nccl", "--size 1MiB", "--groups g"])
def test_a_resume_has_the_plan_of_the_folder(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g").write_text("a: node-[1-2]\n")
    ClusterFolder.create(tmp_path / "c", ClusterPlan("mpi", 0)).close()
    words = ["--nodes", "2", "--resume", "-o", str(tmp_path / "c"), *option.split()]
    assert cli.run(["cluster", "survey", *words]) == 2
    assert f"{option.split()[0]} cannot be changed" in capsys.readouterr().err
    assert read_cluster(tmp_path / "c").plan == ClusterPlan("mpi", 0)


def test_a_resume_may_repeat_the_options_of_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch file is submitted again as it is."""
    (tmp_path / "g").write_text("a: n[1-2]\nb: n[3-9]\n")
    groups = {"a": ("n1", "n2"), "b": ("n3",)}
    plan = ClusterPlan("mpi", 3, groups, "file", 2, 2**20)
    ClusterFolder.create(tmp_path / "c", plan).close()
    resumed: list[ClusterPlan] = []
    monkeypatch.setattr(
        cluster_call, "survey_cluster", lambda _, __, folder, ___: resumed.append(folder.plan)
    )
    words = ["cluster", "survey", "--nodes", "3", "--resume", "-o", str(tmp_path / "c")]
    words += ["--transport", "mpi", "--seed", "3", "--uplink-pairs", "2", "--size", "1MiB"]
    cli.run([*words, "--groups", str(tmp_path / "g")])
    assert resumed == [plan]


def test_the_plan_of_a_run_is_short_and_complete(capsys: Output) -> None:
    words = ["cluster", "survey", "--nodes", "32", "--transport", "nccl", "--dry-run"]
    assert cli.run(words) == 0
    first, *phases = capsys.readouterr().out.splitlines()
    found = re.fullmatch(r"32 nodes: (\d+) tests in (\d+) rounds, about (.*) if .*", first)
    assert found and int(found[1]) >= 32 * 31 // 2
    assert [line.split(":")[0].strip() for line in phases] == [
        *("check of each node by itself", "hangs", "pairs", "collective")
    ]


def test_the_plan_of_a_resume_is_what_is_left(tmp_path: Path, capsys: Output) -> None:
    folder = stored_cluster(tmp_path / "c", nodes=8)
    words = ["cluster", "survey", "--dry-run", "--json", "--nodes", "8", "-o"]
    assert cli.run([*words, str(tmp_path / "new"), "--transport", "nccl"]) in (0, 1)
    whole = json.loads(capsys.readouterr().out)
    assert cli.run([*words, str(folder), "--resume"]) in (0, 1)
    left = json.loads(capsys.readouterr().out)
    assert len(left["nodes"]) == len(whole["nodes"]) == 8
    assert left["time"]["tests"] < whole["time"]["tests"]


@pytest.mark.parametrize(("nodes", "seconds"), [(32, 180), (1024, 1200)])
def test_the_plan_keeps_to_its_time(nodes: int, seconds: float, capsys: Output) -> None:
    words = ["cluster", "survey", "--nodes", str(nodes), "--dry-run", "--json"]
    assert cli.run(words) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["time"]["seconds"] < seconds
    assert plan["time"]["tests"] == sum(phase["tests"] for phase in plan["time"]["phases"])
    assert len(plan["nodes"]) == nodes


def test_hosts_of_a_file_and_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    (tmp_path / "hosts").write_text("localhost\n127.0.0.1 slots=8\n")
    words = ["cluster", "survey", "--dry-run", "--json"]
    assert cli.run([*words, "--hostfile", str(tmp_path / "hosts")]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == ["localhost", "127.0.0.1"]
    (tmp_path / "hosts").write_text("localhost\nlocalhost\n")
    assert cli.run([*words, "--hostfile", str(tmp_path / "hosts")]) == 2
    assert f"{tmp_path / 'hosts'}, line 2: localhost is named twice" in capsys.readouterr().err
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    (tmp_path / "srun").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert cli.run(words) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == ["n1", "n2", "n3"]


def test_groups_are_planned_with(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "groups").write_text("a: node-[1-4]\nb: node-[5-8]\n")
    words = ["cluster", "survey", "--nodes", "8", "--dry-run", "--json"]
    assert cli.run([*words, "--groups", str(tmp_path / "groups")]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["groups"]["b"] == ["node-5", "node-6", "node-7", "node-8"]
    assert plan["groups_from"] == "file"


def test_the_command_that_goes_on_has_the_options_that_matter() -> None:
    options = ClusterSurveyOptions(
        output="c",
        nodes=3,
        seed=5,
        groups="g",
        address="h:1",
        no_check=True,
        launcher="a {command}",
    )
    assert resume_command(options, Path("c")) == (
        "waywiser cluster survey -o c --resume --launcher 'a {command}' --nodes 3 --address h:1 "
        "--no-check"
    )


@pytest.mark.parametrize(("expected", "code"), [(0, 0), (6, 0), (7, 1)])
def test_fewer_nodes_than_expected_are_a_finding(
    expected: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def survey(options: object, hosts: object, folder: ClusterFolder, watcher: object) -> None:
        known = nodes(6)
        for node in known:
            folder.add_node(node)
        folder.set_plan(replace(folder.plan, transport="mpi", bytes=2**20))
        while following := next_round(known, folder.plan, folder.tests):
            SimulatedTransport().run(following.tests, 2**20, 60.0, folder.add_test)

    monkeypatch.setattr(cluster_call, "survey_cluster", survey)
    words = ["cluster", "survey", "--nodes", "6", "--expect-nodes", str(expected), "--json"]
    assert cli.run([*words, "-o", str(tmp_path / "c")]) == code
    said = capsys.readouterr()
    assert json.loads(said.out)["tests"] > 10
    assert ("6 of 7 expected nodes were reached" in said.err) is (code == 1)


@pytest.mark.parametrize(
    ("token", "says"),
    [("", "WAYWISER_CLUSTER_TOKEN is not set"), ("short", "has fewer than 16 characters")],
)
def test_an_agent_needs_a_token(
    token: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    assert cli.run(["cluster", "join", "127.0.0.1:1"]) == 2
    assert says in capsys.readouterr().err


class Commands:
    """A survey and its agents, as processes."""

    def __init__(self, stack: ExitStack, folder: Path, mpicc: str) -> None:
        self._stack = stack
        self.folder = folder
        self._environment = {**os.environ, TOKEN_VARIABLE: TOKEN, "WAYWISER_MPICC": mpicc}
        self.agents: list[subprocess.Popen[str]] = []
        self.survey: subprocess.Popen[str]

    def start(self, *options: str, nodes: int = 2, agents: int = 2) -> None:
        """Starts the survey; agents join it as soon as it says where."""
        words = ["survey", "-o", str(self.folder), "--nodes", str(nodes), "--no-check"]
        self.survey = self._started(*words, "--address", "127.0.0.1:0", *options)
        address = self.line_with("waywiser cluster join ").split()[-1]
        names = [f"n{number}" for number in range(1, agents + 1)]
        self.agents = [self._started("join", address, "--node-name", name) for name in names]

    def line_with(self, text: str) -> str:
        """The next line on standard error that has this text."""
        assert self.survey.stderr is not None
        read = ""
        for line in self.survey.stderr:
            read += line
            if text in line:
                return line
        raise AssertionError(f"no line has {text!r}: {read}")

    def end(self) -> tuple[int, str]:
        """The exit code of the survey, and its last lines, after all agents have ended."""
        _, said = self.survey.communicate(timeout=PATIENCE_SECONDS)
        for agent in self.agents:
            agent.wait(PATIENCE_SECONDS)
        return self.survey.returncode, said

    def _started(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "waywiser", "cluster", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if words[0] == "survey" else subprocess.DEVNULL,
            text=True,
            env=self._environment,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with ExitStack() as stack:
        yield Commands(stack, tmp_path / "c", mpicc_of("mpich"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_survey_that_waits(number: signal.Signals, commands: Commands) -> None:
    commands.start(nodes=2, agents=0)
    commands.survey.send_signal(number)
    code, said = commands.end()
    assert code == 130
    resume = f"waywiser cluster survey -o {commands.folder} --resume --nodes 2"
    before, _, command = said.partition("interrupted: 0 finished tests stored (go on with: ")
    assert before and resume in command  # after the name of the program, as it was called


def test_a_survey_by_mpi_is_interrupted_and_goes_on(commands: Commands) -> None:
    commands.start("--size", "64KiB")
    commands.line_with("round 2, pairs")
    commands.survey.send_signal(signal.SIGTERM)
    code, said = commands.end()
    assert code == 130 and "finished tests stored (go on with: " in said
    assert [agent.returncode for agent in commands.agents] == [0, 0]
    stored = read_cluster(commands.folder).tests
    assert len(stored) >= 2 and not any(test.failed for test in stored)
    commands.start("--resume")
    code, said = commands.end()
    assert code in (1, 3), said  # on one host, no byte crosses an interface
    assert [agent.returncode for agent in commands.agents] == [0, 0]
    result = read_cluster(commands.folder)
    assert result.tests[: len(stored)] == stored
    assert len({test.test for test in result.tests}) == len(result.tests)
    assert not any(test.failed for test in result.tests)
    assert verdict(result.nodes, result.plan, result.tests).of("pair") == ("n1", "n2")
