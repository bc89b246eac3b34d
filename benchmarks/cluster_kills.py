"""Measures what killed processes cost surveys of clusters, and what they leave behind.

    python benchmarks/cluster_kills.py [--kills 30] [--seed 1] [--nodes 4] [--mpicc PATH]

The nodes are processes of this host, over the fake GPU. Surveys take turns: one with messages over
the fake NCCL, one over MPI. In turn the coordinator, an agent and a worker or the launcher of MPI
are killed, each at a random moment; the coordinator also while it starts, after which the same
command must work, and by SIGTERM and SIGINT, after which it must end with 130. A survey whose
coordinator was killed is resumed. An agent that is killed before the first test is started again,
as a scheduler does: the coordinator waits for it as long as ``--join-seconds`` says. After each
kill all that was finished must still be there, unchanged, and must not be tested again, and no line
may be damaged; in the end no process, shared memory or temporary file may be left, and no hidden
file in the folder. The exit status is 1 if anything is wrong, else 0.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from tests.cluster.killed_surveys import KilledSurvey  # noqa: E402
from tests.measure.ranks.watching import own_files  # noqa: E402

from mpi_wheels import mpicc_of  # noqa: E402
from nccl_nodes import FAKE_NCCL  # noqa: E402
from tree import FAKE_FOLDER  # noqa: E402


class Kind(NamedTuple):
    """A kind of survey, and who is killed in turn."""

    transport: str
    gpus: int
    victims: tuple[str, ...]


KINDS = (
    Kind("nccl", 1, ("coordinator", "agent", "worker")),
    Kind("mpi", 0, ("coordinator", "agent", "launcher")),
)
KILLS_OF_ONE = 8
"""Kills of a survey at most; then it runs to its end."""

LONGEST_WAIT = 6.0
"""Seconds from the start of a survey, or from the kill before, to the next."""

EARLY_KILLS = 2
"""Kills of the coordinator of each survey while it starts."""

LONGEST_START = 5.0
"""Seconds in which a coordinator loads its modules, makes its folder and listens."""

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

MOMENT = 0.05
"""Seconds after which a victim that is not there is looked for again: launchers live shortly."""

Killed = Counter[tuple[str, str]]
"""The number of kills, by victim and moment."""


def environment(gpus: int) -> dict[str, str]:
    fakes = {
        "WAYWISER_NATIVE": "waywiser_fake._native",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(FAKE_FOLDER)]),
        "WAYWISER_FAKE": f"devices={gpus}",
        "WAYWISER_NCCL": str(FAKE_NCCL),
    }
    return {**os.environ, **fakes}


def survey_with_kills(
    folder: Path,
    kind: Kind,
    options: tuple[str, ...],
    names: tuple[str, ...],
    kills: int,
    rng: random.Random,
) -> tuple[Killed, bool]:
    """Who was killed until a survey ended by itself, and whether all was right."""
    killed: Killed = Counter()
    with own_files() as files:
        own = {**environment(kind.gpus), **files.environment}
        survey = KilledSurvey(folder, own, names, "--transport", kind.transport, *options)
        _kill(survey, kind, names, kills, rng, killed)
    for line in survey.wrong:
        print(f"wrong: {line}")
    tests = len(survey.finished())
    print(f"{kind.transport}: ended by itself, {tests} tests finished", flush=True)
    return killed, not survey.wrong


def _kill(
    survey: KilledSurvey,
    kind: Kind,
    names: tuple[str, ...],
    kills: int,
    rng: random.Random,
    killed: Killed,
) -> None:
    try:
        for _ in range(min(EARLY_KILLS, kills)):
            number = rng.choice(SIGNALS)
            made = survey.end_early(rng.uniform(0.1, LONGEST_START), number)
            killed["coordinator", "with a folder" if made else "before its folder"] += 1
            print(f"{kind.transport}: {number.name} to a coordinator that starts", flush=True)
        survey.start()
        while killed.total() < kills:
            time.sleep(rng.uniform(0, LONGEST_WAIT))
            victim = kind.victims[killed.total() % len(kind.victims)]
            name = _kill_when_there(survey, victim, names, rng)
            if not name:
                break
            moment = "in the rounds" if "round" in survey.said else "while nodes join"
            killed[victim, moment] += 1
            done = f"{len(survey.finished())} tests finished"
            print(f"{kind.transport}: killed {victim} {name} {moment}, {done}", flush=True)
            if victim == "coordinator":
                survey.start("--resume", "--retry")
            elif victim == "agent" and moment == "while nodes join":
                survey.start_agent(name)
        survey.end()
        survey.check_leftovers()
    finally:
        survey.close()


def _kill_when_there(
    survey: KilledSurvey, victim: str, names: tuple[str, ...], rng: random.Random
) -> str:
    """The node of the victim that was killed, drawn anew at each look; empty if the survey ended
    before there was one."""
    while survey.survey.poll() is None:
        waiting = victim == "coordinator" and "round" not in survey.said
        name = rng.choice(names)
        number = rng.choice(SIGNALS) if victim == "coordinator" else signal.SIGKILL
        if survey.kill(victim, name, waiting=waiting, number=number):
            return name
        time.sleep(MOMENT)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--mpicc", default="", help="that of the wheel of MPICH by default")
    options = parser.parse_args()
    # A shell lets what it starts in the background ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = tuple(f"n{number}" for number in range(1, options.nodes + 1))
    rng, all_killed, number = random.Random(options.seed), Killed(), 0
    while (done := all_killed.total()) < options.kills:
        kind = KINDS[number % len(KINDS)]
        own = ("--mpicc", options.mpicc or mpicc_of("mpich")) if kind.transport == "mpi" else ()
        kills = min(KILLS_OF_ONE, options.kills - done)
        with tempfile.TemporaryDirectory(prefix="cluster-kills-") as folder:
            killed, is_right = survey_with_kills(Path(folder), kind, own, names, kills, rng)
        if not is_right:
            return 1
        all_killed += killed
        number += 1
    for (victim, moment), times in sorted(all_killed.items()):
        print(f"{victim} {moment}: {times}")
    print(
        f"{done} kills in {number} surveys: nothing finished was lost or repeated, nothing is left"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
