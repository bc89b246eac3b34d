"""Tests nodes of a cluster by NCCL where nodes are processes of this host, each with one GPU.

    python benchmarks/cluster_nccl.py [--gpus 0,1] [--per-gpu 1] [--sizes 8,1MiB,256MiB]
        [--interface lo] [--slow] [--torch] [--json FILE]

Each node has a name in NCCL_HOSTID, so that NCCL takes it for a host. Pairs are measured over what
NCCL chooses (NVLink, if there is one) and over sockets; then a worker is killed and one is stopped
in the middle of a test: the test must name its node, and the next one must be well. ``--slow`` also
surveys the nodes in network namespaces, where the interface of the first is slowed down by tc, with
the command line. ``--torch`` lists PyTorch's times of the same messages over the same links. The
exit status is 1 if a test fails that should not, or another node is named, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from tests.cluster.simulated_nodes import simulated_nodes  # noqa: E402

from waywiser.analysis.cluster.verdict import verdict  # noqa: E402
from waywiser.cluster.connection.coordinator import Coordinator  # noqa: E402
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE, new_token  # noqa: E402
from waywiser.cluster.transports.nccl_transport import NcclTransport  # noqa: E402
from waywiser.measure.probe.environment import worker_environment  # noqa: E402
from waywiser.measure.supervise.process import descendants  # noqa: E402
from waywiser.profile.cluster_folder import read_cluster  # noqa: E402
from waywiser.words import format_bytes, parse_bytes  # noqa: E402
from waywiser.words.cluster import FinishedTest, PlannedTest  # noqa: E402

WAYWISER = (sys.executable, "-m", "waywiser")
SECONDS = 300.0
"""Only what hangs takes so long."""
LIMIT_SECONDS = 10.0
"""The limit of tests of which a worker is stopped."""

Nodes = dict[str, str]
"""Name of a node -> its GPU."""


def environment(name: str, gpu: str, more: dict[str, str]) -> dict[str, str]:
    own = {"CUDA_VISIBLE_DEVICES": gpu, "NCCL_HOSTID": name, "NCCL_DEBUG": "WARN"}
    return worker_environment({**os.environ, **own, **more})


class Agents:
    """A coordinator in this process, and an agent for each node."""

    def __init__(self, nodes: Nodes, token: str, variables: dict[str, str]) -> None:
        self.coordinator = Coordinator("127.0.0.1:0", token, list(nodes))
        self.agents = {
            name: subprocess.Popen(
                [*WAYWISER, "cluster", "join", self.coordinator.address, "--node-name", name],
                env=environment(name, gpu, {**variables, TOKEN_VARIABLE: token}),
            )
            for name, gpu in nodes.items()
        }
        for node in self.coordinator.admit(SECONDS):
            if node.state != "joined":
                raise SystemExit(f"{node.name}: {node.reason}")
        self.coordinator.begin_tests()
        self._transport = NcclTransport(self.coordinator)
        self._round = 0

    def test(
        self, phase: str, nodes: Sequence[str], size: int, seconds: float = SECONDS
    ) -> FinishedTest:
        found: list[FinishedTest] = []
        self._round += 1
        test = PlannedTest(phase, self._round, tuple(nodes))  # type: ignore[arg-type]
        self._transport.run([test], size, seconds, found.append)
        return found[0]

    def worker(self, name: str) -> int:
        """The process that measures for a node: the last that its agent has started."""
        return max(descendants(self.agents[name].pid))

    def close(self) -> None:
        self.coordinator.close()
        for agent in self.agents.values():
            agent.wait(SECONDS)


@contextmanager
def agents_of(nodes: Nodes, variables: dict[str, str]) -> Iterator[Agents]:
    agents = Agents(nodes, new_token(), variables)
    try:
        yield agents
    finally:
        agents.close()


def measured(agents: Agents, nodes: Nodes, sizes: Sequence[int], link: str) -> Iterator[Any]:
    """Pairs of the first node with each other one, and a collective of all."""
    first, *others = nodes
    tests = [("pairs", (first, other)) for other in others]
    for size in sizes:
        for phase, names in [*tests, ("collective", tuple(nodes))]:
            test = agents.test(phase, names, size)
            yield {
                "link": link,
                "phase": phase,
                "nodes": names,
                "bytes": size,
                "setup": test.setup_seconds,
                "seconds": [time.seconds for time in test.times],
                "interval": [[time.low, time.high] for time in test.times],
                "failed": test.failed.failure.reason if test.failed else "",
            }


def signal_if_running(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def faults(agents: Agents, nodes: Nodes, size: int) -> Iterator[Any]:
    """A worker of the second node is killed, then one is stopped, while they measure."""
    names = tuple(nodes)[:2]
    for number in (signal.SIGKILL, signal.SIGSTOP):
        worker = agents.worker(names[1])
        strike = threading.Timer(0.5, signal_if_running, [worker, number])
        strike.start()
        began = time.monotonic()
        while (test := agents.test("pairs", names, size, LIMIT_SECONDS)).failed is None:
            if time.monotonic() - began > SECONDS:
                break
        strike.cancel()
        again = agents.test("pairs", names, size)
        yield {
            "fault": signal.Signals(number).name,
            "named": test.failed.node if test.failed else None,
            "expected": names[1],
            "reason": test.failed.failure.reason if test.failed else "",
            "seconds": test.elapsed_seconds,
            "again": again.failed.failure.reason if again.failed else "",
        }


def slowed(nodes: Nodes) -> Any:
    """A survey of nodes in namespaces, the first of which is slow."""
    token = new_token()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        names = [f"n{number}" for number in range(1, len(nodes) + 1)]
        with simulated_nodes(path / "nodes", ["a"] * len(nodes)) as world:
            world.limit("n1", sending="50mbit", receiving="50mbit")
            where = f"{world.address(world.head)}:7000"
            variables = {TOKEN_VARIABLE: token, "NCCL_SOCKET_IFNAME": "eth0"}
            survey = world.start(
                world.head,
                *(*WAYWISER, "cluster", "survey", "-o", "c", "--address", where),
                *(
                    "--transport",
                    "nccl",
                    "--no-check",
                    "--size",
                    "64KiB",
                    "--nodes",
                    str(len(names)),
                ),
                cwd=path,
                env=worker_environment({**os.environ, TOKEN_VARIABLE: token}),
            )
            agents = [
                world.start(
                    name,
                    *(*WAYWISER, "cluster", "join", where, "--node-name", name),
                    cwd=path,
                    env=environment(name, gpu, variables),
                )
                for name, gpu in zip(names, nodes.values(), strict=True)
            ]
            for process in (survey, *agents):
                process.wait(SECONDS)
        result = read_cluster(path / "c")
        found = verdict(result.nodes, result.plan, result.tests)
        return {"slowed": "n1", "verdict": {each.node: each.verdict for each in found.nodes},
                "findings": [each.text for each in found.findings]}  # fmt: skip


def torch_times(sizes: Sequence[int], gpus: int, variables: dict[str, str]) -> list[str]:
    script = Path(__file__).with_name("torch_collectives.py")
    command = [sys.executable, str(script), str(gpus), "20", *map(str, sizes)]
    done = subprocess.run(
        command, env=worker_environment({**os.environ, **variables}), capture_output=True, text=True
    )
    return done.stdout.splitlines() or done.stderr.splitlines()[-1:]


def line(each: dict[str, Any]) -> str:
    if "bytes" not in each:
        return json.dumps(each)
    rates = "  ".join(
        f"{seconds * 1e6:.1f} us ({each['bytes'] / seconds / 1e9:.2f} GB/s)"
        for seconds in each["seconds"]
    )
    names = " ".join(each["nodes"])
    what = f"{each['link']:8} {each['phase']:10} {names:12} {format_bytes(each['bytes']):>8}"
    return f"{what}  {rates or each['failed']}  set-up {each['setup']:.2f} s"


def is_wrong(each: dict[str, Any]) -> bool:
    if "fault" in each:
        return bool(each["named"] != each["expected"] or each["again"])
    return bool(each.get("failed"))


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--gpus", default="0,1")
    words.add_argument("--per-gpu", type=int, default=1)
    words.add_argument("--sizes", default="8,1MiB,256MiB")
    words.add_argument("--interface", default="lo")
    words.add_argument("--slow", action="store_true")
    words.add_argument("--torch", action="store_true")
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    sizes = [parse_bytes(each) for each in given.sizes.split(",")]
    gpus = [gpu for gpu in given.gpus.split(",") for _ in range(given.per_gpu)]
    nodes = {f"n{number}": gpu for number, gpu in enumerate(gpus, 1)}
    sockets = {
        "NCCL_P2P_DISABLE": "1",
        "NCCL_SHM_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": given.interface,
        "NCCL_IB_DISABLE": "1",
    }
    found: list[dict[str, Any]] = []

    def note(each: dict[str, Any]) -> None:
        found.append(each)
        print(line(each), flush=True)

    for link, variables in (("chosen", {}), ("sockets", sockets)):
        with agents_of(nodes, variables) as agents:
            for each in measured(agents, nodes, sizes, link):
                note(each)
            for each in faults(agents, nodes, sizes[-1]):
                note({"link": link, **each})
        if given.torch:
            for said in torch_times(sizes, len(set(gpus)), variables):
                note({"link": link, "torch": said})
    if given.slow:
        note(slowed(nodes))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(map(is_wrong, found)))


if __name__ == "__main__":
    sys.exit(main())
