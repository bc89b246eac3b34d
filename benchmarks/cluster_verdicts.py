"""Plants faults in simulated clusters and counts what the verdict finds.

    python benchmarks/cluster_verdicts.py -o FOLDER [--nodes 64,256] [--seeds 1000] [--jobs 16]
                                          [--first-seed 0] [--rails 1,4]
                                          [--noise 0.015,0.03] [--network NAME] [--case KIND:AMOUNT]
    python benchmarks/cluster_verdicts.py -o FOLDER --sample 1000 --nodes 32,64 ...
    python benchmarks/cluster_verdicts.py -o FOLDER --table

Each cluster is one line of ``FOLDER/clusters.csv``; a run goes on after those that are there,
so it may be stopped at any time. All networks and cases have the same number of seeds at any time,
within one block; ``--sample`` draws so many clusters instead, of all combinations in turn.
``--table`` prints, by network, number of nodes and case, in how many clusters
all that was planted is found as what it is, in how many of the others the verdict says that it may
be missed, and in how many something innocent is accused, with the upper 95 % bounds of Clopper and
Pearson. Nothing is measured: times are drawn.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import NamedTuple

from scipy.stats import beta

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from analysis.cluster.planted_faults import NETWORKS, outcome, plant, simulated  # noqa: E402
from analysis.cluster.simulated_clusters import survey  # noqa: E402

CASES = (
    *("healthy:0", "all:0.5", "node:0.1", "nodes:0.05", "rail:0.1", "sending:0.1", "rails:0.1"),
    *("switch:0.1", "crossing:0.1", "pair:0.1", "pair:0.5", "hang:0", "flaky:0", "broken:0"),
)
WITH_RAILS = ("rail", "rails")
"""Faults that several rails can have."""
ALL = "all"
"""Lines of all cases, and of all networks."""

BLOCK = 10
"""Seeds of a case before the next case has as many."""


class Task(NamedTuple):
    """A block of clusters."""

    network: str
    nodes: int
    case: str
    noise: float
    rails: int
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
    rails: int = 1
    stated: int = 1
    """Whether it is right, or the verdict says that it may be missed."""
    share: float = 0.0
    """The share of the pairs that was tested; 0 in files of rules that did not state it."""


OLD_FIELDS = 10
"""Columns of files before rails were drawn."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--nodes", default="64,256,1024")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--noise", default="0.015")
    parser.add_argument("--rails", default="1")
    parser.add_argument("--sample", type=int, default=0, help="clusters, of all combinations")
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
        noises = [float(each) for each in options.noise.split(",")]
        rails = [int(each) for each in options.rails.split(",")]
        kinds = [
            Task(network, nodes, case, noise, number, ())
            for noise, number, nodes, case, network in product(
                noises, rails, sizes, options.case or CASES, networks
            )
            if number > 1 or case.partition(":")[0] not in WITH_RAILS
        ]
        done = {(*row[:5], row.rails) for row in read(path)}
        first = options.first_seed
        if options.sample:
            tasks = sampled(kinds, options.sample, first, done)
        else:
            tasks = planned(kinds, range(first, first + options.seeds), done)
        run(tasks, options.jobs, path)
    print("\n".join(table(read(path))))
    return 0


def planned(kinds: list[Task], seeds: range, done: set) -> list[Task]:
    """Returns the blocks that are not done: of all cases in turn."""
    tasks = []
    for first in seeds[::BLOCK]:
        for kind in kinds:
            block = tuple(
                seed
                for seed in range(first, min(first + BLOCK, seeds.stop))
                if (*kind[:4], seed, kind.rails) not in done
            )
            if block:
                tasks.append(kind._replace(seeds=block))
    return tasks


def sampled(kinds: list[Task], count: int, first: int, done: set) -> list[Task]:
    """Returns so many clusters, each of another combination until all had one; no two have the same
    seed."""
    order = random.Random(first).sample(kinds, len(kinds))
    drawn = [order[n % len(order)]._replace(seeds=(first + n,)) for n in range(count)]
    return [each for each in drawn if (*each[:4], each.seeds[0], each.rails) not in done]


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
        cluster = simulated(network, task.nodes, seed, task.noise, task.rails)
        plan = cluster.plan(
            groups=network.knows_groups, uplink_pairs=network.uplink_pairs, seed=seed
        )
        expected = plant(cluster, kind, float(amount))
        done = survey(cluster, plan)
        result = outcome(done.verdict, expected, float(amount))
        found = (int(result.right), int(result.innocent), len(done.rounds), cluster.tests)
        used = round(time.process_time() - start, 3)
        share = round(done.verdict.coverage.share, 5)
        rows.append(Row(*task[:4], seed, *found, used, task.rails, int(result.stated), share))
    return rows


def read(path: Path) -> list[Row]:
    """Reads what is finished; a line that is cut off is skipped."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    fields = (OLD_FIELDS, len(Row._fields))
    rows = [each for each in lines[1:] if len(each) in fields]
    return [
        Row(
            *(r[0], int(r[1]), r[2], float(r[3]), *map(int, r[4:9]), float(r[9])),
            *(int(r[10]), int(r[11]), float(r[12])) if len(r) > OLD_FIELDS else (),
        )
        for r in rows
    ]


def upper(count: int, of: int) -> float:
    """Returns the upper bound of a one-sided 95 % interval (Clopper & Pearson, 1934)."""
    return float(beta.ppf(0.95, count + 1, of - count)) if count < of else 1.0


def table(rows: list[Row]) -> Iterator[str]:
    """Yields the lines of a table in Markdown."""
    groups: dict[tuple[str, int, str, float, int], list[Row]] = defaultdict(list)
    for row in rows:
        for key in (row[:4], (row.network, row.nodes, ALL, row.noise), (ALL, row.nodes, ALL, 0.0)):
            groups[*key, row.rails if key[2] != ALL else 0].append(row)
    order = {name: n for n, name in enumerate([each.name for each in NETWORKS])}
    places = {case: n for n, case in enumerate(CASES)}
    yield (
        "| network | nodes | rails | planted | noise | clusters | not found (bound) | of these not "
        "stated | innocent accused (bound) | rounds | tests of a node | pairs tested | CPU s |"
    )
    yield "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"

    def place(key: tuple[str, int, str, float, int]) -> tuple[float, ...]:
        return (key[1], order.get(key[0], 99), places.get(key[2], 98 + (key[2] == ALL)), *key[3:])

    for key in sorted(groups, key=place):
        mine = groups[key]
        count = len(mine)
        total = Counter()
        for row in mine:
            total.update({name: getattr(row, name) for name in Row._fields[5:]})
        missed, innocent = count - total["right"], total["innocent"]
        silent = count - total["stated"]
        noise = f"{key[3]:.1%}" if key[3] else ""
        yield (
            f"| {key[0]} | {key[1]} | {key[4] or ''} | {key[2]} | {noise} "
            f"| {count} | {missed} ({upper(missed, count):.1%}) | {silent} "
            f"({upper(silent, count):.1%}) | {innocent} ({upper(innocent, count):.1%}) "
            f"| {total['rounds'] / count:.0f} | {2 * total['tests'] / count / key[1]:.1f} "
            f"| {total['share'] / count:.1%} | {total['cpu_seconds'] / count:.2f} |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
