"""Measures what killed processes cost surveys of clusters, and what they leave behind.

    python benchmarks/cluster_kills.py [--kills 30] [--seed 1] [--nodes 4]

The nodes are processes of this host, over the fake GPU and the fake NCCL. In turn the coordinator,
an agent and a worker are killed, each at a random moment; a survey whose coordinator was killed, or
that has lost a node, is resumed. After each kill all that was finished must still be there,
unchanged, and must not be tested again; in the end no process, shared memory or temporary file may
be left. The exit status is 1 if anything is wrong, else 0.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from tests.cluster.killed_surveys import KilledSurvey  # noqa: E402
from tests.measure.ranks.watching import own_files  # noqa: E402

from nccl_nodes import FAKE_NCCL  # noqa: E402
from tree import FAKE_FOLDER  # noqa: E402

VICTIMS = ("coordinator", "agent", "worker")
LONGEST_WAIT = 6.0
"""Seconds from the start of a survey, or from the kill before, to the next."""


def environment() -> dict[str, str]:
    fakes = {
        "WAYWISER_NATIVE": "waywiser_fake._native",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(FAKE_FOLDER)]),
        "WAYWISER_FAKE": "devices=1",
        "WAYWISER_NCCL": str(FAKE_NCCL),
    }
    return {**os.environ, **fakes}


def survey_with_kills(folder: Path, names: tuple[str, ...], kills: int, rng: random.Random) -> int:
    """How many processes were killed until a survey ended by itself."""
    killed: Counter[str] = Counter()
    with own_files() as files:
        own = {**environment(), **files.environment}
        survey = KilledSurvey(folder, own, names, "--transport", "nccl")
        _kill(survey, names, kills, rng, killed)
    for line in survey.wrong:
        print(f"wrong: {line}")
    return -1 if survey.wrong else killed.total()


def _kill(
    survey: KilledSurvey,
    names: tuple[str, ...],
    kills: int,
    rng: random.Random,
    killed: Counter[str],
) -> None:
    try:
        survey.start()
        while killed.total() < kills:
            time.sleep(rng.uniform(0, LONGEST_WAIT))
            if survey.survey.poll() is not None:
                break
            victim, name = VICTIMS[killed.total() % len(VICTIMS)], rng.choice(names)
            waiting = victim == "coordinator" and "round" not in survey.said
            if not survey.kill(victim, name, waiting=waiting):
                continue
            killed[victim] += 1
            print(f"killed: {victim} {name}, {len(survey.finished())} tests finished", flush=True)
            if victim == "coordinator":
                survey.start("--resume", "--retry")
        survey.end()
    finally:
        survey.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=4)
    options = parser.parse_args()
    names = tuple(f"n{number}" for number in range(1, options.nodes + 1))
    rng, done = random.Random(options.seed), 0
    while done < options.kills:
        with tempfile.TemporaryDirectory(prefix="cluster-kills-") as folder:
            found = survey_with_kills(Path(folder), names, options.kills - done, rng)
        if found < 0:
            return 1
        done += found
    print(f"{done} kills: nothing finished was lost or repeated, nothing is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
