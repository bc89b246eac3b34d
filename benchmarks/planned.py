"""How long surveys took, beside what their plans said before.

    python benchmarks/planned.py STEPS --survey PLAN PROFILE STEP [--survey ...] [--json FILE]

PLAN is what `waywiser survey --dry-run --json` printed with the options of the survey, PROFILE what
the survey wrote, STEP its name in STEPS, the file steps.txt of `scripts/gpu-check`. The time of the
step has the start of the command and what it prints in it; the time of measuring is that of all
visits. A survey that was stopped is shown with what it has.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from waywiser.curves.overview import overview
from waywiser.profile import Profile


@dataclass(frozen=True)
class SurveyTime:
    """One survey, in seconds."""

    step: str
    planned: float
    deadline: float
    """0 for none."""
    measuring: float
    whole: float
    """The command and all; 0 if it is not known."""
    series: int
    skipped: int
    """Series that were left out."""


def seconds_of(steps: str, name: str) -> float:
    """The seconds of the last step of this name; 0 if there is none."""
    found = re.findall(rf"^{re.escape(name)} +([\d.]+) s ", steps, re.MULTILINE)
    return float(found[-1]) if found else 0.0


def survey_time(plan: Path, file: Path, step: str, steps: str) -> SurveyTime:
    said = json.loads(plan.read_text())
    with Profile.open(file) as profile:
        summary = overview(profile).summary
    return SurveyTime(
        step=step,
        planned=said["outlook"]["seconds"],
        deadline=said["deadline_seconds"],
        measuring=summary.seconds,
        whole=seconds_of(steps, step),
        series=summary.series,
        skipped=summary.skipped,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", type=Path, help="steps.txt of scripts/gpu-check")
    parser.add_argument("--survey", nargs=3, action="append", default=[], required=True,
                        metavar=("PLAN", "PROFILE", "STEP"))  # fmt: skip
    parser.add_argument("--json", type=Path, help="also write the figures there")
    wanted = parser.parse_args()
    steps = wanted.steps.read_text()
    found = [survey_time(Path(plan), Path(file), step, steps) for plan, file, step in wanted.survey]
    print("| survey | planned | deadline | measuring | whole command | series | left out |")
    print("|---|---|---|---|---|---|---|")
    for each in found:
        print(f"| {each.step} | {each.planned:.0f} s | {each.deadline:.0f} s | "
              f"{each.measuring:.1f} s | {each.whole:.1f} s | {each.series} | "
              f"{each.skipped} |")  # fmt: skip
    if wanted.json:
        wanted.json.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
