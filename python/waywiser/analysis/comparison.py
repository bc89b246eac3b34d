"""Is it as it was? Base profiles against new ones, path by path (methodology 9).

Several files per side are more blocks. GPUs are told by their UUIDs, so that a GPU that has gone
does not make all after it look changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from waywiser.analysis.answer import Device
from waywiser.analysis.compared import (
    WORST_FIRST,
    Comparison,
    Part,
    PathVerdict,
    Size,
    worst_first,
)
from waywiser.analysis.copies import without_copies
from waywiser.analysis.node import Node, gpus_of
from waywiser.analysis.one_sided import added, missing, with_failures
from waywiser.analysis.same_gpus import Matched, in_numbers_of, match
from waywiser.analysis.unit import Unit, units_of
from waywiser.analysis.verdict import THRESHOLD, Judged, Verdict, judge_units
from waywiser.plan.name import name_of, texts_of
from waywiser.plan.select import matches_any, require_match
from waywiser.profile.digest import Digest
from waywiser.stats.order import median
from waywiser.topology.machine import Gpu
from waywiser.words import Place, Workload

SCHEMA = 1
"""Of the JSON form."""

_Digests = dict[str, list[Digest]]
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
    matched = [match(reference.machine.gpus, node.machine.gpus) for node in (*base, *new)]
    before = _by_identity(base, matched[: len(base)])
    after = _by_identity(new, matched[len(base) :])
    if only:
        before, after = _chosen(before, after, only)
    gone = {gpu.index: gpu for same in matched[len(base) :] for gpu in same.missing}
    paths = [
        *_compared(units_of(before, after), threshold, reference, new[0], matched[len(base)]),
        *missing(before, after, reference, new, set(gone)),
        *added(before, after, new[0]),
    ]
    paths = with_failures(paths, before, after)
    paths.sort(key=worst_first)
    return Comparison(
        schema=SCHEMA,
        base=tuple(node.file or node.name for node in base),
        new=tuple(node.file or node.name for node in new),
        threshold=threshold,
        paths=tuple(paths),
        counts={each: sum(p.verdict == each for p in paths) for each in WORST_FIRST},
        notes=(
            *_notes(base, new, matched[len(base)], gone.values(), paths),
            *(f"{copy} is a copy of {of}, and counts once" for copy, of in (*copies, *more)),
        ),
        missing_gpus=tuple(map(_device, gone.values())),
        exchanged_gpus=tuple(
            (_device(old), _device(now)) for old, now in matched[len(base)].exchanged
        ),
    )


def _device(gpu: Gpu) -> Device:
    return Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)


def _by_identity(nodes: Sequence[Node], matched: Sequence[Matched]) -> _Digests:
    found: _Digests = {}
    for node, same in zip(nodes, matched, strict=True):
        for digest in in_numbers_of(node, same):
            found.setdefault(digest.identity, []).append(digest)
    return found


def _texts(workload: Workload) -> tuple[str, ...]:
    return str(workload), *texts_of(workload)


def _chosen(before: _Digests, after: _Digests, only: Sequence[str]) -> tuple[_Digests, _Digests]:
    """What matches a pattern. Raises `NothingMatches` for one that nothing of either side does."""
    texts = {i: _texts(found[0].workload) for side in (before, after) for i, found in side.items()}
    require_match(only, [text for each in texts.values() for text in each])
    kept = {identity for identity, each in texts.items() if matches_any(each, only)}
    first, second = (
        {i: found for i, found in side.items() if i in kept} for side in (before, after)
    )
    return first, second


def _compared(
    units: Sequence[Unit], threshold: float, reference: Node, new: Node, matched: Matched
) -> Iterator[PathVerdict]:
    curves: dict[str, list[Part]] = {}
    workloads: dict[str, Workload] = {}
    for unit, (whole, sizes) in zip(units, judge_units(units, threshold), strict=True):
        workloads[unit.curve] = unit.pairs[0].workload
        curves.setdefault(unit.curve, []).append(_part(unit, whole, sizes))
    here = {old: number for number, old in matched.numbers.items()}
    for curve, parts in curves.items():
        workload = workloads[curve]
        verdict, why = _told(parts)
        gpus = sorted(gpus_of(workload))
        devices = tuple(
            new.device(Place("gpu", here[gpu])) if gpu in here
            else reference.device(Place("gpu", gpu))
            for gpu in gpus
        )  # fmt: skip
        yield PathVerdict(curve, name_of(workload), verdict, why, devices, tuple(parts))


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


def _notes(
    base: Sequence[Node],
    new: Sequence[Node],
    matched: Matched,
    gone: Iterable[Gpu],
    paths: Sequence[PathVerdict],
) -> Iterator[str]:
    old, now = base[0].machine, new[0].machine
    if _models(base[0]) != _models(new[0]):
        yield f"another class of machine: {_models(base[0])} before, {_models(new[0])} now"
    if old.cpu_model != now.cpu_model:
        yield f"another CPU: {old.cpu_model} before, {now.cpu_model} now"
    if old.driver != now.driver:
        yield f"another driver: {old.driver or 'unknown'} before, {now.driver or 'unknown'} now"
    for gpu in gone:
        yield f"{_device(gpu)} is gone"
    for gpu in matched.added:
        yield f"{_device(gpu)} was not there before"
    if base[0].name == new[0].name:
        for before, after in matched.exchanged:
            yield f"gpu:{after.index} is another device: {before.uuid} before, {after.uuid} now"
    hows = {part.judged.how for path in paths for part in path.parts}
    if "others" in hows:
        yield (
            "one block a side: the noise of a path is taken from how much the others differ; "
            "standard has two blocks"
        )
    if "experience" in hows:
        yield (
            "one block a side and few paths: the noise is taken from other machines; survey with "
            "--preset standard, or give several files a side"
        )


def _models(node: Node) -> str:
    models = [gpu.name for gpu in node.machine.gpus]
    counted = [f"{models.count(model)} × {model}" for model in dict.fromkeys(models)]
    return ", ".join(counted) or "no GPU"
