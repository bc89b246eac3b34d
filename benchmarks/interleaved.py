"""Compares the copies of two builds: are they as fast as before a change?

    python benchmarks/interleaved.py OLD NEW [--rounds 5] [--only PATTERN] [--within SECONDS]
                                     [--json FILE]

OLD and NEW are folders from which Python imports waywiser (``PYTHONPATH``). A round runs four
processes of ``benchmarks/transfer.py``: old, old, new, new. The first of each pair and the second
make two comparisons: new with old, and, as the noise, old with old. A row's figure is the median of
the ratios of times over the rounds; the interval is the smallest and the largest ratio. A row
passes if new over old is within 2 %, or within the largest difference that a pair of equal builds
showed. The methods of other libraries (torch, cupy) show what the machine does meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("transfer.py")
ALLOWED = 0.02
"""The difference that passes in any case."""

OURS = "waywiser"
ORDER = ("old", "old", "new", "new")
COPIES = r"^(H2D|D2H) (4 KiB|64 KiB|1 MiB|4 MiB|16 MiB|64 MiB|1 GiB)$|Python call|blocks|^H2D and"

Times = dict[tuple[str, str], float]
"""Seconds by group and name of the row."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=COPIES, help="groups whose name matches the expression")
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folders = {"old": options.old, "new": options.new}
    begun = time.monotonic()
    rounds: list[list[Times]] = []
    machine = ""
    for number in range(options.rounds):
        gone = time.monotonic() - begun
        if number and gone * (number + 1) / number > options.within:
            print(f"{number} of {options.rounds} rounds fit into {options.within:.0f} s")
            break
        runs = [replicate(folders[name], options.only) for name in ORDER]
        machine = runs[0]["machine"]
        rounds.append([times_of(run) for run in runs])
        if options.json:
            listed = [[list(map(list_of, run.items())) for run in each] for each in rounds]
            options.json.write_text(json.dumps({"machine": machine, "rounds": listed}) + "\n")
    failed = show(machine, rounds)
    return 1 if failed else 0


def list_of(item: tuple[tuple[str, str], float]) -> list[Any]:
    return [*item[0], item[1]]


def replicate(folder: Path, only: str) -> dict[str, Any]:
    """What one process with the build in ``folder`` measures."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--replicate", "--only", only],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(folder), "OMP_WAIT_POLICY": "passive"},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def times_of(run: dict[str, Any]) -> Times:
    return {
        (group, name): row["seconds"]
        for group, rows in run["groups"].items()
        for name, row in rows.items()
        if not isinstance(row["seconds"], str)
    }


def show(machine: str, rounds: list[list[Times]]) -> int:
    """Prints a table; returns how many rows of ours do not pass."""
    print(f"{machine}, n = {len(rounds)} rounds of {', '.join(ORDER)}\n")
    print("| copy | old | new / old | interval | old with old | new / new | passes |")
    print("|---|---|---|---|---|---|---|")
    failed = 0
    for row in sorted(set.intersection(*(set(run) for each in rounds for run in each))):
        times = [[run[row] for run in each] for each in rounds]
        ratio = statistics.median((c + d) / (a + b) for a, b, c, d in times)
        ratios = [(c + d) / (a + b) for a, b, c, d in times]
        same = [b / a for a, b, _, _ in times], [d / c for _, _, c, d in times]
        noise = statistics.median(abs(each - 1) for each in same[0])
        is_ours = row[1].startswith(OURS)
        passes = abs(ratio - 1) <= max(ALLOWED, noise)
        failed += is_ours and not passes
        mark = "" if not is_ours else "yes" if passes else "no"
        old = statistics.median(time for each in times for time in each[:2])
        print(
            f"| {row[0]}: {row[1]} | {old * 1e6:.1f} us | {ratio:.3f} | {min(ratios):.3f} to "
            f"{max(ratios):.3f} | ± {noise:.1%} | "
            f"{statistics.median(same[1]):.3f} | {mark} |"
        )
    print(f"\n{failed} rows of {OURS} do not pass")
    return failed


if __name__ == "__main__":
    sys.exit(main())
