"""A machine compared with itself: fresh surveys, each in processes of its own, pair by pair.

    python benchmarks/aa.py [--pairs 10] [--json FILE] [-- SURVEY OPTIONS]

    python benchmarks/aa.py -- --gpus none --only 'pageable -> pageable by cpu'

Nothing changes between two surveys of a pair but time, so a path that is told to be better or worse
is told falsely. Says of each pair how many paths got which verdict, and of all pairs how many had
nothing but "same" and "unclear". The options are those of ``waywiser survey``; by default the
copies by the CPU at three sizes, in the two blocks of ``--preset standard``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from waywiser.analysis.compared import Comparison
from waywiser.analysis.comparison import compare
from waywiser.analysis.node import read_node

CPU_COPIES = ("--gpus", "none", "--no-scratch", "--only", "pageable -> pageable by cpu",
              "--sizes", "64KiB,1MiB,16MiB")  # fmt: skip
NOTHING = ("same", "unclear")


def surveyed(file: Path, options: Sequence[str]) -> Path:
    command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return file


def told_falsely(found: Comparison) -> list[str]:
    return [f"{path.verdict}: {path.name} ({path.why})" for path in found.paths
            if path.verdict not in NOTHING]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--json", type=Path, help="also write the verdicts there")
    parser.add_argument("survey", nargs="*", help="options of waywiser survey")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            files = [
                surveyed(Path(folder) / f"{pair}-{which}.wwp", options.survey or CPU_COPIES)
                for which in ("a", "b")
            ]
            found = compare(*([read_node(file)] for file in files))
            wrong = told_falsely(found)
            counts = {verdict: count for verdict, count in found.counts.items() if count}
            rows.append({"pair": pair + 1, "counts": counts, "told_falsely": wrong})
            print(f"{pair + 1:3d}  {counts}", *wrong, sep="\n     ", flush=True)
    quiet = sum(not row["told_falsely"] for row in rows)
    print(f"{quiet} of {len(rows)} comparisons: every path the same or unclear")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0 if quiet >= 0.9 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
