"""How well two surveys of one machine agree, series by series.

    python benchmarks/repeatability.py FIRST.wwp SECOND.wwp [--json FILE]

Prints the median and the 90th percentile of |ratio - 1| of the median times over all series of both
profiles, for all sizes and from 1 MiB on, and by who timed: devices, or the host (where CPUs move
the bytes or start them, and a hypervisor may move the CPUs).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from waywiser.profile import Profile
from waywiser.profile.estimate import estimate

MIB = 2**20


def medians(file: Path) -> dict[str, tuple[int, str, float]]:
    """Per workload: bytes of its first transfer, who timed it, median seconds."""
    found = {}
    with Profile.open(file) as profile:
        for series in profile.iter_series():
            result = estimate(series)
            if result is not None and series.workload.transfers:
                mode = next(v.mode for v in series.visits if len(v.samples))
                size = series.workload.transfers[0].bytes
                found[series.workload.identity] = (size, mode, result.median)
    return found


def quantile(values: list[float], fraction: float) -> float:
    return sorted(values)[min(len(values) - 1, int(fraction * len(values)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    wanted = parser.parse_args()
    first, second = medians(wanted.first), medians(wanted.second)
    rows = []
    for smallest in (1, MIB):
        for modes in (("device", "host"), ("device",), ("host",)):
            off = [
                abs(first[key][2] / second[key][2] - 1)
                for key in first.keys() & second.keys()
                if first[key][0] >= smallest and first[key][1] in modes
            ]
            if off:
                row = {"from_bytes": smallest, "timed_by": " and ".join(modes), "series": len(off)}
                rows.append(row | {"median": quantile(off, 0.5), "p90": quantile(off, 0.9)})
    print(f"{'from bytes':>10} {'series':>6} {'median':>8} {'p90':>8}  timed by")
    for row in rows:
        print(
            f"{row['from_bytes']:10d} {row['series']:6d} {row['median']:8.3%} {row['p90']:8.3%}"
            f"  {row['timed_by']}"
        )
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
