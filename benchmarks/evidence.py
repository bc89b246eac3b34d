"""Whether the machine's own counters and its latencies bear profiles out.

    python benchmarks/evidence.py PROFILE... [--json FILE]

Two questions. Of every curve around which link counters were read: do NVLink's agree with the bytes
that the transfers moved? And: do all profiles show the same groups of GPUs? The exit status is 1
when a ratio of NVLink lies outside 2 %, or two profiles show other groups, else 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from waywiser.profile import Profile
from waywiser.series.locality import decide_sides
from waywiser.series.traffic import link_use

TOLERANCE = 0.02


@dataclass(frozen=True)
class Row:
    """One kind of link of one GPU that carried a curve."""

    profile: str
    curve: str
    gpu: int
    link: str
    direction: str
    links: int
    ratio: float
    """Bytes counted over bytes moved."""


def counted(file: Path) -> list[Row]:
    rows = []
    with Profile.open(file) as profile:
        for series in profile.iter_series():
            found = link_use(series, profile.machine.traits)
            for each in found.carried if found else ():
                link = (each.gpu, each.link, each.direction, each.links, each.ratio)
                rows.append(Row(file.name, series.workload.curve, *link))
    return rows


def groups(file: Path) -> tuple[tuple[int, ...], ...]:
    with Profile.open(file) as profile:
        sides = decide_sides(profile.localities())
    return sides.groups if sides else ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    wanted = parser.parse_args()
    rows = [row for file in wanted.profiles for row in counted(file)]
    for row in rows:
        print(f"{row.ratio:8.4f} {row.link:>6} gpu:{row.gpu} {row.direction:>8} over "
              f"{row.links:2} links  {row.curve}")  # fmt: skip
    result = {file.name: groups(file) for file in wanted.profiles}
    for name, sides in result.items():
        print(f"{name}: {' and '.join(map(str, sides)) or 'nobody looked'}")
    if wanted.json:
        wanted.json.write_text(
            json.dumps({"counted": [*map(asdict, rows)], "groups": result}, indent=2) + "\n"
        )
    off = any(row.link == "NVLink" and abs(row.ratio - 1) > TOLERANCE for row in rows)
    return 1 if off or len(set(result.values())) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
