"""Whether the machine's own counters and its latencies bear profiles out.

    python benchmarks/evidence.py PROFILE... [--json FILE]

Two questions. Of every curve around which link counters were read: do NVLink's agree with the bytes
that the transfers moved, and between each two GPUs? And: do all profiles show the same groups of
GPUs, and how sure is each of them? The exit status is 1 when a ratio of NVLink lies outside 2 %, or
two profiles show other groups, else 0.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from waywiser.machine.system_files import format_list
from waywiser.profile import Profile
from waywiser.profile.locality import Sides, decide_sides
from waywiser.profile.traffic import link_use

TOLERANCE = 0.02
PEER_COPY = re.compile(r"device@gpu:(\d+) -> device@gpu:(\d+) by copy-engine")


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


@dataclass(frozen=True)
class GroupsOfGpus:
    """The sides of the machine that one profile shows, and how sure that is."""

    profile: str
    groups: tuple[tuple[int, ...], ...]
    """Empty if nobody looked."""
    by: str
    """Empty, "blocks" or "level": what shows two groups."""
    p_value: float | None
    agreeing: int
    """Blocks of memory that show the same groups alone."""
    blocks: int
    local_seconds: float
    remote_seconds: float


def groups(file: Path) -> GroupsOfGpus:
    with Profile.open(file) as profile:
        sides = decide_sides(profile.localities()) or Sides()
    return GroupsOfGpus(
        profile=file.name,
        groups=sides.groups,
        by=sides.by,
        p_value=sides.p_value,
        agreeing=sides.agreeing,
        blocks=len(sides.blocks),
        local_seconds=sides.local_seconds,
        remote_seconds=sides.remote_seconds,
    )


def groups_table(found: Sequence[GroupsOfGpus]) -> Iterator[str]:
    yield "| profile | groups of GPUs | shown by | p | blocks that agree | own side | other side |"
    yield "|---|---|---|---|---|---|---|"
    for each in found:
        names = " and ".join(format_list(group) for group in each.groups) or "not looked for"
        p_value = "" if each.p_value is None else f"{each.p_value:.2g}"
        agreeing = f"{each.agreeing} of {each.blocks}" if len(each.groups) == 2 else ""
        times = [
            f"{seconds * 1e6:.2f} us" if seconds else ""
            for seconds in (each.local_seconds, each.remote_seconds)
        ]
        yield f"| {each.profile} | {names} | {each.by} | {p_value} | {agreeing} | " + (
            f"{times[0]} | {times[1]} |"
        )


def peer_matrix(rows: Sequence[Row]) -> Iterator[str]:
    """NVLink's counted over moved bytes of copies from each GPU to each other one by copy engine:
    the one of sender and receiver that is further from 1, and the links that carried them."""
    cells: dict[tuple[int, int], Row] = {}
    for row in rows:
        pair = PEER_COPY.fullmatch(row.curve)
        if pair is None or row.link != "NVLink":
            continue
        key = (int(pair[1]), int(pair[2]))
        if key not in cells or abs(row.ratio - 1) > abs(cells[key].ratio - 1):
            cells[key] = row
    gpus = sorted({gpu for pair in cells for gpu in pair})
    if not gpus:
        return
    yield f"| from, to | {' | '.join(f'gpu:{gpu}' for gpu in gpus)} |"
    yield f"|---|{'---|' * len(gpus)}"
    for source in gpus:
        found = (cells.get((source, target)) for target in gpus)
        texts = ["" if row is None else f"{row.ratio:.3f} x {row.links}" for row in found]
        yield f"| gpu:{source} | {' | '.join(texts)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    wanted = parser.parse_args()
    rows = [row for file in wanted.profiles for row in counted(file)]
    for row in rows:
        print(f"{row.ratio:8.4f} {row.link:>6} gpu:{row.gpu} {row.direction:>8} over "
              f"{row.links:2} links  {row.curve}")  # fmt: skip
    for line in peer_matrix(rows):
        print(line)
    found = [groups(file) for file in wanted.profiles]
    for line in groups_table(found):
        print(line)
    different = {each.groups for each in found}
    if len(different) == 1:
        print(f"all {len(found)} profiles show the same groups")
    else:
        print(f"{len(found)} profiles show {len(different)} different groupings")
    if wanted.json:
        kept = {
            "counted": [*map(asdict, rows)],
            "groups": {each.profile: each.groups for each in found},
            "sides": [*map(asdict, found)],
        }
        wanted.json.write_text(json.dumps(kept, indent=2) + "\n")
    off = any(row.link == "NVLink" and abs(row.ratio - 1) > TOLERANCE for row in rows)
    return 1 if off or len(different) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
