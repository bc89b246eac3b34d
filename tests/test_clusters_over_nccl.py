"""A survey of nodes by NCCL, by the command line: agents and workers are processes of this machine,
and NCCL is the fake one."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.surveyed_cluster import standings

from tree import FAKE_FOLDER
from waywiser.analysis.cluster.verdict import verdict
from waywiser.profile.cluster_folder import read_cluster

WAYWISER = (sys.executable, "-m", "waywiser")
LIBRARY = FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"
SECONDS = 900.0
"""Only what hangs takes so long, on however busy a machine."""

RATE = "rate=0.002"
"""Messages are slow, so that processes that wait for a CPU matter little."""

NAMES = ("n1", "n2", "n3", "n4", "n5", "n6")
FAULTS = {
    "n4": {"WAYWISER_FAKE": "devices=1;crash=sync@2"},
    "n5": {"WAYWISER_FAKE_NCCL": f"{RATE};least=16384;wrong=1"},
    "n6": {"WAYWISER_FAKE_NCCL": "absent=1"},
}
"""A crash, wrong bytes, and a node that hangs."""

LIMIT_SECONDS = "20"
"""A test of the node that hangs takes so long."""

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(fake_native_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {
        **fake_native_environment,
        "WAYWISER_NCCL": str(LIBRARY),
        "WAYWISER_FAKE": "devices=1",
        "WAYWISER_FAKE_NCCL": RATE,
        "WAYWISER_CLUSTER_TOKEN": "0123456789abcdef" * 2,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Those that a failed test leaves are killed."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_nodes_that_crash_hang_or_receive_wrong_bytes_have_failed_and_the_others_have_times(
    environment: dict[str, str], processes: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    def start(*arguments: str, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*WAYWISER, "cluster", *arguments],
            cwd=tmp_path,
            env={**environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        processes.append(process)
        return process

    where = f"127.0.0.1:{free_port()}"
    options = ("--transport", "nccl", "--no-check", "--size", "16KiB", "--nodes", str(len(NAMES)))
    options += ("--test-seconds", LIMIT_SECONDS)
    survey = start("survey", "-o", "c", "--address", where, *options)
    agents = [start("join", where, "--node-name", name, **FAULTS.get(name, {})) for name in NAMES]
    said, _ = survey.communicate(timeout=SECONDS)
    assert survey.returncode == 1, said
    result = read_cluster(tmp_path / "c")
    found = verdict(result.nodes, result.plan, result.tests)
    failed = {each.nodes: each.text for each in found.findings if each.id.startswith("failed")}
    assert failed.keys() == {("n4",), ("n5",), ("n6",)}, said
    for name, kind in (("n4", "crash"), ("n5", "wrong-bytes"), ("n6", "timeout")):
        assert f"failed: {kind}" in failed[name,]
    assert standings(found) == dict.fromkeys(FAULTS, "failed"), said
    assert {name for pair in found.pairs for name in (pair.sender, pair.receiver)} == {
        "n1", "n2", "n3"
    }  # fmt: skip
    together = [each.nodes for each in found.collectives if not each.failed]
    assert together and not any(FAULTS.keys() & set(nodes) for nodes in together), said
    assert "SIGSEGV" in said
    assert {test.transport for test in result.tests} == {"nccl"}
    assert [agent.wait(SECONDS) for agent in agents] == [0] * len(NAMES)
