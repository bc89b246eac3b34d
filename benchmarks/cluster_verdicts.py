"""Plants faults in simulated clusters and counts what the verdict finds.

    python benchmarks/cluster_verdicts.py [--nodes 64,256] [--seeds 100] [--noise 0.015]
                                          [--network NAME] [--case KIND:AMOUNT]

One line for each network, number of nodes and case: how often all that was planted is found as what
it is, how often something innocent is accused (with the upper 95 % bound), rounds and tests per
node. Nothing is measured: times are drawn.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from scipy.stats import beta

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from analysis.cluster.planted_faults import NETWORKS, outcome, plant, simulated  # noqa: E402
from analysis.cluster.simulated_clusters import survey  # noqa: E402

CASES = (
    *("healthy:0", "node:0.05", "node:0.1", "node:0.2", "nodes:0.05", "nodes:0.2"),
    *("switch:0.2", "pair:0.2"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="64,256,1024")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.015)
    parser.add_argument("--network", action="append", default=[], help="by name; all by default")
    parser.add_argument("--case", action="append", default=[], help="node:0.05; all by default")
    options = parser.parse_args()
    networks = [each for each in NETWORKS if not options.network or each.name in options.network]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for network in networks:
        for nodes in map(int, options.nodes.split(",")):
            for case in options.case or CASES:
                _measure(network, nodes, case, seeds, options.noise)
    return 0


def _measure(network, nodes: int, case: str, seeds: range, noise: float) -> None:
    kind, _, amount = case.partition(":")
    right = innocent = rounds = tests = 0
    start = time.perf_counter()
    for seed in seeds:
        cluster = simulated(network, nodes, seed, noise)
        plan = cluster.plan(
            groups=network.knows_groups, uplink_pairs=network.uplink_pairs, seed=seed
        )
        expected = plant(cluster, plan, kind, float(amount))
        done = survey(cluster, plan)
        result = outcome(done.verdict, expected)
        right += result.right
        innocent += result.innocent
        rounds += len(done.rounds)
        tests += 2 * cluster.tests
    count = len(seeds)
    bound = float(beta.ppf(0.95, innocent + 1, count - innocent)) if innocent < count else 1.0
    print(
        f"{network.name:18} {nodes:5} {case:12} right {right / count:6.1%}  innocent accused "
        f"{innocent / count:6.1%} (< {bound:.1%})  rounds {rounds / count:5.1f}  tests per node "
        f"{tests / count / nodes:5.1f}  {(time.perf_counter() - start) / count:.2f} s each",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
