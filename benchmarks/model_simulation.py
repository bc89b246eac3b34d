"""Simulated surveys beside the surveys that they are made from, and exported models in SimGrid.

    python benchmarks/model_simulation.py [--simgrid PYTHON] [-o docs/results/models/simulation.md]

PYTHON is an interpreter that has the module simgrid; without it the part on SimGrid is missing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from kept import RESULTS, unpacked  # noqa: E402
from model.simgrid_sets import spans, usual_sets  # noqa: E402
from waywiser.analysis.comparison.comparison import compare  # noqa: E402
from waywiser.curves.name import name_of  # noqa: E402
from waywiser.curves.subject import read_subject  # noqa: E402
from waywiser.model.machine_model import profile_capacities  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.words import format_bytes  # noqa: E402

FOUR = RESULTS / "2026-11-20-h200-catalogue"
FILES = {
    "four H200s, quiet": FOUR / "four-gpus" / "standard.wwp.xz",
    "four H200s, busy": FOUR / "four-gpus-busy" / "standard.wwp.xz",
    "two H200s": RESULTS / "2026-11-20-h200" / "two-gpus" / "standard.wwp.xz",
}
SEEDS = (1, 2, 3)
VERDICTS = ("regression", "suspected", "improvement", "missing", "no change")


def simulated_surveys(folder: Path) -> Iterator[str]:
    yield "## Simulated surveys beside their originals\n\n"
    yield (
        "Each survey `standard` is simulated without changes, with three seeds, and compared with "
        "its original. The first three verdicts should be 0; a loss is suspected, and no "
        "regression, if one survey alone shows it. *Together*: the three simulated surveys as "
        "one side. CPU: seconds of all processes, with the fit of the model.\n\n"
    )
    yield f"| survey | seed | {' | '.join(VERDICTS)} | CPU, s |\n|{'---|' * (3 + len(VERDICTS))}\n"
    for name, packed in FILES.items():
        file = unpacked(packed, folder / f"{packed.parent.name}.wwp")
        base, new = read_subject(file), []
        for seed in SEEDS:
            output = folder / f"{packed.parent.name}-{seed}.wwp"
            before = os.times()
            words = ["simulate", str(file), "--seed", str(seed), "-o", str(output)]
            subprocess.run(
                [sys.executable, "-m", "waywiser", *words],
                check=True,
                capture_output=True,
                env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            )
            after = os.times()
            cpu = after.children_user + after.children_system
            cpu -= before.children_user + before.children_system
            new.append(read_subject(output))
            found = compare([base], new[-1:])
            counts = " | ".join(str(len(found.of(verdict))) for verdict in VERDICTS)
            yield f"| {name} | {seed} | {counts} | {cpu:.0f} |\n"
        found = compare([base], new)
        counts = " | ".join(str(len(found.of(verdict))) for verdict in VERDICTS)
        yield f"| {name} | together | {counts} | |\n"


def on_simgrid(folder: Path, python: str) -> Iterator[str]:
    version = subprocess.run(
        [python, "-c", "import simgrid; print(simgrid.simgrid_version)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()[0]
    yield f"\n## Exported models in SimGrid {version}\n\n"
    yield (
        "The sets of copies by copy engines, on the exported platform of their size: the time in "
        "SimGrid over that of the model, minus 1. A queue is a set whose copies run one after "
        "another. A link of SimGrid's grammar (DTD 4.1) has no order, so that routes have their "
        "queue as a property, and the program that starts the copies reads it "
        "(`tests/model/simgrid_spans.py`). A program that does not would run them together.\n\n"
    )
    names = [name for name in FILES if name.startswith("four")]
    yield f"| set | size | {' | '.join(names)} |\n|{'---|' * (2 + len(names))}\n"
    rows: dict[tuple[str, int], list[str]] = {}
    within = dict.fromkeys(names, 0)
    for name in names:
        packed = FILES[name]
        with Profile.open(unpacked(packed, folder / f"{packed.parent.name}.wwp")) as profile:
            model = profile_capacities(profile)
            sets = usual_sets(profile.workloads())
        for each in spans(model, sets, folder, [python]):
            key = name_of(each.workload), each.workload.transfers[0].bytes
            text = f"{each.error:+.3%}{', queue' if each.is_queue else ''}"
            rows.setdefault(key, []).append(text)
            within[name] += abs(each.error) < 0.001
    for (text, size), cells in sorted(rows.items()):
        yield f"| {text} | {format_bytes(size)} | {' | '.join(cells)} |\n"
    yield "\n"
    for name, number in within.items():
        yield f"- {name}: {number} of {len(rows)} sets within 0.1 %.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simgrid", metavar="PYTHON")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            "# Simulated machines and exported models\n\n",
            "<!-- Written by benchmarks/model_simulation.py. -->\n\n",
            *simulated_surveys(Path(folder)),
            *(on_simgrid(Path(folder), given.simgrid) if given.simgrid else ()),
        ]
    text = "".join(parts)
    if given.output:
        given.output.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
