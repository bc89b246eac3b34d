"""What is said of equivalent paths when some series have a second process.

    python benchmarks/stray_blocks.py [--profile FILE.wwp.xz] [--share 1%] [--draws 20] [--seed 0]
                                      [-o FILE.md]

Of each series of a recorded survey (by default that of four H200s) only the first process is kept.
Then some series of less than 1 MiB keep their second process too: so large a share of all series,
one size of each path, all small sizes of half of the paths, or all. They are drawn anew each time.
The copies between the host and one GPU take their time, or 30 % more.

Prints how many verdicts decide something without any second process, about groups of paths and
about each path in each regime, over all draws; how many of these are undecided with it; and how
many decide otherwise. Every number follows from the seed.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from page import parser_of, print_lines  # noqa: E402

from analysis.questions.subjects import of_series  # noqa: E402
from kept import RESULTS, unpacked  # noqa: E402
from waywiser.analysis.questions.identical import outcome_of  # noqa: E402
from waywiser.analysis.questions.peer_groups import peer_groups  # noqa: E402
from waywiser.curves.regimes import START_BYTES  # noqa: E402
from waywiser.machine.machine import Machine  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.words import Workload  # noqa: E402
from waywiser.words.numbers import parse_fraction  # noqa: E402
from waywiser.words.records import Locality, Samples, Series  # noqa: E402

FOUR = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
LOSSES = (1.0, 1.3)
"""How much longer the copies between the host and `SLOW` take."""
SLOW = "gpu:1"
UNDECIDED = "no change found"
ALL = "all paths"

Verdicts = Mapping[tuple[str, ...], str]
"""The key of a group is its kind; the key of a path in one regime is both."""
Draw = Callable[[random.Random], Collection[str]]
"""Draws the series that have a second process."""


class Recorded(NamedTuple):
    """A recorded survey."""

    machine: Machine
    series: Sequence[Series]
    localities: Sequence[Locality]

    @classmethod
    def read(cls, packed: Path) -> Recorded:
        with tempfile.TemporaryDirectory() as folder:
            file = unpacked(packed, Path(folder) / "recorded.wwp")
            with Profile.open(file) as profile:
                return cls(profile.machine, profile.series(), profile.localities())

    def verdicts(self, second: Collection[str], loss: float) -> Verdicts:
        """What is said of equivalent paths if the series in ``second`` have a second process."""
        made = [
            shortened(each, 2 if each.workload.identity in second else 1, loss)
            for each in self.series
        ]
        found: dict[tuple[str, ...], str] = {}
        for peers in peer_groups(of_series(self.machine, made, localities=self.localities)):
            found[(str(peers[0].kind),)] = outcome_of(peers)
            for each in peers:
                for regime, result in each.regimes.items():
                    found[each.curve.text, regime] = result.outcome
        return found

    def draws(self, share: float) -> Mapping[str, Draw]:
        curves: dict[str, list[str]] = defaultdict(list)
        for each in self.series:
            if len(each.visits) > 1 and is_small(each.workload):
                curves[each.workload.curve].append(each.workload.identity)
        small = [each for own in curves.values() for each in own]
        count = round(share * len(self.series))
        half = len(curves) // 2
        return {
            f"{count} of {len(self.series):,} series": lambda rng: rng.sample(small, count),
            "one size of each path": lambda rng: [rng.choice(own) for own in curves.values()],
            "half of the paths": lambda rng: [
                each for own in rng.sample(list(curves.values()), half) for each in own
            ],
            ALL: lambda _: small,
        }


def is_small(what: Workload) -> bool:
    return what.kind != "operation" and max(each.bytes for each in what.transfers) < START_BYTES


def shortened(series: Series, processes: int, loss: float) -> Series:
    """The first processes of a series, which take ``loss`` times as long if it goes there."""
    visits = series.visits[:processes]
    ends = {str(place) for each in series.workload.transfers for place in each.path.places}
    if loss != 1.0 and SLOW in ends and any(place.startswith("numa") for place in ends):
        visits = tuple(
            msgspec.structs.replace(each, samples=with_loss(each.samples, loss)) for each in visits
        )
    return msgspec.structs.replace(series, visits=visits)


def with_loss(samples: Samples, loss: float) -> Samples:
    return msgspec.structs.replace(
        samples,
        span=tuple(each * loss for each in samples.span),
        transfers=tuple(tuple(each * loss for each in own) for own in samples.transfers),
    )


def document(recorded: Recorded, share: float, draws: int, seed: int) -> Iterator[str]:
    yield (
        "| a second process below 1 MiB | copies of one GPU | groups decided without | undecided "
        "with | otherwise | paths decided without | undecided with | otherwise |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for loss in LOSSES:
        before = recorded.verdicts((), loss)
        decided = {key: verdict for key, verdict in before.items() if verdict != UNDECIDED}
        for name, draw in recorded.draws(share).items():
            rng = random.Random(f"{seed} {name}")
            counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
            for _ in range(1 if name == ALL else draws):
                found = recorded.verdicts(set(draw(rng)), loss)
                for key, verdict in decided.items():
                    now = found.get(key, UNDECIDED)
                    of_groups = len(key) == 1
                    counts[of_groups]["all"] += 1
                    counts[of_groups]["undecided"] += now == UNDECIDED
                    counts[of_groups]["otherwise"] += now not in (UNDECIDED, verdict)
            cells = [
                f"{counts[of_groups][what]:,}"
                for of_groups in (True, False)
                for what in ("all", "undecided", "otherwise")
            ]
            slower = f"{loss - 1:.0%} longer" if loss > 1 else "as recorded"
            yield f"| {' | '.join((name, slower, *cells))} |"


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--profile", type=Path, default=FOUR)
    parser.add_argument("--share", type=parse_fraction, default=0.01, help="of all series")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    recorded = Recorded.read(options.profile)
    lines = document(recorded, options.share, options.draws, options.seed)
    return print_lines(lines, options.output)


if __name__ == "__main__":
    sys.exit(main())
