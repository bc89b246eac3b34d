"""Whether Waywiser's numbers are right where nobody has a library to ask: the same ways in plain
CUDA (`plain.cu`), compiled by nvcc and timed in the same call, before, between and after surveys
of them.

    python benchmarks/plain.py [--json FILE] [--bytes 1GiB] [--rounds 3]

Zero-copy by SMs, managed memory by prefetch and on demand, the latency of a page fault, and that of
a load from page-locked memory. Each round's ratio is of a survey to the plain runs on both sides of
it; the median of the rounds counts. Needs a GPU and nvcc. The exit status is 1 when it lies outside
what its row allows and the plain runs all agree within that, else 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from surveyed import survey

from waywiser.words import format_bytes, parse_bytes

FAULT_STRIDE = 2 << 20
CHASE_BYTES = 256 << 20


@dataclass(frozen=True)
class Way:
    """One thing that both measure."""

    plain: str
    """Its name in what plain.cu prints."""
    curve: str
    allowed: float
    """Of the ratio, from 1; infinite where the figures stand beside each other only."""


WAYS = (
    Way("read", "pinned@numa:0 -> device@gpu:0 by sm", 0.03),
    Way("write", "device@gpu:0 -> pinned@numa:0 by sm", 0.03),
    Way("read-paper", "pinned@numa:0 -> device@gpu:0 by sm[grid=paper]", 0.03),
    Way("write-paper", "device@gpu:0 -> pinned@numa:0 by sm[grid=paper]", 0.03),
    Way("prefetch-h2d", "managed@numa:0 -> managed@gpu:0 by prefetch", 0.10),
    Way("prefetch-d2h", "managed@gpu:0 -> managed@numa:0 by prefetch", 0.10),
    Way("demand-h2d", "managed@numa:0 -> managed@gpu:0 by page-fault", 0.10),
    Way("demand-d2h", "managed@gpu:0 -> managed@numa:0 by page-fault", 0.10),
    Way("fault", "page-fault-latency@gpu:0", float("inf")),
    Way("host-load", "sm-latency[memory=numa:0]@gpu:0", 0.05),
    # Other memory: huge pages, and what the runtime allocates and nobody can bind.
    Way("read-paper-huge", "pinned[pages=huge]@numa:0 -> device@gpu:0 by sm[grid=paper]", 0.03),
    Way("write-paper-huge", "device@gpu:0 -> pinned[pages=huge]@numa:0 by sm[grid=paper]", 0.03),
    Way(
        "read-paper-allocated",
        "pinned[from=host-alloc]@numa:0 -> device@gpu:0 by sm[grid=paper]",
        0.03,
    ),
    Way(
        "write-paper-allocated",
        "device@gpu:0 -> pinned[from=host-alloc]@numa:0 by sm[grid=paper]",
        0.03,
    ),
    # Of ordinary pages here, so that they stand beside each other only.
    Way("host-load-huge", "sm-latency[memory=numa:0]@gpu:0", float("inf")),
    Way("host-load-allocated", "sm-latency[memory=numa:0]@gpu:0", float("inf")),
)


def build(folder: Path) -> Path:
    program = folder / "plain"
    source = Path(__file__).with_name("plain.cu")
    subprocess.run(
        ["nvcc", "-O3", "-std=c++17", "-arch=native", str(source), "-o", str(program)], check=True
    )
    return program


def plain(program: Path, size: int) -> dict[str, float]:
    """Seconds of each way."""
    arguments = [str(program), str(size), str(FAULT_STRIDE), str(CHASE_BYTES)]
    result = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    seconds: dict[str, float] = json.loads(result)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--bytes", type=parse_bytes, default=1 << 30)
    parser.add_argument("--rounds", type=int, default=3, help="3 by default")
    wanted = parser.parse_args()
    if wanted.rounds < 1:
        parser.error("--rounds: at least one")
    curves = list(dict.fromkeys(way.curve for way in WAYS))
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        plains = [plain(program, wanted.bytes)]
        surveys = []
        for _ in range(wanted.rounds):
            surveys.append(survey(curves, ("--sizes", str(wanted.bytes))))
            plains.append(plain(program, wanted.bytes))
    print(f"{format_bytes(wanted.bytes)}; GB/s, latencies in us; ratio of the times, each round's")
    print(f"{'waywiser':>10} {'plain':>8} {'from':>8} {'to':>8} {'ratio':>7}  what")
    outside, rows = 0, []
    for way in WAYS:
        result = [found[way.curve] for found in surveys if way.curve in found]
        if len(result) < wanted.rounds:
            print(f"{'not measured':>45}  {way.curve}")
            outside += 1
            continue
        own = [each.median for each in result]
        others = [each[way.plain] for each in plains]
        ratios = [s / statistics.mean(p) for s, p in zip(own, pairwise(others), strict=True)]
        ratio = statistics.median(ratios)
        steady = max(others) / min(others) - 1 <= way.allowed
        outside += steady and abs(ratio - 1) > way.allowed
        row = {"what": way.curve, "plain": way.plain, "bytes": wanted.bytes, "seconds": own}
        row |= {"relative": [each.relative for each in result], "plain_seconds": others}
        rows.append(row | {"ratios": ratios, "ratio": ratio, "steady": steady})
        latency = result[0].rate is None
        shown = [statistics.median(own), statistics.median(others), max(others), min(others)]
        figures = [s * 1e6 if latency else wanted.bytes / s / 1e9 for s in shown]
        figures[2:] = sorted(figures[2:])
        each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(" ".join(f"{f:{10 if i == 0 else 8}.2f}" for i, f in enumerate(figures))
              + f" {ratio:7.4f}  {way.plain}: {way.curve} ({each})")  # fmt: skip
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
