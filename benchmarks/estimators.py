"""How far processes differ, by what describes a process: its median, or a lower quantile.

    python benchmarks/estimators.py FIRST.wwp SECOND.wwp

Both profiles are surveys of one healthy machine. Of all series that four processes or more measured
in both, prints the median over series of the deviation of the logarithm between processes (pooled
over both surveys), and the share of series with a detectable loss of 15 % or less, if surveys
deviate by half of that deviation and if they do not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median, quantiles

from waywiser.profile import Profile
from waywiser.stats.decision import THRESHOLD, detectable
from waywiser.stats.noise_model import SURVEY_SHARE, Variance
from waywiser.words.records import VOID

LIMIT = 0.15
FEWEST = 4

Estimator = Callable[[Sequence[float]], float]

ESTIMATORS: dict[str, Estimator] = {
    "median": median,
    "mean": fmean,
    "lowest": min,
    "10 % quantile": lambda spans: quantiles(spans, n=10, method="inclusive")[0],
    "25 % quantile": lambda spans: quantiles(spans, n=4, method="inclusive")[0],
}

Processes = dict[int, list[float]]
"""The samples that count of each process."""


def measured(file: Path) -> dict[str, tuple[str, Processes]]:
    """Who timed each series, and its processes."""
    found: dict[str, tuple[str, Processes]] = {}
    with Profile.open(file) as profile:
        for visit in profile.visits():
            samples = visit.samples
            pairs = zip(samples.span, samples.flags, strict=True)
            spans = [span for span, flags in pairs if not flags & VOID]
            if len(spans) > 1:
                _, processes = found.setdefault(visit.workload.identity, (visit.mode, {}))
                processes[visit.block] = spans
    return found


def main() -> int:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    first, second = (measured(Path(name)) for name in sys.argv[1:])
    pairs = [
        (mode, processes, second[identity][1])
        for identity, (mode, processes) in first.items()
        if identity in second and min(len(processes), len(second[identity][1])) >= FEWEST
    ]
    print("| timed by | series | estimator | deviation | 15 % shown | without noise of surveys |")
    print("|---|---|---|---|---|---|")
    for timed_by in ("device", "host"):
        chosen = [sides for mode, *sides in pairs if mode == timed_by]
        for name, estimator in ESTIMATORS.items():
            deviations, shown, alone = [], 0, 0
            for sides in chosen:
                logs = [[math.log(estimator(s)) for s in side.values()] for side in sides]
                freedom = sum(len(side) - 1 for side in logs)
                squares = sum((x - fmean(side)) ** 2 for side in logs for x in side)
                variance = squares / freedom
                deviations.append(math.sqrt(variance))
                weight = sum(1 / len(side) for side in logs)
                for share in (SURVEY_SHARE, 0.0):
                    of_difference = Variance(variance * (weight + 2 * share**2), freedom)
                    small = (detectable(of_difference, THRESHOLD) or 1.0) <= LIMIT
                    shown += small and share > 0
                    alone += small and share == 0
            row = (
                f"{median(deviations):.1%} | {shown / len(chosen):.0%} | {alone / len(chosen):.0%}"
            )
            print(f"| {timed_by} | {len(chosen)} | {name} | {row} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
