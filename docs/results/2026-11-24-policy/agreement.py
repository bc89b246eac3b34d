"""Prints how often the policy chooses the method that `waywiser advise` names for a list of pieces.

    python docs/results/2026-11-24-policy/agreement.py

The policy has rows at the counts of pieces and the piece sizes that were measured. `advise`
estimates each request from lists of its own number of pieces. Where they differ, the regret is how
much longer the policy's method takes than the one that `advise` names, by the times of `advise`.
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import waywiser
from waywiser.words import WaywiserError

RESULTS = Path(__file__).parent.parent

PROFILES = {
    "H100, this round": "2026-11-24-policy/h100-standard",
    "H200, this round": "2026-11-24-policy/h200-standard",
    "H100, third survey": "2026-11-23-surveys/h100-standard-3",
    "H200, fifth survey": "2026-11-23-surveys/h200-standard-5",
    "four H200": "2026-11-20-h200-catalogue/four-gpus/standard",
}

ENDS = (("device@gpu:0", "pinned@numa:0"), ("pinned@numa:0", "device@gpu:0"))
COUNTS = (2, 8, 32, 100, 148, 256, 400, 585, 800, 1000, 2000, 4000)
PIECES = tuple(n * 1024 for n in (4, 8, 16, 28, 48, 64, 80, 96, 104, 112, 120, 128, 160, 256, 512))


class Case(NamedTuple):
    """One list for which both name a method."""

    count: int
    piece: int
    regret: float
    within_noise: bool
    """Whether the intervals of the two times overlap."""


def cases(file: Path) -> list[Case]:
    """All lists of the grid that `advise` answers and the policy has a row for."""
    found = []
    profile = waywiser.open(file)
    policy = profile.policy()
    for source, destination in ENDS:
        kinds = (end.partition("@")[0] for end in (source, destination))
        rows = policy.class_of(*kinds)
        for count in COUNTS:
            for piece in PIECES:
                try:
                    advice = profile.advise(source, destination, piece, count=count)
                except WaywiserError:
                    continue
                row = rows.row(piece, count=count, threads=64)
                known = (advice.best, *advice.alternatives)
                times = (e.time for e in known if e.method.executor == row.executor)
                mine, best = next(times, None), advice.best.time
                if mine is not None:
                    regret = mine.seconds / best.seconds - 1
                    found.append(Case(count, piece, regret, mine.low <= best.high))
    return found


def main() -> None:
    print("| profile | lists | same method | 95th percentile | largest | at | beyond the noise |")
    print("|---|---|---|---|---|---|---|")
    for name, path in PROFILES.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kept.wwp"
            file.write_bytes(lzma.decompress((RESULTS / f"{path}.wwp.xz").read_bytes()))
            found = cases(file)
        regrets = sorted(max(each.regret, 0.0) for each in found)
        same = sum(each.regret == 0 for each in found)
        worst = max(found, key=lambda each: each.regret)
        clear = sum(not each.within_noise for each in found)
        print(
            f"| {name} | {len(found)} | {same / len(found):.0%} | "
            f"{np.quantile(regrets, 0.95):.1%} | {worst.regret:.0%} | {worst.count} pieces of "
            f"{worst.piece // 1024} KiB | {clear} |"
        )


if __name__ == "__main__":
    main()
