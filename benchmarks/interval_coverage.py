"""How often the 95 % interval of a series has what it is about, for samples of known distributions.

    python benchmarks/interval_coverage.py [--series 2000] [--samples 100] [--seed 1] [-o FILE.md]

Up to five processes: the interval is about the median of these processes' medians. From six on: the
median over all processes that there could be. Both are known here, since samples are drawn:
processes deviate by 1 % (normal), samples within a process by 2 %:

- independent: normal;
- dependent: an autoregression of order one with a correlation of 0.8 between neighbours, whose
  autocorrelation time is 9 samples;
- bimodal: 60 % at the level and 40 % at 1.1 times that;
- heavy-tailed: at the level, and above it by 2 % of the absolute value of Student's t with 2
  degrees of freedom;
- slow processes: independent, but 30 % of processes take 1.1 times as long;
- drift: independent, and the last sample takes 1.1 times as long as the first. There is no level
  that could be covered.

Prints the share of series with an interval, the share of these whose interval has the true value,
the share of all series that have a wrong interval, the width of the interval over that of order
statistics of independent samples, and half of the width over the median. Every number follows from
the seed. Then, of surveys that are kept, how many series have an interval, by the number of their
processes.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from page import parser_of, print_lines  # noqa: E402

import profiles  # noqa: E402
from kept import RESULTS, unpacked  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.profile.estimate import Estimate, estimate_of  # noqa: E402
from waywiser.profile.series_frame import SeriesFrame  # noqa: E402
from waywiser.stats.order import Interval, median_interval  # noqa: E402
from waywiser.words.records import Samples, Series  # noqa: E402

Array = NDArray[Any]

BETWEEN, WITHIN = 0.01, 0.02
"""Deviations of processes, and of the samples of one, relative."""
CORRELATION = 0.8
SLOW, SLOW_SHARE = 1.1, 0.3
FAST_SHARE = 0.6
"""The share of samples at the lower one of two levels."""
LENGTHS = (6, 10, 20, 30, 50, 90, 100, 300, 1000)
"""Samples of the single process of the second table."""
HEAD = (
    "| samples | processes | with an interval | covered | wrong "
    "| width over that of independent samples | ± |\n|---|---|---|---|---|---|---|"
)
RECORDED = (
    *("2026-11-20-h200/one-gpu/quick", "2026-11-20-h200/one-gpu/standard"),
    *("2026-11-20-h200/two-gpus/standard", "2026-11-22-check-two-gpus/check-1"),
)
"""Surveys of four presets that are kept."""


class Kind(NamedTuple):
    """A distribution of samples."""

    samples: Callable[[np.random.Generator, int, int], Array]
    """(generator, series, samples) to samples of a process whose level is 1."""
    middle: float
    """The median of a process whose level is 1."""
    slow_share: float = 0.0


def independent(rng: np.random.Generator, rows: int, count: int) -> Array:
    found: Array = 1 + WITHIN * rng.standard_normal((rows, count))
    return found


def dependent(rng: np.random.Generator, rows: int, count: int) -> Array:
    steps = rng.standard_normal((rows, count))
    for n in range(1, count):
        steps[:, n] *= np.sqrt(1 - CORRELATION**2)
        steps[:, n] += CORRELATION * steps[:, n - 1]
    found: Array = 1 + WITHIN * steps
    return found


def bimodal(rng: np.random.Generator, rows: int, count: int) -> Array:
    level = np.where(rng.random((rows, count)) < FAST_SHARE, 1.0, SLOW)
    found: Array = level + WITHIN * rng.standard_normal((rows, count))
    return found


def heavy_tailed(rng: np.random.Generator, rows: int, count: int) -> Array:
    found: Array = 1 + WITHIN * np.abs(rng.standard_t(2, (rows, count)))
    return found


def drift(rng: np.random.Generator, rows: int, count: int) -> Array:
    found: Array = independent(rng, rows, count) + np.linspace(0, SLOW - 1, count)
    return found


def mixture_median(levels: tuple[float, float], share: float, deviation: float) -> float:
    """The median of normal values at two levels, of which ``share`` are at the first."""
    low, high = min(levels) - 1.0, max(levels) + 1.0
    parts = [NormalDist(level, deviation) for level in levels]
    while high - low > 1e-12:
        middle = (low + high) / 2
        below = share * parts[0].cdf(middle) + (1 - share) * parts[1].cdf(middle)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return low


T_QUARTILE = 0.816496580927726
"""The upper quartile of Student's t with 2 degrees of freedom, sqrt(2 / 3)."""

KINDS = {
    "independent": Kind(independent, 1.0),
    "dependent": Kind(dependent, 1.0),
    "bimodal": Kind(bimodal, mixture_median((1.0, SLOW), FAST_SHARE, WITHIN)),
    "heavy-tailed": Kind(heavy_tailed, 1 + WITHIN * T_QUARTILE),
    "slow processes": Kind(independent, 1.0, SLOW_SHARE),
}


class Outcome(NamedTuple):
    """What the estimates of some series say together."""

    given: float
    """The share with an interval."""
    covered: float
    wider: float
    half: float
    flagged: float
    """The share with the flag `drift`."""

    def row(self, name: str, what: int) -> str:
        wrong = self.given * (1 - self.covered) if self.given else 0.0
        cells = f"{self.covered:.1%} | {wrong:.1%} | {self.wider:.2f} | {self.half:.2%}"
        return f"| {name} | {what} | {self.given:.1%} | {cells if self.given else '| | |'} |"


def measured(
    kind: Kind, rng: np.random.Generator, rows: int, processes: int, count: int
) -> Outcome:
    """The outcome of so many series in so many processes of so many samples."""
    levels = 1 + BETWEEN * rng.standard_normal((rows, processes))
    levels[rng.random(levels.shape) < kind.slow_share] *= SLOW
    taken = np.stack([kind.samples(rng, rows, count) for _ in range(processes)], axis=1)
    taken *= levels[:, :, None] * 1e-3
    what = profiles.WHAT
    series = [
        Series(what, tuple(
            profiles.visit(what, block, Samples(span=tuple(spans.tolist())))
            for block, spans in enumerate(own)
        ))
        for own in taken
    ]  # fmt: skip
    found = [estimate_of(each, None, None) for each in SeriesFrame.of(series).series_blocks()]
    if processes < 6:
        truth = np.median(levels, axis=1) * kind.middle
    else:
        over_all = mixture_median((1.0, SLOW), 1 - kind.slow_share, BETWEEN)
        truth = np.full(rows, over_all * kind.middle)
    return _outcome([each for each in found if each is not None], truth * 1e-3, taken)


def _outcome(found: list[Estimate], truth: Array, taken: Array) -> Outcome:
    pairs = [
        (each.interval, value, each.median, without_regard(own))
        for each, value, own in zip(found, truth, taken, strict=True)
        if each.interval is not None
    ]
    flagged = [any(flag.kind == "drift" for flag in each.quality_flags) for each in found]
    return Outcome(
        len(pairs) / len(found),
        float(np.mean([own.contains(value) for own, value, _, _ in pairs] or [np.nan])),
        sum(own.width for own, *_ in pairs) / max(sum(plain.width for *_, plain in pairs), 1e-30),
        float(np.mean([own.width / 2 / middle for own, _, middle, _ in pairs] or [np.nan])),
        float(np.mean(flagged)),
    )


def without_regard(taken: Array) -> Interval:
    """The interval of order statistics of independent samples: of the medians of six processes and
    more, else the hull over processes."""
    medians = [float(np.median(own)) for own in taken]
    if (between := median_interval(medians)) is not None:
        return between
    parts = [part for own in taken if (part := median_interval(own.tolist())) is not None]
    return Interval(min(part.low for part in parts), max(part.high for part in parts))


def recorded(name: str) -> str:
    """How many series of a kept survey have an interval."""
    with tempfile.TemporaryDirectory() as folder:
        path = unpacked(RESULTS / f"{name}.wwp.xz", Path(folder) / "kept.wwp")
        with Profile.open(path) as profile:
            known = [estimate_of(e, None, None) for e in SeriesFrame.read(profile).series_blocks()]
    found = [each for each in known if each is not None]
    total = Counter(min(len(each.used), 6) for each in found)
    given = Counter(min(len(each.used), 6) for each in found if each.interval is not None)
    cells = (f"{given[n]} of {total[n]}" if total[n] else "" for n in range(1, 7))
    return f"| {name} | {' | '.join(cells)} |"


def document(rows: int, count: int, seed: int) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    yield f"One to eight processes of {count} samples, {rows:,} series each:\n\n{HEAD}"
    for name, kind in KINDS.items():
        for processes in range(1, 9):
            yield measured(kind, rng, rows, processes, count).row(name, processes)
    head = HEAD.replace("| processes", "| number", 1)
    yield f"\nOne process, by its number of samples:\n\n{head}"
    for name in ("independent", "dependent", "bimodal", "heavy-tailed"):
        for length in LENGTHS:
            yield measured(KINDS[name], rng, rows, 1, length).row(name, length)
    shown = measured(Kind(drift, 1.0), rng, rows, 1, count)
    yield (
        f"\nA drift of {SLOW - 1:.0%} over {count} samples of one process: {shown.flagged:.1%} "
        f"have the flag `drift`, {shown.given:.1%} an interval."
    )
    yield f"\nTwo processes, by the number of samples of each:\n\n{head}"
    for length in LENGTHS:
        yield measured(KINDS["dependent"], rng, rows, 2, length).row("dependent", length)
    yield "\nSeries with an interval, by processes:\n\n| survey | 1 | 2 | 3 | 4 | 5 | 6 and more |"
    yield "|---|---|---|---|---|---|---|"
    yield from map(recorded, RECORDED)


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=100, help="of each process")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lines = document(options.series, options.samples, options.seed)
    return print_lines(lines, options.output)


if __name__ == "__main__":
    sys.exit(main())
