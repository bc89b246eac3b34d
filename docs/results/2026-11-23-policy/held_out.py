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
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.analysis.policy.build import build_policy, decision_tables
from waywiser.analysis.policy.candidates import kind_of
from waywiser.analysis.policy.decision_table import CopyKind, DecisionTable, Method
from waywiser.curves.bystanders import bystander_of
from waywiser.curves.subject import Subject
from waywiser.machine.traits import DECLARED
from waywiser.profile import Profile
from waywiser.stats.order import median

HERE = Path(__file__).parent
RESULTS = HERE.parent

PROFILES = {
    "H100, first survey": "2026-11-23-surveys/h100-standard-1",
    "H100, second survey": "2026-11-23-surveys/h100-standard-2",
    "H200, first survey": "2026-11-23-surveys/h200-standard-1",
    "H200, second survey": "2026-11-23-surveys/h200-standard-2",
    "H100, third survey": "2026-11-23-surveys/h100-standard-3",
    "H200, fifth survey": "2026-11-23-surveys/h200-standard-5",
    "H200, all executors": "2026-11-20-h200-catalogue/one-gpu/standard",
    "two H200": "2026-11-20-h200/two-gpus/standard",
    "four H200": "2026-11-20-h200-catalogue/four-gpus/standard",
    "four H200, busy host": "2026-11-20-h200-catalogue/four-gpus-busy/standard",
}
"""Profiles that have several methods of the transfer library."""

NEWEST = ("H200, fifth survey", "H100, third survey")
"""The profiles whose copying threads had all CPUs. They have bystanders too."""

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


@lru_cache(maxsize=1)
def subject_of(path: Path) -> Subject:
    """A profile, packed or not."""
    data = path.read_bytes()
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kept.wwp"
        file.write_bytes(unpack(data) if unpack is not None else data)
        with Profile.open(file) as profile:
            return Subject.of(profile)


def choices_at_known_sizes(subject: Subject) -> list[Choice]:
    """The same choices by a policy of all sizes."""
    tables = decision_tables([subject])
    found: dict[tuple[str, int, int], Choice] = {}
    for table in tables:
        for choice in _choices(table, tables, sizes_of(tables, table)[1:-1]):
            found.setdefault((str(choice.kind), choice.size, choice.pieces), choice)
    return list(found.values())


@cache
def measured(path: Path) -> tuple[list[Choice], int]:
    """The choices of a profile at sizes that were held out, and the bytes of its policy file."""
    subject = subject_of(path)
    return choices(subject), len(build_policy([subject]).to_json())


def read(name: str) -> tuple[list[Choice], int]:
    """The same of a profile that is kept beside this page."""
    return measured(RESULTS / f"{PROFILES[name]}.wwp.xz")


@cache
def read_known(name: str) -> list[Choice]:
    """The choices by a policy of all sizes of a profile that is kept beside this page."""
    return choices_at_known_sizes(subject_of(RESULTS / f"{PROFILES[name]}.wwp.xz"))


def choices(subject: Subject) -> list[Choice]:
    """All choices at sizes that were held out."""
    tables = decision_tables([subject])
    found: dict[tuple[str, int, int], Choice] = {}
    for offset in (1, 2):
        held_out = {
            (str(each.kind), each.count > 1): sizes_of(tables, each)[offset:-1:2] for each in tables
        }
        reduced = decision_tables([_without(subject, held_out)])
        for table in tables:
            for choice in _choices(table, reduced, held_out[str(table.kind), table.count > 1]):
                found.setdefault((str(choice.kind), choice.size, choice.pieces), choice)
    return list(found.values())


def sizes_of(tables: Sequence[DecisionTable], table: DecisionTable) -> list[int]:
    """The sizes at which two methods or more were measured: of a table of lists, those of the lists
    of all counts."""
    kind = table.kind, table.count > 1, 0 if table.count > 1 else table.threads
    alike = (
        each
        for each in tables
        if (each.kind, each.count > 1, 0 if each.count > 1 else each.threads) == kind
    )
    found = {
        each.bytes
        for other in alike
        for each in other.decisions
        if sum(time is not None and not time.interpolated for time in each.times) > 1
    }
    return sorted(found)


def _without(subject: Subject, held_out: dict[tuple[str, bool], list[int]]) -> Subject:
    kept = []
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
        kept += [p for p in curve.measured if (piece or p.bytes) not in sizes]
    return msgspec.structs.replace(subject, points=tuple(kept))


def _choices(
    table: DecisionTable, reduced: Sequence[DecisionTable], held_out: Sequence[int]
) -> Iterator[Choice]:
    same = [
        each
        for each in reduced
        if (each.kind, each.threads, each.count > 1) == (table.kind, table.threads, table.count > 1)
    ]
    if not same:
        return
    for decision in table.decisions:
        known = {
            method: time
            for method, time in zip(table.methods, decision.times, strict=True)
            if time is not None and not time.interpolated
        }
        if decision.bytes not in held_out or len(known) < 2:
            continue
        policy = _of_count(same, next(iter(known.values())).pieces)
        at = policy.at(decision.bytes)
        if at is None:
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


def _of_count(tables: Sequence[DecisionTable], pieces: int) -> DecisionTable:
    """The table that the library uses for so many pieces."""
    fewer = [each for each in tables if each.count <= pieces]
    if fewer:
        return max(fewer, key=lambda table: table.count)
    return min(tables, key=lambda table: table.count)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all is not above."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100 * len(ordered)) // 100) - 1)]


@cache
def page() -> str:
    """The page."""
    held_out, known, slowed = {}, [], {}
    for name in PROFILES:  # all of one profile before the next, so that each is read once
        held_out[name] = read(name)
        known += read_known(name)
        slowed[name] = [*_bystanders(name)] if name in NEWEST else []
    every, worst = _tables(held_out)
    parts = [HEAD, *every, KNOWN, f"| all, no size held out | {_row(known)} |", TRIED]
    more = (line for name in NEWEST for line in slowed[name])
    return "\n".join([*parts, WORST, *worst, STAGED, BYSTANDERS, *more]) + "\n"


def _bystanders(name: str) -> Iterator[str]:
    """The lines of small copies and a matrix product beside each method of H2D and D2H."""
    subject = subject_of(RESULTS / f"{PROFILES[name]}.wwp.xz")
    alone = {point.text: point for curve in subject.curves for point in curve.measured}
    found: dict[str, dict[bool, str]] = {}
    for curve in subject.curves:
        at = bystander_of(curve.workload, subject.machine.traits)
        if at is None:
            continue
        point = curve.measured[-1]
        bystander, large = point.workload.transfers[at], point.workload.transfers[1 - at]
        reference = alone[str(bystander)]
        seconds = reference.seconds
        if point.mode != reference.mode:
            seconds = reference.measured.host_median or seconds
        (times,) = (each.transfers for each in point.measured.used)
        source, destination = (place.kind for place in large.path.places)
        if source != destination and times[1 - at] >= seconds:
            key = (
                f"{large.path.source.kind} -> {large.path.destination.kind} | {large.path.executor}"
            )
            is_product = DECLARED.executor(bystander.path.executor).bystander
            found.setdefault(key, {})[is_product] = f"{times[at] / seconds:.2f}"
    for key, factors in found.items():
        yield f"| {name} | {key} | {factors.get(False, '')} | {factors.get(True, '')} |"


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
        return "0" + " |" * 6
    regrets = [each.regret for each in found]
    below = sum(each.below_plain for each in found)
    over = sum(each > 0.05 for each in regrets)
    aim = median(regrets) <= 0.01 and percentile(regrets, 0.95) <= 0.05 and not below
    return (
        f"{len(found)} | {median(regrets):.1%} | {percentile(regrets, 0.95):.1%} "
        f"| {max(regrets):.0%} | {over} | {below} | {'yes' if aim else 'no'}"
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
column "aim" says whether a profile meets it. The last column is the size of the
whole policy file.

"""

COLUMNS = """\
| profile | sizes | median | 95th percentile | largest | above 5 % | below 0.97 | aim | file |
|---|---|---|---|---|---|---|---|---|"""

HEAD += COLUMNS

KNOWN = """
In a profile with 6 to 28 sizes the 95th percentile is the largest or the second
largest regret.

## What the noise leaves

The same choices by policies that no size was held out of: the method was measured
at each size. Their regret is not zero. A method replaces a simpler one only if it
is faster by more than the noise, so a method that is faster within the noise is
not used. Most of these sizes are lists of 28 or 128 KiB pieces, where `batch` and
`sm` take nearly the same time and `batch` is noisy: 128 pieces of 128 KiB D2H took
352 to 397 µs in the four processes of the first survey of the H200. No other rule
between sizes changes that. More processes would.

| profiles | sizes | median | 95th percentile | largest | above 5 % | below 0.97 | aim |
|---|---|---|---|---|---|---|---|"""

TRIED = """
## Rules that were tried

The kept profiles were divided into two halves: the first and third surveys of both
GPUs, all executors and four H200; and ten others, four of them not in the table
above. The rules were made with the failures of the earlier rule in sight, which are
in both halves. Figures are the 95th percentile and the mean regret.

| rule | first half | second half |
|---|---|---|
| before: the crossing of the methods of both sizes beside it | 8.1 %, 0.99 % | 8.4 %, 1.24 % |
| now: the rule of measured sizes, at each doubling between | 4.7 %, 0.72 % | 7.6 %, 1.07 % |
| the fastest method at each doubling, without noise | 8.1 %, 0.99 % | 8.4 %, 1.24 % |
| the crossing of straight lines over bytes | 8.1 %, 0.82 % | 9.3 %, 1.38 % |
| times with the shape of the curve with the most sizes | 8.7 %, 2.19 % | 29.8 %, 7.64 % |
| lists: latency + pieces + bytes, fitted to relative deviations | 10.0 %, 0.89 % | 13.5 %, 1.57 % |
| the same, fitted to absolute relative deviations | 2.0 %, 0.56 % | 12.5 %, 1.31 % |

The last rule is the best in the first half, but not in the second: it was not taken.
Both halves are of the same models of machine, so they prove nothing for others.

A time between two sizes that are more than a factor of 4 apart is known within
25 %. So two such times count as equal up to a factor of 1.56, with the noise of the
sizes beside it. In the kept profiles the ratio of two such times was predicted
within that factor at 80 % of the sizes (160 of 199), and within a factor of 2.45 at
95 %. So the factor is not too large.

## Sizes with a regret above 5 %

In the last column: whether the intervals of the two methods overlap, so that the
profile does not show which one is faster.
"""

WORST = """\
| profile | copy | bytes | choice | fastest | regret | within the noise |
|---|---|---|---|---|---|---|"""

STAGED = """
See also [copies with a policy](transfers.md) and [blocks of a kernel copy](blocks-over-pcie.md).

## Older profiles have too low staged figures

The fifth survey of the H200 and the third of the H100 are the first in which
the copying threads of `staged` run on all CPUs (commit `041bacd5`, one GPU and 16
virtual CPUs each, driver 580.159.04). Before, they shared one CPU. At 256 MiB
(H200) staged H2D has 49.3 GB/s now, and 7.2 to 9.9 GB/s in the first three surveys; D2H
has 49.3 GB/s now, and 12.0 to 13.1 GB/s there. So policies of older profiles choose
the plain copy for large copies of pageable memory, where `staged` is faster:
from 64 MiB on in those surveys of the H200, and at 64 MiB in the first survey of the
H100. The regret above does not show it: it compares with the figures of the same
profile. Do not use policies of these older profiles; make a new survey.

What the policies of the new profiles gain over the library's defaults:
[transfers.md](transfers.md)."""

BYSTANDERS = """
## What a large copy takes from other work

How many times as long other work takes beside a copy of 256 MiB as alone, from the
two profiles. Small copies: 585 pieces of 28 KiB of pinned memory, in the same
direction. Matrix product: 8-bit, 64 MiB. Each figure is one process with 6
samples, so that no interval between processes is known. `waywiser advise FILE
--from MEMORY --to MEMORY --bytes 64MiB` prints these figures for its method.

Small copies wait for a large pinned copy in the same direction: they take 3.4 to 4.7
times as long. They do not wait for copies of pageable memory, with one
exception that no second process confirms: `staged` D2H on the H100. A matrix product
waits for `sm` (10.9 to 11.7 times as long), and hardly for pinned copies by
`copy-engine`.

| profile | copy | method | small copies | matrix product |
|---|---|---|---|---|"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(lines_of([Path(each) for each in sys.argv[1:]]))
    else:
        (HERE / "README.md").write_text(page())
