"""Copies in both directions at once whose directions are of two runs.

nvbandwidth reports each direction as a case of its own. If one case is in one run and the other in
another, in one file or in two, both together are the series. Where several runs have them, they
are joined in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, HalfSeries
from waywiser.exchange.imports.said_settings import UNSURE
from waywiser.exchange.imports.summary import summary

JOINED = "its two directions are of two runs"
ELSEWHERE = (
    "it has one direction of two, and the runs with {} have other settings or another number"
)

_Key = tuple[str, tuple[str, ...] | None]


def joined(files: Sequence[ForeignFile]) -> list[ForeignFile]:
    """The files with the series that two halves make, in the file of the first half; halves
    without the other stay listed."""
    found: dict[_Key, dict[str, list[tuple[int, HalfSeries]]]] = defaultdict(dict)
    for n, file in enumerate(files):
        for half in file.halves:
            settings = half.series.settings
            if any(each.startswith(UNSURE) for each in settings or ()):
                settings = (*(settings or ()), f"{n}")
            key = (half.series.workload.identity, settings)
            found[key].setdefault(half.case, []).append((n, half))
    made: dict[int, list[ForeignSeries]] = defaultdict(list)
    whole: set[tuple[int, str]] = set()
    for cases in found.values():
        lists = list(cases.values())
        if len(lists) == 2 and len(lists[0]) == len(lists[1]):
            for (n, one), (m, other) in zip(*lists, strict=True):
                made[min(n, m)].append(_joined(one, other))
                whole |= {(n, one.case), (m, other.case)}
    present = {half.case for file in files for half in file.halves}
    return [
        _completed(file, made[n], {case for m, case in whole if m == n}, present)
        for n, file in enumerate(files)
    ]


def _joined(one: HalfSeries, other: HalfSeries) -> ForeignSeries:
    pairs = zip(one.seconds, other.seconds, strict=True)
    seconds = [there or back for there, back in pairs]
    first = min((one, other), key=lambda half: half.case != half.named_after)
    return replace(first.series, samples=summary(max(seconds), seconds)).noted(JOINED)


def _completed(
    file: ForeignFile, made: Sequence[ForeignSeries], whole: set[str], present: set[str]
) -> ForeignFile:
    if not file.halves:
        return file
    unsupported = []
    others = {half.case: half.other for half in file.halves}
    for each in file.unsupported_paths:
        if each.path in whole:
            continue
        if others.get(each.path) in present:
            each = replace(each, reason=ELSEWHERE.format(others[each.path]))
        unsupported.append(each)
    return replace(
        file, measured=(*file.measured, *made), halves=(), unsupported_paths=tuple(unsupported)
    )
