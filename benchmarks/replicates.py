"""Figures of several processes of a benchmark, each of which prints its own as JSON."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def replicates(
    script: str,
    options: Sequence[str],
    processes: int,
    within: float,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """Yields what each process of ``script --replicate`` prints: ``processes`` of them, or as many
    as are expected to end within so many seconds, one at least."""
    begun = time.monotonic()
    for number in range(processes):
        gone = time.monotonic() - begun
        if number and gone * (number + 1) / number > within:
            print(f"{number} of {processes} processes fit into {within:.0f} s")
            return
        done = subprocess.run(
            [sys.executable, script, "--replicate", *options],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=environment,
        )
        yield json.loads(done.stdout)


def print_medians(runs: Sequence[Mapping[str, float]]) -> None:
    """Prints the median of each figure over the processes, with the smallest and the largest."""
    print(f"{len(runs)} processes")
    for name in runs[0]:
        values = [run[name] for run in runs if name in run]
        print(f"{name}: {statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})")
