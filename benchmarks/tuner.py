"""Plays the search of `waywiser tune` on recorded grids, and says how good its winners are.

    python benchmarks/tuner.py GRID.wwp... [--tuned TUNED.wwp] [--seeds N] [--json FILE]

A grid is made by `waywiser tune --grid N`: every configuration of a path and size in N processes.
Half of the processes stand for the machine, and the winner and the best of the grid are compared
on the other half. `--tuned` is a profile of a live tuning of the same machine: the winner of each
of its paths is compared with the best of the grid of this path. Prints the share of the best
bandwidth that winners have, and the share of the samples that the search took.
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "tune"))

from recorded_grid import GridResult, RecordedGrid, recorded_grids, replay, result_on_grid  # noqa: E402

from waywiser.measure.tune.run import tuned_results  # noqa: E402
from waywiser.words import Transfer  # noqa: E402
from waywiser.words.sizes_in_text import with_sizes  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("grids", type=Path, nargs="+")
    parser.add_argument("--tuned", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    live = winners(options.tuned) if options.tuned else {}
    rows: list[dict[str, object]] = []
    for file in options.grids:
        for grid in grids_of(file):
            found = [replay(grid, seed) for seed in range(1, options.seeds + 1)]
            rows.append(row(grid, found))
            print(line(grid, found))
            winner = live.get(grid.name)
            if winner is not None and grid.has(winner):
                now = result_on_grid(grid, winner, 0)
                rows[-1]["live"] = {"winner": str(now.winner), "share": now.share}
                print(f"  live: {with_sizes(str(now.winner))}: {now.share:.3f} of the best")
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    return 0


def grids_of(file: Path) -> list[RecordedGrid]:
    if file.suffix != ".xz":
        return list(recorded_grids(file))
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / file.stem
        unpacked.write_bytes(lzma.decompress(file.read_bytes()))
        return list(recorded_grids(unpacked))


def winners(file: Path) -> dict[str, Transfer]:
    """The winner of each path and size of a live tuning."""
    return {str(each.default): each.winner for each in tuned_results(file) if each.winner}


def row(grid: RecordedGrid, found: list[GridResult]) -> dict[str, object]:
    return {
        "default": grid.name,
        "configurations": len(grid.points),
        "samples": grid.samples,
        "best": str(found[0].best),
        "shares": [each.share for each in found],
        "sample_shares": [each.samples for each in found],
        "gains": [each.gain for each in found],
    }


def line(grid: RecordedGrid, found: list[GridResult]) -> str:
    shares = sorted(each.share for each in found)
    samples = max(each.samples for each in found)
    gains = sorted(each.gain for each in found)
    return (
        f"{with_sizes(grid.name)}: {len(grid.points)} configurations; of {len(found)} searches the "
        f"winner has {shares[len(shares) // 2]:.3f} of the best (least {shares[0]:.3f}), gain over "
        f"the defaults {gains[len(gains) // 2]:.2f}, at most {samples:.1%} of the samples"
    )


if __name__ == "__main__":
    sys.exit(main())
