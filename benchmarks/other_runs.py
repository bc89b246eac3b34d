"""How often times of another job, process or survey are in the interval of a model.

    python benchmarks/other_runs.py [--data FOLDER] [-o FILE.md]

Every second size of each curve is held out, models are fitted to the others, and single times at
the sizes that were held out are compared with the 95 % intervals:

- jobs: of the three jobs of the BenchPress files in ``--data`` (by default ``../shared/data``
  beside the clone), two are fitted and the third is predicted;
- processes: each process of a kept profile is compared with the model of this profile;
- another survey: each process of a second survey of the same machine is compared with it.

*Without the scatter* is what the interval would be by the curve alone.
"""

from __future__ import annotations

import itertools
import lzma
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python")]

from page import parser_of, print_lines  # noqa: E402

from waywiser.curves.curve import points_of  # noqa: E402
from waywiser.exchange.imports import detect  # noqa: E402
from waywiser.model.curve import CurveModel, CurveTimes, fit_curves, times_of  # noqa: E402
from waywiser.model.held_out import DRAWS, divided, thinned  # noqa: E402
from waywiser.model.machine_model import is_of_copies  # noqa: E402
from waywiser.model.messages import (  # noqa: E402
    MessageTimes,
    classes_of,
    curve_of,
    messages_of,
)
from waywiser.profile import Profile  # noqa: E402
from waywiser.profile.series_frame import SeriesFrame  # noqa: E402
from waywiser.stats.scatter import LEAST_SIZES  # noqa: E402
from waywiser.words.records import Series, Visit  # noqa: E402

RESULTS = ROOT / "docs" / "results"
DATA = ROOT.parent / "shared" / "data"
SURVEYS = (
    ("2026-11-20-h200/one-gpu/standard", "2026-11-20-h200/one-gpu/standard-again"),
    ("2026-11-20-h200-catalogue/one-gpu/standard",
     "2026-11-20-h200-catalogue/one-gpu/standard-again"),
    ("2026-11-20-h200-catalogue/four-gpus/standard",),
    ("2026-11-23-surveys/h200-standard-1",),
    ("2026-11-25-sets/h200-model-3",),
)  # fmt: skip
"""Profiles; two of one line are of the same machine on the same day."""
JOBS = 3


class Inside(NamedTuple):
    """Whether one time is in an interval, and half of its width, relative; both with the scatter
    between runs and without it."""

    given: bool
    half: float
    alone: bool
    half_alone: float


Rows = Mapping[str, Sequence[Inside]]


def fitted(curves: Sequence[CurveTimes]) -> list[tuple[CurveTimes, CurveModel, list[int]]]:
    """(curve, the model of every second size, the sizes that were held out)."""
    long = [curve for curve in curves if len(curve.blocks.bytes) >= LEAST_SIZES]
    models = fit_curves([thinned(curve, divided(curve)[0]) for curve in long], DRAWS)
    held = [[curve.blocks.bytes[n] for n in divided(curve)[1]] for curve in long]
    return list(zip(long, models, held, strict=True))


def compared(model: CurveModel, size: int, seconds: Sequence[float]) -> Iterator[Inside]:
    """Each time at a size beside its interval."""
    given = model.predict(size)
    alone = msgspec.structs.replace(model, scatter=()).predict(size)
    if given is None or alone is None:
        return
    halves = [math.sqrt(each.interval.high / each.interval.low) - 1 for each in (given, alone)]
    for each in seconds:
        yield Inside(
            given.interval.contains(each), halves[0], alone.interval.contains(each), halves[1]
        )


def of_jobs(messages: Sequence[MessageTimes]) -> Rows:
    """How many messages of each job are in the intervals of the other two."""
    found: dict[str, list[Inside]] = defaultdict(list)
    whole = [each for each in messages if len(each.seconds) == JOBS]
    for known in itertools.combinations(range(JOBS), JOBS - 1):
        (other,) = set(range(JOBS)) - set(known)
        rest = [
            msgspec.structs.replace(each, seconds=tuple(each.seconds[n] for n in known))
            for each in whole
        ]
        classes = classes_of(rest)
        curves = [curve_of(each, rest) for each in classes]
        by_name = {curve.text: each for each, curve in zip(classes, curves, strict=True)}
        for curve, model, held in fitted(curves):
            own = by_name[curve.text]
            for each in whole:
                is_own = each.kind == own.kind and each.ranks in own.pairs and each.count == 1
                if is_own and each.bytes in held:
                    label = f"{own.source} -> {own.destination} {own.locality}"
                    found[label] += compared(model, each.bytes, [each.seconds[other]])
    return found


def of_surveys(fit: Sequence[CurveTimes], test: Sequence[CurveTimes]) -> Rows:
    """Each process of one survey in the intervals of the model of another, or of itself."""
    found: dict[str, list[Inside]] = defaultdict(list)
    others = {curve.text: curve.blocks for curve in test}
    for curve, model, held in fitted(fit):
        blocks = others.get(curve.text)
        for size in held:
            if blocks is not None and size in blocks.bytes:
                times = list(blocks.blocks[blocks.bytes.index(size)].values())
                found[curve.kind] += compared(model, size, times)
    return found


def curves_of(name: str, folder: Path) -> list[CurveTimes]:
    file = folder / "profile.wwp"
    file.write_bytes(lzma.decompress((RESULTS / f"{name}.wwp.xz").read_bytes()))
    with Profile.open(file) as profile:
        machine = profile.machine
        found = times_of(SeriesFrame.read(profile), machine)
    return [each for each in found if is_of_copies(each.text, machine)]


def messages_in(folder: Path) -> list[MessageTimes]:
    series: dict[str, Series] = {}
    for path in sorted(folder.iterdir()):
        for each in detect.read(path)[0].measured:
            known = series.setdefault(each.workload.identity, Series(each.workload, ()))
            visit = Visit(each.workload, len(known.visits), "limit", "", samples=each.samples)
            series[each.workload.identity] = Series(each.workload, (*known.visits, visit))
    return messages_of(points_of(SeriesFrame.of(series.values())))


def table(title: str, rows: Rows) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "| | times | covered | ± | covered without the scatter | ± without it |"
    yield "|---|---|---|---|---|---|"
    for name, own in sorted(rows.items()):
        given, half, alone, half_alone = zip(*own, strict=True)
        yield (f"| {name} | {len(own)} | {np.mean(given):.1%} | {np.median(half):.1%} "
               f"| {np.mean(alone):.1%} | {np.median(half_alone):.1%} |")  # fmt: skip


def merged(tables: Sequence[Rows]) -> Rows:
    found: dict[str, list[Inside]] = defaultdict(list)
    for each in tables:
        for name, own in each.items():
            found[name] += own
    return found


def document(data: Path) -> Iterator[str]:
    jobs = data / "benchpress" / "summit"
    if jobs.is_dir():
        yield from table("A third job, from models of two", of_jobs(messages_in(jobs)))
    with tempfile.TemporaryDirectory() as scratch:
        surveys = [[curves_of(name, Path(scratch)) for name in names] for names in SURVEYS]
    same = [of_surveys(own, own) for names in surveys for own in names]
    yield from table("Processes of the same survey", merged(same))
    pairs = [pair for names in surveys for pair in itertools.permutations(names, 2)]
    yield from table("Processes of another survey", merged([of_surveys(*pair) for pair in pairs]))


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    return print_lines(document(options.data), options.output)


if __name__ == "__main__":
    sys.exit(main())
