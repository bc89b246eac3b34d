"""A machine compared with itself: fresh surveys, each in processes of its own, pair by pair.

    python benchmarks/aa.py [--pairs 10] [--json FILE] [-o FILE.md] [-- SURVEY OPTIONS]

    python benchmarks/aa.py -- --gpus none --only 'pageable -> pageable by cpu'

Nothing changes between two surveys of a pair but time, so a significant loss or gain is false, also
if the loss is only suspected.
Prints for each pair how many paths got which verdict, and for all pairs how many had no false one.
The options are those of ``waywiser survey``; by default the copies by the CPU at three sizes, in
the two processes of ``--preset standard``.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from waywiser import __version__
from waywiser.comparison.comparison import compare
from waywiser.comparison.node import read_node
from waywiser.comparison.path_change import ProfileComparison

CPU_COPIES = ("--gpus", "none", "--no-scratch", "--only", "pageable -> pageable by cpu",
              "--sizes", "64KiB,1MiB,16MiB")  # fmt: skip


def surveyed(file: Path, options: Sequence[str]) -> Path:
    command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return file


def false_changes(found: ProfileComparison) -> list[str]:
    return [
        f"{path.verdict}: {path.name} ({path.why})"
        for path in found.measured
        if any(each.verdict == "different" for each in path.changes)
    ]


def document(rows: Sequence[Mapping[str, Any]], options: Sequence[str]) -> str:
    verdicts = list(dict.fromkeys(verdict for row in rows for verdict in row["counts"]))
    total = Counter[str]()
    for row in rows:
        total.update(row["counts"])
    table = [
        f"| {row['pair']} | {' | '.join(str(row['counts'].get(v, 0)) for v in verdicts)} |"
        for row in (*rows, {"pair": "all", "counts": total})
    ]
    wrong = [f"- pair {row['pair']}: {text}" for row in rows for text in row["false_changes"]]
    quiet = sum(not row["false_changes"] for row in rows)
    return "\n".join([
        f"In {quiet} of {len(rows)} comparisons no change was found. Waywiser "
        f"{__version__}, {rows[0]['machine']}, {platform.system()}.",
        "",
        f"    python benchmarks/aa.py --pairs {len(rows)} -- {shlex.join(options)}",
        "",
        f"| pair | {' | '.join(verdicts)} |",
        "| --- " * (len(verdicts) + 1) + "|",
        *table,
        "",
        *(wrong and ["False changes:", "", *wrong, ""]),
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--json", type=Path, help="also write the verdicts there")
    parser.add_argument("-o", "--output", type=Path, help="add a section to this page")
    parser.add_argument("--title", default="A machine and itself", help="of the section")
    parser.add_argument("survey", nargs="*", help="options of waywiser survey")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            files = [
                surveyed(Path(folder) / f"{pair}-{which}.wwp", options.survey or CPU_COPIES)
                for which in ("a", "b")
            ]
            nodes = [read_node(file) for file in files]
            found = compare(*([node] for node in nodes))
            wrong = false_changes(found)
            counts = {verdict: count for verdict, count in found.counts.items() if count}
            cpu = f"{nodes[0].machine.cpu_model}, {len(nodes[0].machine.gpus)} GPUs"
            rows.append(
                {"pair": pair + 1, "machine": cpu, "counts": counts, "false_changes": wrong}
            )
            print(f"{pair + 1:3d}  {counts}", *wrong, sep="\n     ", flush=True)
    quiet = sum(not row["false_changes"] for row in rows)
    print(f"{quiet} of {len(rows)} comparisons without a false change")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    if options.output:
        with options.output.open("a") as page:
            page.write(f"## {options.title}\n\n{document(rows, options.survey or CPU_COPIES)}")
    return 0 if quiet >= 0.9 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
