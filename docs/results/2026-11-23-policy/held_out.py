"""Writes README.md: the policy's choice at sizes that it was not made of.

    python docs/results/2026-11-23-policy/held_out.py
    python docs/results/2026-11-23-policy/held_out.py PROFILE...

With profiles (.wwp, also packed by xz or gzip) it prints their lines of the two tables instead; to
keep them, put the files beside this page and name them in PROFILES.

Of the sizes at which two methods or more of a kind of copy were measured, every second one is held
out, the smallest and the largest kept; then the other half. A policy is made of the rest. At each
size that was held out, its choice is compared with the fastest method that was measured there.
"""

from __future__ import annotations

import gzip
import lzma
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.analysis.subject import Subject
from waywiser.policy.build import build_policy, decision_tables
from waywiser.policy.candidates import kind_of
from waywiser.policy.decision_table import CopyKind, DecisionTable, Method
from waywiser.policy.file import encoded
from waywiser.profile import Profile
from waywiser.stats.order import median

HERE = Path(__file__).parent
RESULTS = HERE.parent

PROFILES = {
    "H100, first survey": "2026-11-23-surveys/h100-standard-1",
    "H100, second survey": "2026-11-23-surveys/h100-standard-2",
    "H200, first survey": "2026-11-23-surveys/h200-standard-1",
    "H200, second survey": "2026-11-23-surveys/h200-standard-2",
    "H200, all executors": "2026-11-20-h200-catalogue/one-gpu/standard",
    "two H200": "2026-11-20-h200/two-gpus/standard",
    "four H200": "2026-11-20-h200-catalogue/four-gpus/standard",
    "four H200, busy host": "2026-11-20-h200-catalogue/four-gpus-busy/standard",
}
"""Profiles that have several methods of the transfer library."""

LEAST = 0.97
"""The policy must not be known to have less bandwidth than this share of the plain copy's."""


class Choice(NamedTuple):
    """The policy's choice at one size that was held out. Its method was measured there."""

    kind: CopyKind
    size: int
    pieces: int
    chosen: Method
    best: Method
    regret: float
    """How much longer the chosen method takes than the best one, as a share."""
    below_plain: bool
    """Whether its interval lies wholly below `LEAST` of the plain copy's bandwidth."""
    within_noise: bool
    """Whether the intervals of the chosen and of the best method overlap."""


def subject_of(path: Path) -> Subject:
    """A profile, packed or not."""
    data = path.read_bytes()
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kept.wwp"
        file.write_bytes(unpack(data) if unpack is not None else data)
        with Profile.open(file) as profile:
            return Subject.of(profile)


@cache
def measured(path: Path) -> tuple[list[Choice], int]:
    """The choices of a profile at sizes that were held out, and the bytes of its policy file."""
    subject = subject_of(path)
    return choices(subject), len(encoded(build_policy([subject])))


def read(name: str) -> tuple[list[Choice], int]:
    """The same of a profile that is kept beside this page."""
    return measured(RESULTS / f"{PROFILES[name]}.wwp.xz")


def choices(subject: Subject) -> list[Choice]:
    """All choices at sizes that were held out."""
    tables = decision_tables([subject])
    found: dict[tuple[str, int, int], Choice] = {}
    for offset in (1, 2):
        held_out = {
            (str(each.kind), each.count > 1): sizes_of(each)[offset:-1:2] for each in tables
        }
        reduced = decision_tables([_without(subject, held_out)])
        for table in tables:
            for choice in _choices(table, reduced, held_out[str(table.kind), table.count > 1]):
                found.setdefault((str(choice.kind), choice.size, choice.pieces), choice)
    return list(found.values())


def sizes_of(table: DecisionTable) -> list[int]:
    """The sizes at which two methods or more were measured."""
    measured = (
        (each.bytes, sum(time is not None and not time.interpolated for time in each.times))
        for each in table.decisions
    )
    return [size for size, methods in measured if methods > 1]


def _without(subject: Subject, held_out: dict[tuple[str, bool], list[int]]) -> Subject:
    curves = []
    for curve in subject.curves:
        transfer = curve.transfer
        kind = None
        if transfer is not None:
            peer = transfer.parameters.get("peer") != "off"
            kind = kind_of(transfer.path.source, transfer.path.destination, subject.machine,
                           peer=peer)  # fmt: skip
        if transfer is None or kind is None:
            continue
        piece = transfer.layout.run if transfer.layout is not None else 0
        sizes = set(held_out.get((str(kind), piece > 0), ()))
        points = tuple(p for p in curve.points if (piece or p.bytes) not in sizes)
        if points:
            curves.append(msgspec.structs.replace(curve, points=points))
    return msgspec.structs.replace(subject, curves=tuple(curves))


def _choices(
    table: DecisionTable, reduced: Sequence[DecisionTable], held_out: Sequence[int]
) -> Iterator[Choice]:
    same = [
        each
        for each in reduced
        if (each.kind, each.threads, each.count > 1) == (table.kind, table.threads, table.count > 1)
    ]
    counts = [each.count for each in same]
    if not counts:
        return
    count = max((n for n in counts if n <= table.count), default=min(counts))
    policy = next(each for each in same if each.count == count)
    for decision in table.decisions:
        known = {
            method: time
            for method, time in zip(table.methods, decision.times, strict=True)
            if time is not None and not time.interpolated
        }
        at = policy.at(decision.bytes)
        if decision.bytes not in held_out or len(known) < 2 or at is None:
            continue
        chosen = policy.methods[at.chosen]
        if chosen not in known:
            continue
        best = min(known, key=lambda method: known[method].seconds)
        plain = known.get(table.methods[table.plain]) if table.plain is not None else None
        mine = known[chosen]
        yield Choice(
            table.kind,
            decision.bytes,
            mine.pieces,
            chosen,
            best,
            mine.seconds / known[best].seconds - 1,
            plain is not None and plain.high / mine.low < LEAST,
            mine.low <= known[best].high,
        )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all is not above."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100 * len(ordered)) // 100) - 1)]


def page() -> str:
    """The page."""
    every, worst = _tables({name: read(name) for name in PROFILES})
    return "\n".join([HEAD, *every, MIDDLE, WORST, *worst]) + "\n"


def lines_of(paths: Sequence[Path]) -> str:
    """The tables of other profiles."""
    every, worst = _tables({path.name: measured(path) for path in paths})
    return "\n".join([COLUMNS, *every, "", WORST, *worst]) + "\n"


def _tables(read: dict[str, tuple[list[Choice], int]]) -> tuple[list[str], list[str]]:
    """The lines of the table of profiles, and of the table of large regrets."""
    every = [
        f"| {name} | {_row(found)} | {size / 1000:.0f} kB |" for name, (found, size) in read.items()
    ]
    everything = [each for found, _ in read.values() for each in found]
    if everything:
        every.append(f"| all | {_row(everything)} | |")
    large = [(name, each) for name, (found, _) in read.items() for each in found
             if each.regret > 0.05]  # fmt: skip
    worst = []
    for name, each in sorted(large, key=lambda found: -found[1].regret):
        pieces = f", {each.pieces} pieces" if each.pieces > 1 else ""
        worst.append(
            f"| {name} | {each.kind}{pieces} | {each.size} | {each.chosen} | {each.best} "
            f"| {each.regret:.0%} | {'yes' if each.within_noise else 'no'} |"
        )
    return every, worst


def _row(found: Sequence[Choice]) -> str:
    if not found:
        return "0" + " |" * 5
    regrets = [each.regret for each in found]
    below = sum(each.below_plain for each in found)
    over = sum(each > 0.05 for each in regrets)
    return (
        f"{len(found)} | {median(regrets):.1%} | {percentile(regrets, 0.95):.1%} "
        f"| {max(regrets):.0%} | {over} | {below}"
    )


HEAD = """# The policy at sizes that it was not made of

Made by `held_out.py` in this folder. Of the sizes at which two methods or more
of a kind of copy were measured, every second one is held out, the smallest and
the largest kept; then the other half. A policy is made of the rest. At each
size that was held out, its choice is compared with the fastest method that was
measured there. The regret is how much longer the choice takes. Sizes at which
the chosen method was not measured are not counted.

The aim is a median of at most 1 %, a 95th percentile of at most 5 %, and no
size whose interval lies wholly below 0.97 of the plain copy's bandwidth. The
last column is the size of the whole policy file.

"""

COLUMNS = """\
| profile | sizes | median | 95th percentile | largest | above 5 % | below 0.97 of plain | file |
|---|---|---|---|---|---|---|---|"""

HEAD += COLUMNS

MIDDLE = """
All profiles together meet the aim; single profiles with 8 to 28 sizes miss the
95th percentile, which is one or two sizes there. These are all sizes with a
regret above 5 %. In the last column: whether the intervals of the two methods
overlap, so that the profile does not show which one is faster.
"""

WORST = """\
| profile | copy | bytes | choice | fastest | regret | within the noise |
|---|---|---|---|---|---|---|"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(lines_of([Path(each) for each in sys.argv[1:]]))
    else:
        (HERE / "README.md").write_text(page())
