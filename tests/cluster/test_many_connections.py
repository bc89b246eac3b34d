"""2,000 agents of one coordinator, over real connections."""

from __future__ import annotations

import resource
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from joined_agents import TOKEN, Bare

from tree import ROOT
from waywiser.cluster.connection.protocol import Alive, Answered, Requested, decode_to_agent, encode
from waywiser.measure.supervise.channel import Lines
from waywiser.words.cluster import ClusterNode, Interface, Rail

AGENTS = 2000
MOST_BYTES = 100_000
"""What a connection may cost the coordinator."""

COORDINATOR = f"""
import sys
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.connection.protocol import Alive, AskAlive

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * {resource.getpagesize()}

with Coordinator("127.0.0.1:0", {TOKEN!r}, {AGENTS}, log=lambda line: None) as coordinator:
    print(coordinator.address, resident(), flush=True)
    nodes = coordinator.admit(3600)
    coordinator.begin_tests()
    replies = coordinator.ask({{node.name: AskAlive() for node in nodes}}, 3600)
    print(len(nodes), sum(reply == Alive() for reply in replies.values()), resident(), flush=True)
"""


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """Lets this process have so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"a process may have {hard} descriptors here, and {count} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def node(number: int) -> ClusterNode:
    """A node of eight GPUs, as agents state it."""
    return ClusterNode(
        f"n{number}",
        rails=tuple(
            Rail(rail, rail, Interface(f"mlx5_{rail}", "infiniband", 50e9, rail // 4))
            for rail in range(8)
        ),
        versions={"waywiser": "1.0", "driver": "580.1", "nccl": "2.28.7", "kernel": "6.8"},
        counters={f"mlx5_{rail} symbol_error": rail for rail in range(8)},
    )


def test_2000_agents_join_and_answer_at_little_memory() -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-c", COORDINATOR],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT / "python")},
        ) as process,
        descriptors(AGENTS + 200),  # of this process; the coordinator sees to its own
    ):
        assert process.stdout is not None
        address, before = process.stdout.readline().split()
        agents = []
        for number in range(AGENTS):
            agent = Bare(address)
            agents.append(agent)
            agent.say(agent.greeting(f"n{number}", node=node(number)))
        _answer_until_the_end(agents)
        joined, answered, after = map(int, process.stdout.readline().split())
        assert (joined, answered) == (AGENTS, AGENTS)
        assert (after - int(before)) / AGENTS < MOST_BYTES
        for agent in agents:
            agent.close()
    assert process.returncode == 0


def _answer_until_the_end(agents: list[Bare]) -> None:
    """Answers each request, until all have left."""
    with selectors.DefaultSelector() as selector:
        for agent in agents:
            selector.register(agent.socket, selectors.EVENT_READ, (agent, Lines()))
        while selector.get_map():
            for key, _ in selector.select():
                agent, lines = key.data
                for line in lines.feed(agent.socket.recv(1 << 16)):
                    message = decode_to_agent(line)
                    if isinstance(message, Requested):
                        agent.say(encode(Answered(message.id, Alive())))
                    elif b'"leave"' in line:
                        selector.unregister(agent.socket)
                        agent.close()
