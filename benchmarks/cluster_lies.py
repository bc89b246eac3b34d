"""Surveys clusters in which one node lies, or does not answer as it should.

    python benchmarks/cluster_lies.py [--lies 200] [--seed 1]

Agents in threads answer what a survey over NCCL requests; rails are scripted, the coordinator, the
procedure and the folder are the real ones. In each survey one of four nodes behaves but for one
value of its messages, or for the manner of sending one of them. Messages, values and manners are
drawn. After each survey no other node may be blamed, all that is stored must be readable, and
nothing half-written may be left. The exit status is 1 if anything is wrong, else 0.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from cluster.lying_agents import (  # noqa: E402
    EXAMPLES,
    MANNERS,
    Lie,
    honest_node,
    lies_about,
    rail_answer,
    tag_of,
)
from cluster.surveyed_lies import survey_with  # noqa: E402
from waywiser.cluster.connection.rail_requests import MeasureRails  # noqa: E402
from waywiser.cluster.connection.rank_orders import pair_parts  # noqa: E402

SHOWN_EVERY = 50


def all_lies() -> list[Lie]:
    """Every lie about every value of every message of a survey, and every manner of sending it."""
    parts = pair_parts(honest_node("n1"), honest_node("n2"), 1 << 16, "nccl")
    measured = rail_answer(MeasureRails("test", "key", 0, 2, 4, parts, 1, 10.0, watched=True))
    found = lies_about(honest_node("n4"), "join")
    for answer in (*(example for _, example in EXAMPLES), measured):
        found += lies_about(answer, tag_of(answer))
        found += [Lie(tag_of(answer), manner=manner) for manner in MANNERS]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lies = all_lies()
    drawn = random.Random(options.seed).sample(lies, min(options.lies, len(lies)))
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="cluster-lies-") as folder:
        for number, lie in enumerate(drawn, 1):
            survey = survey_with(Path(folder) / str(number), lie)
            wrong = survey.wrong()
            if survey.error is not None:
                wrong.append(f"the survey ended with: {survey.error}")
            for line in wrong:
                print(f"wrong: {lie.tag} {lie.path} {lie.manner} {str(lie.value)[:80]!r}: {line}")
            outcomes["wrong" if wrong else "named" if survey.is_liar_named() else "harmless"] += 1
            if number % SHOWN_EVERY == 0:
                print(f"{number} of {len(drawn)}: {dict(outcomes)}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(drawn)} of {len(lies)} lies: {dict(outcomes)}; {peak:.0f} MiB at most")
    return 1 if outcomes["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
