"""Copies between host memories, and files to host memory, beside what programs use without the
library: `numpy.copyto`, and `readinto` of an unbuffered file.

    python benchmarks/host_copies.py [--processes 3] [--within SECONDS] [--json FILE]

A process times both calls of each pair in turns, in blocks of repetitions whose order alternates.
Its figure for a call is the smallest median of the blocks, and the ratio of a pair is the median
over its blocks. The figure of several processes is the median, with the smallest and largest ratio.
Files are in the page cache. Memory was touched before. Bytearrays are copied by numpy in arrays of
their memory. `from a path` opens and closes the file in both calls; `from a descriptor` reads an
open file from its beginning (`os.preadv`), and `from a file` an unbuffered file object (`seek` and
`readinto`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from replicates import replicates

from waywiser import transfer

KIB, MIB = 1 << 10, 1 << 20
SIZES = tuple(4 * KIB * 4**power for power in range(8))  # up to 64 MiB
PAIRS_OF_BLOCKS = 4
MOST_CALLS = 2000  # of a block
BYTES_OF_BLOCK = 64 * MIB
Call = Callable[[], Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--replicate", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replicate:
        json.dump(replicate(), sys.stdout)
        return 0
    runs: list[dict[str, dict[str, float]]] = []
    for figures in replicates(__file__, [], asked.processes, asked.within):
        runs.append(figures)
        if asked.json:
            asked.json.write_text(json.dumps(runs, indent=1) + "\n")
    print(f"{len(runs)} processes; microseconds of the library, of the other, and their ratio")
    for name in runs[0]:
        ours, others, ratios = ([run[name][key] for run in runs] for key in KEYS)
        print(
            f"{name:32} {statistics.median(ours):10.2f} {statistics.median(others):10.2f}"
            f"  {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    return 0


KEYS = ("library, us", "other, us", "ratio")


def replicate() -> dict[str, dict[str, float]]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            for name, library, other in pairs(size, Path(folder) / "file"):
                found[f"{size // KIB} KiB, {name}"] = compared(library, other, size)
    return found


def pairs(size: int, path: Path) -> Iterator[tuple[str, Call, Call]]:
    """Yields a name, the call of the library and the other call."""
    to, source = np.zeros(size, np.uint8), np.ones(size, np.uint8)
    copy, copyto, read = transfer.copy, np.copyto, transfer.read
    yield "numpy arrays", lambda: copy(to, source), lambda: copyto(to, source)
    raw_to, raw_source = bytearray(size), bytearray(source)
    seen_to, seen_source = (np.frombuffer(raw, np.uint8) for raw in (raw_to, raw_source))
    yield "bytearrays", lambda: copy(raw_to, raw_source), lambda: copyto(seen_to, seen_source)
    path.write_bytes(raw_source)
    name = str(path)

    def readinto() -> None:
        with open(name, "rb", buffering=0) as file:
            file.readinto(raw_to)

    yield "from a path", lambda: read(name, raw_to), readinto
    with path.open("rb", buffering=0) as file:
        number, parts = file.fileno(), [raw_to]
        yield "from a descriptor", lambda: read(number, raw_to), lambda: os.preadv(number, parts, 0)

        def seek_and_readinto() -> None:
            file.seek(0)
            file.readinto(raw_to)

        yield "from a file", lambda: read(file, raw_to), seek_and_readinto


def compared(library: Call, other: Call, size: int) -> dict[str, float]:
    calls = max(5, min(MOST_CALLS, BYTES_OF_BLOCK // size))
    blocks = []
    for _ in range(PAIRS_OF_BLOCKS):
        first = median_time(library, calls), median_time(other, calls)
        second = median_time(other, calls), median_time(library, calls)
        blocks += [first, second[::-1]]
    ratio = statistics.median(ours / theirs for ours, theirs in blocks)
    return dict(zip(KEYS, (*map(min, zip(*blocks, strict=True)), ratio), strict=True))


def median_time(call: Call, calls: int) -> float:
    """Returns the median time of a call in microseconds."""
    times = []
    for _ in range(calls):
        begun = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begun)
    return statistics.median(times) / 1e3


if __name__ == "__main__":
    sys.exit(main())
