"""Is it as it was? Base profiles against new ones, path by path (methodology 9).

Several files per side are more blocks. GPUs are told by their UUIDs, so that a GPU that has gone
does not make all after it look changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from waywiser.analysis.answer import Device
from waywiser.analysis.node import Node, gpus_of
from waywiser.analysis.same_gpus import Matched, in_numbers_of, match
from waywiser.analysis.unit import Regime, Unit, units_of
from waywiser.analysis.verdict import THRESHOLD, Judged, Verdict, judge_units
from waywiser.plan.name import name_of, texts_of
from waywiser.plan.select import matches_any, require_match
from waywiser.profile.digest import Digest
from waywiser.stats.order import median
from waywiser.words import Place, Value, Workload

SCHEMA = 1
"""Of the JSON form."""

WORST_FIRST: tuple[Verdict, ...] = ("worse", "missing", "better", "unclear", "new", "same")

_PART_ORDER: tuple[Verdict, ...] = ("worse", "better", "unclear", "same")
"""Which of its parts a path is told by."""


class Size(Value, frozen=True):
    """One series of a path."""

    series: str
    bytes: int
    rated_bytes: int
    """That a rate counts; 0 where it has none."""
    seconds_before: float
    seconds_now: float
    judged: Judged


class Part(Value, frozen=True):
    """The sizes of a path in which the same thing sets the time."""

    regime: Regime
    judged: Judged
    sizes: tuple[Size, ...]


class PathVerdict(Value, frozen=True):
    """One path, by the worst of its parts and sizes."""

    curve: str
    name: str
    """The curve as people call it."""
    verdict: Verdict
    why: str
    """In a clause: which part, or which sizes; of a missing one, the reason."""
    devices: tuple[Device, ...] = ()
    """GPUs on it, as the new file has them where it has them."""
    parts: tuple[Part, ...] = ()

    @property
    def evidence(self) -> Evidence | None:
        """What the verdict is about, or, where nothing is found, what is most off: a part of the
        path with the size that is most like it, or one size alone. None of a path that was
        measured on one side only."""
        told = [part for part in self.parts if part.judged.verdict == self.verdict]
        single = [size for part in self.parts for size in part.sizes
                  if size.judged.verdict == self.verdict]  # fmt: skip
        if not told and single:
            size = min(single, key=lambda size: size.judged.ratio)
            return Evidence(f"{size.bytes} B", size.judged, size)
        if not self.parts:
            return None
        part = min(told or self.parts, key=_gravity)
        ratio = part.judged.ratio
        size = min(part.sizes, key=lambda size: (abs(size.judged.ratio - ratio), -size.bytes))
        return Evidence(part.regime, part.judged, size)


class Evidence(NamedTuple):
    what: str
    """The regime, or the size."""
    judged: Judged
    size: Size
    """That the times before and now are of."""


class Comparison(Value, frozen=True):
    """New files against base files."""

    schema: int
    base: tuple[str, ...]
    new: tuple[str, ...]
    threshold: float
    paths: tuple[PathVerdict, ...]
    """The worst first."""
    counts: dict[str, int]
    """Paths by verdict."""
    notes: tuple[str, ...] = ()
    """What else differs, or weakens the verdicts, one line each."""
    missing_gpus: tuple[Device, ...] = ()
    exchanged_gpus: tuple[tuple[Device, Device], ...] = ()
    """(before, now): another device in the same place."""

    def of(self, *verdicts: Verdict) -> tuple[PathVerdict, ...]:
        return tuple(path for path in self.paths if path.verdict in verdicts)

    @property
    def told(self) -> int:
        """Paths of which anything is known."""
        return sum(self.counts[each] for each in ("worse", "better", "same"))


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
    reference = base[0]
    matched = [match(reference.machine.gpus, node.machine.gpus) for node in (*base, *new)]
    before = _by_identity(base, matched[: len(base)])
    after = _by_identity(new, matched[len(base) :])
    if only:
        texts = [t for ds in (*before.values(), *after.values()) for t in _texts(ds[0].workload)]
        require_match(only, texts)
        before, after = _chosen(before, only), _chosen(after, only)
    gone = matched[len(base)].missing
    paths = [
        *_compared(units_of(before, after), threshold, reference, new[0], matched[len(base)]),
        *_missing(before, after, reference, new, {gpu.index for gpu in gone}),
        *_added(before, after, new[0]),
    ]
    paths = _with_failures(paths, before, after)
    paths.sort(key=_worst_first)
    return Comparison(
        schema=SCHEMA,
        base=tuple(node.file or node.name for node in base),
        new=tuple(node.file or node.name for node in new),
        threshold=threshold,
        paths=tuple(paths),
        counts={each: sum(p.verdict == each for p in paths) for each in WORST_FIRST},
        notes=tuple(_notes(base, new, matched[len(base)], paths)),
        missing_gpus=tuple(Device(f"gpu:{g.index}", g.uuid, g.pci) for g in gone),
        exchanged_gpus=tuple(
            (Device(f"gpu:{o.index}", o.uuid, o.pci), Device(f"gpu:{n.index}", n.uuid, n.pci))
            for o, n in matched[len(base)].exchanged
        ),
    )


def _by_identity(nodes: Sequence[Node], matched: Sequence[Matched]) -> dict[str, list[Digest]]:
    found: dict[str, list[Digest]] = {}
    for node, same in zip(nodes, matched, strict=True):
        for digest in in_numbers_of(node, same):
            found.setdefault(digest.identity, []).append(digest)
    return found


def _texts(workload: Workload) -> tuple[str, ...]:
    return str(workload), *texts_of(workload)


def _chosen(found: dict[str, list[Digest]], only: Sequence[str]) -> dict[str, list[Digest]]:
    return {i: ds for i, ds in found.items() if matches_any(_texts(ds[0].workload), only)}


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
        if single and bad == "worse":
            return bad, f"at {', '.join(str(size.bytes) for size in single)} B alone"
    unclear = [part for part in parts if part.judged.verdict == "unclear"]
    if not unclear:
        return "same", ""
    if any(part.regime == "rate" and part.judged.verdict == "same" for part in parts):
        return "same", f"{_regimes(unclear)} unclear"
    return "unclear", _regimes(unclear)


def _regimes(parts: Iterable[Part]) -> str:
    return ", ".join(part.regime for part in parts)


def _missing(
    before: dict[str, list[Digest]],
    after: dict[str, list[Digest]],
    reference: Node,
    new: Sequence[Node],
    gone: set[int],
) -> Iterator[PathVerdict]:
    measured = {ds[0].curve for ds in after.values() if any(d.blocks for d in ds)}
    reasons = {r.path: r.reason for node in new for r in node.refusals}
    failed = {
        d.curve: f"{d.failures[0].kind}: {d.failures[0].reason}"
        for ds in after.values() for d in ds if d.failures
    }  # fmt: skip
    seen: set[str] = set()
    for digests in before.values():
        first = digests[0]
        if first.curve in measured | seen or not any(d.blocks for d in digests):
            continue
        seen.add(first.curve)
        gpus = sorted(gpus_of(first.workload))
        lost = [f"gpu:{gpu} is gone" for gpu in gpus if gpu in gone]
        why = ", ".join(lost) or failed.get(first.curve) or reasons.get(first.curve) or NOT_ASKED
        devices = tuple(reference.device(Place("gpu", gpu)) for gpu in gpus)
        yield PathVerdict(first.curve, name_of(first.workload), "missing", why, devices)


NOT_ASKED = "the new survey has not measured it"


def _added(
    before: dict[str, list[Digest]], after: dict[str, list[Digest]], new: Node
) -> Iterator[PathVerdict]:
    known = {ds[0].curve for ds in before.values() if any(d.blocks for d in ds)}
    for digests in after.values():
        first = digests[0]
        if first.curve not in known and any(d.blocks for d in digests):
            known.add(first.curve)
            devices = tuple(new.device(Place("gpu", g)) for g in sorted(gpus_of(first.workload)))
            why = "the base has not measured it"
            yield PathVerdict(first.curve, name_of(first.workload), "new", why, devices)


def _with_failures(
    paths: Sequence[PathVerdict], before: dict[str, list[Digest]], after: dict[str, list[Digest]]
) -> list[PathVerdict]:
    """A path that fails at a size that it had is not the same path, whatever its other sizes do."""
    lost: dict[str, str] = {}
    for identity, digests in after.items():
        old = before.get(identity, ())
        failures = [f for d in digests for f in d.failures if f.kind != "skipped"]
        if failures and not any(d.blocks for d in digests) and any(d.blocks for d in old):
            why = f"fails at {digests[0].bytes} B: {failures[0].kind}: {failures[0].reason}"
            lost.setdefault(digests[0].curve, why)
    return [
        msgspec.structs.replace(path, verdict="missing", why=lost[path.curve])
        if path.curve in lost and path.verdict not in ("worse", "missing")
        else path
        for path in paths
    ]


def _notes(
    base: Sequence[Node], new: Sequence[Node], matched: Matched, paths: Sequence[PathVerdict]
) -> Iterator[str]:
    old, now = base[0].machine, new[0].machine
    if _models(base[0]) != _models(new[0]):
        yield f"another class of machine: {_models(base[0])} before, {_models(new[0])} now"
    if old.cpu_model != now.cpu_model:
        yield f"another CPU: {old.cpu_model} before, {now.cpu_model} now"
    if old.driver != now.driver:
        yield f"another driver: {old.driver or 'none'} before, {now.driver or 'none'} now"
    for gpu in matched.missing:
        yield f"gpu:{gpu.index} ({gpu.pci}, {gpu.uuid}) is gone"
    for gpu in matched.added:
        yield f"gpu:{gpu.index} ({gpu.pci}, {gpu.uuid}) was not there before"
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


def _gravity(part: Part) -> tuple[int, float]:
    return _PART_ORDER.index(part.judged.verdict), part.judged.ratio


def _worst_first(path: PathVerdict) -> tuple[int, float, str]:
    evidence = path.evidence
    ratio = evidence.judged.ratio if evidence else 1.0
    return WORST_FIRST.index(path.verdict), ratio, path.name
