"""Measures what `waywiser doctor --try` and `waywiser survey --ranks` leave when they are killed.

    python benchmarks/early_kills.py [--mpicc PATH] [--kills 100] [--seed 1] [--seconds 8]

Half of the kills come within 30 ms after the folders of a launch are made, the others at any moment
of the first seconds; SIGKILL and SIGTERM in turn. Then one command runs to its end, and no process,
file or shared memory of the killed ones may be left. The exit status is 1 if something is, else 0.
Nothing else may launch ranks on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from tests.measure.ranks.killed_commands import kill_commands  # noqa: E402

from waywiser.measure.probe.environment import worker_environment  # noqa: E402
from waywiser.measure.ranks.mpi_library import find_library  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpicc", default="", help="by default that of 'waywiser doctor --mpi'")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8.0, help="the latest moment of a kill")
    options = parser.parse_args()
    library = find_library(options.mpicc)
    environment = worker_environment(os.environ)
    wrong = kill_commands(
        options.kills, library.mpicc.path, environment, options.seed, options.seconds
    )
    print(f"{library.name} {library.version}: {options.kills} kills; wrong: {wrong or 'nothing'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
