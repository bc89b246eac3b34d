"""Whether Waywiser's numbers are right where nobody has a library to ask: the same ways in plain
CUDA (`plain.cu`), compiled by nvcc and timed in the same call, before and after a survey of them.

    python benchmarks/plain.py [--json FILE] [--bytes 1GiB]

Zero-copy by SMs, managed memory by prefetch and on demand, the latency of a page fault, and that of
a load from page-locked memory. Needs a GPU and nvcc. The exit status is 1 when a ratio lies outside
what its row allows and the two plain runs agree within that, else 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
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
    told = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    seconds: dict[str, float] = json.loads(told)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--bytes", type=parse_bytes, default=1 << 30)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        before = plain(program, wanted.bytes)
        found = survey([way.curve for way in WAYS], ("--sizes", str(wanted.bytes)))
        after = plain(program, wanted.bytes)
    print(f"{format_bytes(wanted.bytes)}; GB/s, latencies in us; ratio of the times")
    print(f"{'waywiser':>10} {'±':>6} {'plain':>8} {'again':>8} {'ratio':>7}  what")
    outside, rows = 0, []
    for way in WAYS:
        told = found.get(way.curve)
        if told is None:
            print(f"{'not measured':>43}  {way.curve}")
            outside += 1
            continue
        ratio = told.median / statistics.mean((before[way.plain], after[way.plain]))
        steady = abs(before[way.plain] / after[way.plain] - 1) <= way.allowed
        outside += steady and abs(ratio - 1) > way.allowed
        row = {"what": way.curve, "bytes": wanted.bytes, "seconds": told.median}
        row |= {"relative": told.relative, "plain": before[way.plain]}
        rows.append(row | {"plain_again": after[way.plain], "ratio": ratio})
        shown = [told.median, before[way.plain], after[way.plain]]
        latency = told.rate is None
        own, first, again = (s * 1e6 if latency else wanted.bytes / s / 1e9 for s in shown)
        within = told.relative if told.relative is not None else float("nan")
        print(f"{own:10.2f} {within:6.2%} {first:8.2f} {again:8.2f} {ratio:7.4f}  {way.curve}")
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
