"""A machine compared with itself: fresh surveys, each in processes of its own, pair by pair.

    python benchmarks/aa.py [--pairs 10] [--keep FOLDER] [--json FILE] [-o FILE.md]
                            [-- SURVEY OPTIONS]

    python benchmarks/aa.py -- --gpus none --only 'pageable -> pageable by cpu'
    python benchmarks/aa.py --keep checks -- --preset check

Nothing changes between two surveys of a pair but time, so a significant loss or gain is false, also
if the loss is only suspected.
Prints for each pair how many paths got which verdict, how many show a change of 15 % or less, and
for each group of headline paths the smallest change that would have been found; for all pairs, how
many had no false verdict. With ``--keep`` the profiles stay in the folder.
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
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.curves.subject import read_subject

CPU_COPIES = ("--gpus", "none", "--no-scratch", "--only", "pageable -> pageable by cpu",
              "--sizes", "64KiB,1MiB,16MiB")  # fmt: skip


DECIDED = 0.15
SHARE = "paths that show a change of 15 % or less"


def surveyed(file: Path, options: Sequence[str]) -> Path:
    command = [sys.executable, "-m", "waywiser", "survey", "-o", str(file), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return file


def false_changes(found: ProfileComparison) -> list[str]:
    return [
        f"{path.verdict}: {path.name} ({path.why})"
        for path in found.measured
        if any(each.outcome == "different" for each in path.changes)
    ]


def detectable(found: ProfileComparison) -> dict[str, float]:
    """The smallest change that would have been found of the noisiest bandwidth of each group of
    headline paths, and the share of all paths that show one of `DECIDED` or less."""
    groups: dict[str, float] = {}
    for path in found.measured:
        for part in path.parts:
            limit = part.decision.detectable
            if path.headline and part.regime == "bandwidth" and limit is not None:
                groups[path.headline] = max(groups.get(path.headline, 0.0), limit)
    limits = [path.detectable for path in found.measured]
    shown = sum(limit is not None and limit <= DECIDED for limit in limits)
    return {**groups, SHARE: shown / max(len(limits), 1)}


def ranges(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table of what `detectable` found in all pairs, lowest to highest."""
    names = dict.fromkeys(name for row in rows for name in row["detectable"])
    table = ["| | lowest | highest |", "| --- | --- | --- |"]
    for name in names:
        values = [row["detectable"][name] for row in rows if name in row["detectable"]]
        label = name if name == SHARE else f"{name} detectable from"
        table.append(f"| {label} | {min(values):.1%} | {max(values):.1%} |")
    return table


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
        *ranges(rows),
        "",
        *(wrong and ["False changes:", "", *wrong, ""]),
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="keep the profiles in this folder")
    parser.add_argument("--json", type=Path, help="also write the verdicts there")
    parser.add_argument("-o", "--output", type=Path, help="add a section to this page")
    parser.add_argument("--title", default="A machine and itself", help="of the section")
    parser.add_argument("survey", nargs="*", help="options of waywiser survey")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for pair in range(options.pairs):
            files = [
                surveyed(folder / f"{pair + 1}-{which}.wwp", options.survey or CPU_COPIES)
                for which in ("a", "b")
            ]
            nodes = [read_subject(file) for file in files]
            found = compare(*([node] for node in nodes))
            wrong = false_changes(found)
            counts = {verdict: count for verdict, count in found.counts.items() if count}
            cpu = f"{nodes[0].machine.cpu_model}, {len(nodes[0].machine.gpus)} GPUs"
            rows.append(
                {"pair": pair + 1, "machine": cpu, "counts": counts, "false_changes": wrong,
                 "detectable": detectable(found)}
            )  # fmt: skip
            print(f"{pair + 1:3d}  {counts}", *wrong, sep="\n     ", flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=2) + "\n")
    print(*ranges(rows), sep="\n")
    quiet = sum(not row["false_changes"] for row in rows)
    print(f"{quiet} of {len(rows)} comparisons without a false change")
    if options.output:
        with options.output.open("a") as page:
            page.write(f"## {options.title}\n\n{document(rows, options.survey or CPU_COPIES)}")
    return 0 if quiet >= 0.9 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
