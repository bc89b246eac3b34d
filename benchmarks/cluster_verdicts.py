"""Plants faults in simulated clusters and counts what the verdict finds.

    python benchmarks/cluster_verdicts.py -o FOLDER [--nodes 64,256] [--seeds 1000] [--jobs 16]
                                          [--first-seed 0]
                                          [--noise 0.015] [--network NAME] [--case KIND:AMOUNT]
    python benchmarks/cluster_verdicts.py -o FOLDER --table

Each cluster is one line of ``FOLDER/clusters.csv``; a run goes on after those that are there,
so it may be stopped at any time. All networks and cases have the same number of seeds at any time,
within one block. ``--table`` prints, by network, number of nodes and case, in how many clusters
all that was planted is found as what it is, and in how many something innocent is accused, with
the upper 95 % bounds of Clopper and Pearson. Nothing is measured: times are drawn.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from scipy.stats import beta

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from analysis.cluster.planted_faults import NETWORKS, outcome, plant, simulated  # noqa: E402
from analysis.cluster.simulated_clusters import survey  # noqa: E402

CASES = (
    *("healthy:0", "node:0.05", "node:0.1", "node:0.2", "nodes:0.05", "nodes:0.2"),
    *("switch:0.2", "pair:0.2"),
)
BLOCK = 10
"""Seeds of a case before the next case has as many."""


class Task(NamedTuple):
    """A block of clusters."""

    network: str
    nodes: int
    case: str
    noise: float
    seeds: tuple[int, ...]


class Row(NamedTuple):
    """What came out of one cluster."""

    network: str
    nodes: int
    case: str
    noise: float
    seed: int
    right: int
    innocent: int
    rounds: int
    tests: int
    cpu_seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--nodes", default="64,256,1024")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.015)
    parser.add_argument("--network", action="append", default=[], help="by name; all by default")
    parser.add_argument("--case", action="append", default=[], help="node:0.05; all by default")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "clusters.csv"
    if not options.table:
        networks = options.network or [each.name for each in NETWORKS]
        sizes = [int(each) for each in options.nodes.split(",")]
        done = {row[:5] for row in read(path)}
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        tasks = planned(networks, sizes, options.case or CASES, options.noise, seeds, done)
        run(tasks, options.jobs, path)
    print("\n".join(table(read(path))))
    return 0


def planned(networks, sizes, cases, noise: float, seeds: range, done: set) -> list[Task]:
    """Returns the blocks that are not done: of all cases in turn."""
    tasks = []
    for first in seeds[::BLOCK]:
        for nodes in sizes:
            for network in networks:
                for case in cases:
                    block = tuple(
                        seed
                        for seed in range(first, min(first + BLOCK, seeds.stop))
                        if (network, nodes, case, noise, seed) not in done
                    )
                    if block:
                        tasks.append(Task(network, nodes, case, noise, block))
    return tasks


def run(tasks: list[Task], jobs: int, path: Path) -> None:
    """Appends the rows of each block when it is finished."""
    is_new = not path.exists()
    with path.open("a", newline="") as file, ProcessPoolExecutor(jobs) as pool:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(Row._fields)
        for future in as_completed([pool.submit(rows_of, task) for task in tasks]):
            writer.writerows(future.result())
            file.flush()
            os.fsync(file.fileno())


def rows_of(task: Task) -> list[Row]:
    """Surveys the clusters of a block."""
    (network,) = [each for each in NETWORKS if each.name == task.network]
    kind, _, amount = task.case.partition(":")
    rows = []
    for seed in task.seeds:
        start = time.process_time()
        cluster = simulated(network, task.nodes, seed, task.noise)
        plan = cluster.plan(
            groups=network.knows_groups, uplink_pairs=network.uplink_pairs, seed=seed
        )
        expected = plant(cluster, plan, kind, float(amount))
        cluster.tests = 0
        done = survey(cluster, plan)
        result = outcome(done.verdict, expected)
        found = (int(result.right), int(result.innocent), len(done.rounds), cluster.tests)
        used = round(time.process_time() - start, 3)
        rows.append(Row(*task[:4], seed, *found, used))
    return rows


def read(path: Path) -> list[Row]:
    """Reads what is finished; a line that is cut off is skipped."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = [each for each in csv.reader(file) if len(each) == len(Row._fields)]
    return [
        Row(r[0], int(r[1]), r[2], float(r[3]), *map(int, r[4:9]), float(r[9])) for r in rows[1:]
    ]


def upper(count: int, of: int) -> float:
    """Returns the upper bound of a one-sided 95 % interval (Clopper & Pearson, 1934)."""
    return float(beta.ppf(0.95, count + 1, of - count)) if count < of else 1.0


def table(rows: list[Row]) -> Iterator[str]:
    """Yields the lines of a table in Markdown."""
    groups: dict[tuple[str, int, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[:4]].append(row)
    order = {name: n for n, name in enumerate([each.name for each in NETWORKS])}
    places = {case: n for n, case in enumerate(CASES)}
    yield (
        "| network | nodes | planted | noise | clusters | not all found (bound) | innocent accused "
        "(bound) | rounds | tests of a node | CPU s |"
    )
    yield "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for key in sorted(groups, key=lambda k: (k[1], order[k[0]], places.get(k[2], 99), k[3])):
        mine = groups[key]
        count = len(mine)
        total = Counter()
        for row in mine:
            total.update({name: getattr(row, name) for name in Row._fields[5:]})
        missed, innocent = count - total["right"], total["innocent"]
        yield (
            f"| {key[0]} | {key[1]} | {key[2]} | {key[3]:.1%} | {count} "
            f"| {missed / count:.1%} ({upper(missed, count):.1%}) "
            f"| {innocent / count:.1%} ({upper(innocent, count):.1%}) "
            f"| {total['rounds'] / count:.0f} | {2 * total['tests'] / count / key[1]:.1f} "
            f"| {total['cpu_seconds'] / count:.2f} |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
