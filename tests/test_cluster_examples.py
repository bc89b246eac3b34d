"""The files that launch a cluster survey do what the guide says of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from measure.ranks.watching import PATIENCE_SECONDS, wait_until
from tree import FAKE_FOLDER, ROOT
from waywiser.analysis.cluster.verdict import verdict
from waywiser.cli.call import command
from waywiser.profile.cluster_folder import read_cluster

EXAMPLES = ROOT / "docs" / "how-to" / "examples"
SBATCH, JOBS = EXAMPLES / "cluster.sbatch", EXAMPLES / "cluster-job.yaml"
OPTION = re.compile(r"(?<!\S)--[a-z-]+")
COMMAND = re.compile(r"^ *command: (\[.*\])$", re.MULTILINE)


def batch(tmp_path: Path, *words: str, **environment: str) -> list[str]:
    """What the batch file calls, with a stand-in for Waywiser that prints its process and words."""
    program = tmp_path / "waywiser"
    program.write_text('#!/bin/sh\necho "$PPID" "$@"\n')
    program.chmod(0o755)
    answer = subprocess.run(
        ["bash", SBATCH, *words],
        cwd=tmp_path,
        env={**os.environ, "WAYWISER": str(program), "SLURM_JOB_ID": "42", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    parent, *called = answer.stdout.split()
    assert int(parent) == os.getpid(), "the survey takes the place of the shell"
    return called


def test_the_batch_file_surveys_into_a_folder_of_the_job(tmp_path: Path) -> None:
    assert batch(tmp_path) == ["cluster", "survey", "-o", "cluster-42"]
    assert batch(tmp_path, "--transport", "mpi")[-2:] == ["--transport", "mpi"]


def test_the_batch_file_goes_on_in_a_folder_with_a_plan(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "plan.json").write_text("{}")
    assert batch(tmp_path, FOLDER="old") == ["cluster", "survey", "-o", "old", "--resume"]


def test_the_batch_file_has_one_agent_per_node_and_a_signal_before_the_end() -> None:
    options = re.findall(r"^#SBATCH (\S+)", SBATCH.read_text(), re.MULTILINE)
    assert "--ntasks-per-node=1" in options
    assert "--signal=B:TERM@60" in options
    assert "--no-kill" in options, "one node that fails does not end the others"


def job_commands() -> tuple[list[str], list[str]]:
    """The commands of the coordinator and of an agent in the file of Kubernetes jobs."""
    survey, join = map(json.loads, COMMAND.findall(JOBS.read_text()))
    return survey, join


def test_the_jobs_start_a_coordinator_and_agents() -> None:
    survey, join = job_commands()
    assert survey[:3] == ["waywiser", "cluster", "survey"]
    assert join[:4] == ["waywiser", "cluster", "join", "waywiser:7000"]
    assert join[join.index("--node-name") + 1] == "$(NODE_NAME)"
    assert survey[survey.index("--address") + 1] == "0.0.0.0:7000"


def test_the_jobs_agree_on_nodes_ports_and_names() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which the linters bring, is not installed")
    service, coordinator, nodes = yaml.safe_load_all(JOBS.read_text())
    survey, join = job_commands()
    count = int(survey[survey.index("--nodes") + 1])
    assert nodes["spec"]["completions"] == nodes["spec"]["parallelism"] == count
    host, port = join[3].split(":")
    assert service["metadata"]["name"] == host
    assert [each["port"] for each in service["spec"]["ports"]] == [int(port)]
    labels = coordinator["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    for job in (coordinator, nodes):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        names = {each["name"] for each in container["env"]}
        assert "WAYWISER_CLUSTER_TOKEN" in names
    assert "NODE_NAME" in names


MOST_SECONDS_OF_A_LATE_POD = 1800
"""So long a pod without a survey may hold its GPUs."""

MOST_BACKOFF_SECONDS = 360
"""Kubernetes waits 10 s before it starts a container again, then twice as long each time."""


def test_every_job_ends_and_a_late_pod_gives_its_gpus_back() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which the linters bring, is not installed")
    _, coordinator, nodes = (each["spec"] for each in yaml.safe_load_all(JOBS.read_text()))
    survey, join = job_commands()
    joining = int(survey[survey.index("--join-seconds") + 1])
    assert coordinator["activeDeadlineSeconds"] >= 2 * joining, "there is time for the tests"
    after = nodes["activeDeadlineSeconds"] - coordinator["activeDeadlineSeconds"]
    assert 0 < after <= 300, "agents last as long as the survey, and not much longer"
    waits = [int(join[join.index("--join-seconds") + 1])] * (nodes["backoffLimit"] + 1)
    backoffs = [min(10 * 2**n, MOST_BACKOFF_SECONDS) for n in range(nodes["backoffLimit"])]
    assert sum(waits) + sum(backoffs) <= MOST_SECONDS_OF_A_LATE_POD


@pytest.mark.parametrize(
    "page", ["how-to/launch-a-cluster-survey.md", "tutorials/first-hour-with-32-nodes.md"]
)
def test_the_options_that_the_guides_name_exist(page: str) -> None:
    verbs = command().commands
    for line in (ROOT / "docs" / page).read_text().splitlines():
        for name in ("cluster survey", "cluster join", "cluster show"):
            _, found, rest = line.partition(f"waywiser {name}")
            if not found:
                continue
            known = {option for each in verbs[name].params for option in each.opts}
            used = set(OPTION.findall(rest.split("`")[0].split("'")[0].split("#")[0]))
            assert used <= known, line


@pytest.fixture
def environment(fake_native_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """That of a pod, whose GPU and NCCL are the fake ones."""
    return {
        **fake_native_environment,
        "WAYWISER_FAKE": "devices=1",
        "WAYWISER_NCCL": str(FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"),
        "WAYWISER_CLUSTER_TOKEN": "0123456789abcdef" * 4,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def pod(
    words: list[str], environment: dict[str, str], out: Path, **replaced: str
) -> subprocess.Popen[bytes]:
    """Starts the command of a container as a plain process."""
    text = "\0".join(words)
    for name, value in replaced.items():
        assert name in text
        text = text.replace(name, value)
    with out.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *text.split("\0")],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def test_the_commands_of_the_jobs_survey_plain_processes(
    environment: dict[str, str], tmp_path: Path
) -> None:
    survey, join = job_commands()
    folder, out = tmp_path / "cluster", tmp_path / "survey"
    processes = []
    try:
        changed = {"32": "3", ":7000": ":0", "/results/cluster": str(folder)}
        coordinator = pod([*survey, "--no-check"], environment, out, **changed)
        processes.append(coordinator)
        listens = re.compile(r"cluster join \S+:([0-9]+)")
        assert wait_until(lambda: listens.search(out.read_text()) is not None), out.read_text()
        (port,) = listens.findall(out.read_text())
        for node in ("gpu-a", "gpu-b", "gpu-c"):
            at = {"waywiser:7000": f"127.0.0.1:{port}", "$(NODE_NAME)": node}
            processes.append(pod(join, environment, tmp_path / node, **at))
        assert wait_until(lambda: b"gpu-" in stored(folder / "tests.jsonl")), out.read_text()
        coordinator.terminate()  # as Kubernetes ends a pod
        assert coordinator.wait(PATIENCE_SECONDS) == 130, out.read_text()
        assert [each.wait(PATIENCE_SECONDS) for each in processes[1:]] == [0, 0, 0]
    finally:
        for each in processes:
            each.kill()
            each.wait()
    assert f"waywiser cluster survey -o {folder} --resume" in out.read_text()
    result = read_cluster(folder)
    assert [(node.name, node.state) for node in result.nodes] == [
        (name, "joined") for name in ("gpu-a", "gpu-b", "gpu-c")
    ]
    assert result.plan.transport == "nccl"
    assert not any(each.failed for each in result.tests)


def stored(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def test_the_kept_cluster_has_the_verdict_that_the_tutorial_states() -> None:
    folder = ROOT / "docs" / "tutorials" / "example-cluster"
    result = read_cluster(folder)
    found = verdict(result.nodes, result.plan, result.tests)
    assert found.complete and found.of("slow") == ("n3",) and len(found.of("ok")) == 7
    (finding,) = found.findings
    said = " ".join((ROOT / "docs/tutorials/first-hour-with-32-nodes.md").read_text().split())
    assert f"`docs/tutorials/{folder.name}`" in said
    assert finding.text.replace("n3 is", "It says that n3 is") in said
