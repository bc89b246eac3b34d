"""Measures the memory and the time that the analysis of a large cluster takes.

    python benchmarks/cluster_memory.py [--nodes 256,512,1024,2000] [--rails 8] [--rounds 8]

For each number of nodes a folder is made of drawn times: in each round every node is in one test.
`waywiser cluster show`, `waywiser report` and the choice of the next round, which a survey makes
between two rounds, run in a process of their own each. Prints a table with the most memory that is
resident, and the CPU time.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python")]

import msgspec  # noqa: E402

from waywiser.profile.cluster_folder import NODES, PLAN, PROFILES, TESTS  # noqa: E402
from waywiser.words.cluster import (  # noqa: E402
    ClusterNode,
    ClusterPlan,
    FinishedTest,
    PlannedTest,
    Rail,
    RailTime,
)

NEXT = """
import sys
from pathlib import Path
from waywiser.analysis.cluster.procedure import next_round
from waywiser.profile.cluster_folder import read_cluster
found = read_cluster(Path(sys.argv[1]))
next_round(found.nodes, found.plan, found.tests)
"""

COMMANDS = {
    "cluster show": ("-m", "waywiser", "cluster", "show"),
    "report": ("-m", "waywiser", "report", "-o", "-"),
    "next round": ("-c", NEXT),
}


def make(path: Path, nodes: int, rails: int, rounds: int) -> int:
    """Writes the folder; returns the number of its tests."""
    rng = random.Random(1)
    (path / PROFILES).mkdir(parents=True)
    names = [f"n{number}" for number in range(nodes)]
    own = tuple(map(Rail, range(rails)))
    _write(path / NODES, (ClusterNode(name, rails=own) for name in names))
    tests = [
        _finished(number, (names[n], names[(n + 1 + 2 * number) % nodes]), rails, rng)
        for number in range(rounds)
        for n in range(0, nodes, 2)
    ]
    _write(path / TESTS, tests)
    (path / PLAN).write_bytes(msgspec.json.encode(ClusterPlan("mpi", 1, bytes=2**20)))
    return len(tests)


def _write(path: Path, values: object) -> None:
    assert hasattr(values, "__iter__")
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in values))


def _finished(number: int, nodes: tuple[str, str], rails: int, rng: random.Random) -> FinishedTest:
    times = []
    for sender in nodes:
        for rail in range(rails):
            seconds = 1e-3 * rng.uniform(1, 1.01)
            times.append(RailTime(rail, sender, seconds, 0.99 * seconds, 1.01 * seconds, 5))
    test = PlannedTest("pairs", number, nodes)
    return FinishedTest(test, "mpi", 2**20, "2026-01-01T00:00:00+00:00", times=tuple(times))


def measure(words: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """The most resident MiB of a process, and its CPU seconds."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, *words, str(folder)],
        environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1, 3):
        raise SystemExit(f"{words[:4]} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="256,512,1024,2000")
    parser.add_argument("--rails", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    print("| nodes | tests | " + " | ".join(COMMANDS) + " |\n|--:|--:|--:|--:|--:|")
    for nodes in map(int, options.nodes.split(",")):
        with tempfile.TemporaryDirectory(prefix="cluster-memory-") as folder:
            tests = make(Path(folder), nodes, options.rails, options.rounds)
            found = [measure(words, Path(folder)) for words in COMMANDS.values()]
        cells = (f"{size:,.0f} MiB, {seconds:.1f} s" for size, seconds in found)
        print(f"| {nodes:,} | {tests:,} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
