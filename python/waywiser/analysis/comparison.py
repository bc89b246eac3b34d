"""Is it as it was? Base profiles against new ones, path by path (methodology 9).

Several files per side are more blocks. GPUs are told by their UUIDs, so that a GPU that has gone
does not make all after it look changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from waywiser.analysis.answer import Device
from waywiser.analysis.assumed import assumed
from waywiser.analysis.compared import (
    WORST_FIRST,
    Comparison,
    Part,
    PathVerdict,
    Size,
    worst_first,
)
from waywiser.analysis.copies import without_copies
from waywiser.analysis.differences import differences, of_gpus
from waywiser.analysis.node import Node, gpus_of
from waywiser.analysis.one_sided import added, missing, with_failures
from waywiser.analysis.same_gpus import Matched, in_numbers_of, match
from waywiser.analysis.unit import Unit, units_of
from waywiser.analysis.verdict import THRESHOLD, Judged, Verdict, judge_units
from waywiser.plan.name import name_of, texts_of
from waywiser.plan.select import matches_any, require_match
from waywiser.stats.order import median
from waywiser.stats.series_summary import SeriesSummary
from waywiser.topology.machine import Gpu
from waywiser.words import Workload

SCHEMA = 1
"""Of the JSON form."""

_Summaries = dict[str, list[SeriesSummary]]
"""By identity, one of each file that has the series."""


def compare(
    base: Sequence[Node],
    new: Sequence[Node],
    threshold: float = THRESHOLD,
    only: Sequence[str] = (),
) -> Comparison:
    """All paths of either side.

    ``threshold`` is the relative effect that matters. ``only`` keeps what matches a pattern of
    `waywiser.plan.select`. Raises `NothingMatches` for a pattern that matches nothing, ValueError
    for a side without nodes.
    """
    if not base or not new:
        raise ValueError("a comparison needs a node on each side")
    (base, copies), (new, more) = without_copies(base), without_copies(new)
    reference = max(base, key=lambda node: len(node.machine.gpus))
    old, now = (
        [match(reference.machine.gpus, node.machine.gpus) for node in side] for side in (base, new)
    )
    before, after = _by_identity(base, old), _by_identity(new, now)
    if only:
        before, after = _chosen(before, after, only)
    gone = {gpu.index: gpu for same in now for gpu in same.missing}
    devices = _Devices(reference, new, now)
    paths = [
        *_compared(units_of(before, after), threshold, devices),
        *missing(before, after, reference, base, new, set(gone)),
        *added(before, after, devices),
    ]
    paths = with_failures(paths, before, after)
    paths.sort(key=worst_first)
    return Comparison(
        schema=SCHEMA,
        base=tuple(node.called for node in base),
        new=tuple(node.called for node in new),
        threshold=threshold,
        paths=tuple(paths),
        counts={each: sum(p.verdict == each for p in paths) for each in WORST_FIRST},
        notes=(
            *differences(base, new),
            *of_gpus(base, new, old, now),
            *assumed((*base, *new), paths),
            *(f"{copy} is a copy of {of}, and counts once" for copy, of in (*copies, *more)),
        ),
        missing_gpus=tuple(map(_device, gone.values())),
        exchanged_gpus=tuple(
            dict.fromkeys((_device(a), _device(b)) for same in now for a, b in same.exchanged)
        ),
    )


def _device(gpu: Gpu) -> Device:
    return Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)


def _by_identity(nodes: Sequence[Node], matched: Sequence[Matched]) -> _Summaries:
    found: _Summaries = {}
    for node, same in zip(nodes, matched, strict=True):
        for digest in in_numbers_of(node, same):
            found.setdefault(digest.identity, []).append(digest)
    return found


def _texts(workload: Workload) -> tuple[str, ...]:
    return str(workload), *texts_of(workload)


def _chosen(
    before: _Summaries, after: _Summaries, only: Sequence[str]
) -> tuple[_Summaries, _Summaries]:
    """What matches a pattern. Raises `NothingMatches` for one that nothing of either side does."""
    texts = {i: _texts(found[0].workload) for side in (before, after) for i, found in side.items()}
    require_match(only, [text for each in texts.values() for text in each])
    kept = {identity for identity, each in texts.items() if matches_any(each, only)}
    first, second = (
        {i: found for i, found in side.items() if i in kept} for side in (before, after)
    )
    return first, second


class _Devices:
    """The GPUs of a workload, as the first new file has them that has them, else as the base."""

    def __init__(self, reference: Node, new: Sequence[Node], matched: Sequence[Matched]) -> None:
        self._known = {gpu.index: _device(gpu) for gpu in reference.machine.gpus}
        for node, same in reversed(list(zip(new, matched, strict=True))):
            for gpu in node.machine.gpus:
                self._known[same.numbers[gpu.index]] = _device(gpu)

    def __call__(self, workload: Workload) -> tuple[Device, ...]:
        return tuple(
            self._known.get(gpu, Device(f"gpu:{gpu}")) for gpu in sorted(gpus_of(workload))
        )


def _compared(units: Sequence[Unit], threshold: float, devices: _Devices) -> Iterator[PathVerdict]:
    curves: dict[str, list[Part]] = {}
    workloads: dict[str, Workload] = {}
    for unit, (whole, sizes) in zip(units, judge_units(units, threshold), strict=True):
        workloads[unit.curve] = unit.pairs[0].workload
        curves.setdefault(unit.curve, []).append(_part(unit, whole, sizes))
    for curve, parts in curves.items():
        workload = workloads[curve]
        verdict, why = _told(parts)
        yield PathVerdict(curve, name_of(workload), verdict, why, devices(workload), tuple(parts))


def _part(unit: Unit, whole: Judged, judged: Sequence[Judged]) -> Part:
    sizes = tuple(
        Size(
            pair.text,
            pair.workload.bytes,
            pair.workload.rated_bytes,
            math.exp(median(pair.before)),
            math.exp(median(pair.after)),
            each,
        )
        for pair, each in zip(unit.pairs, judged, strict=True)
    )
    return Part(unit.kin.regime, whole, sizes)


def _told(parts: Sequence[Part]) -> tuple[Verdict, str]:
    """The verdict of a path, and what it is about. A rate that is the same speaks for the path
    where nothing speaks against it, though its latencies scatter too much to be told."""
    wholes = [part.judged.verdict for part in parts]
    for bad in ("worse", "better"):
        if bad in wholes:
            return bad, _regimes(part for part in parts if part.judged.verdict == bad)
        single = [s for part in parts for s in part.sizes if s.judged.verdict == bad]
        if single:
            return bad, f"at {', '.join(str(size.bytes) for size in single)} B alone"
    unclear = [part for part in parts if part.judged.verdict == "unclear"]
    if not unclear:
        return "same", ""
    if any(part.regime == "rate" and part.judged.verdict == "same" for part in parts):
        return "same", f"{_regimes(unclear)} unclear"
    return "unclear", _regimes(unclear)


def _regimes(parts: Iterable[Part]) -> str:
    return ", ".join(part.regime for part in parts)
