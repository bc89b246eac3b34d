"""GPUs that do not answer, and what a GPU lacks that equivalent GPUs have: lanes, a link's width or
generation, peers, paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from waywiser.curves import Finding, Subject, kind_of
from waywiser.curves.texts import named
from waywiser.machine import LOST_REMEDY, Gpu, Machine, lost_text
from waywiser.words import Place, Severity, Transfer, WordError, Workload, grouped

MOST = 2 / 3
"""The share of equivalent GPUs that must have something before one is said to lack it."""


class Property(NamedTuple):
    """A number that is equal for equivalent GPUs."""

    id: str
    """The id of the finding if a GPU has less."""
    severity: Severity
    of: Callable[[Gpu], int | None]
    """None if it is not known."""
    text: str
    """Text with the GPU's number and that of the others."""
    remedy: str


PROPERTIES = (
    Property(
        "missing-lanes",
        "error",
        lambda gpu: sum(link.lanes for link in gpu.nvlinks),
        "{} of {} NVLink lanes",
        "see nvidia-smi nvlink -s, and the health of the links in waywiser show",
    ),
    Property(
        "narrow-link",
        "error",
        lambda gpu: gpu.pcie.width_max or None,
        "PCIe x{} instead of x{}",
        "reseat the GPU, and compare slot, riser and firmware settings",
    ),
    Property(
        "narrow-link",
        "error",
        lambda gpu: gpu.pcie.generation_max or None,
        "PCIe generation {} instead of {}",
        "compare slot, riser and firmware settings",
    ),
    Property(
        "missing-peers",
        "warning",
        lambda gpu: len(gpu.peers),
        "{} peers instead of {}",
        "see nvidia-smi topo -p2p r; a fabric manager that does not run, or access control "
        "of PCIe switches, takes peers away",
    ),
)


def findings(subject: Subject) -> list[Finding]:
    """GPUs that do not answer, then findings about the topology and about what was measured."""
    return [*_silent(subject.machine), *_of_topology(subject), *_of_paths(subject)]


def _silent(machine: Machine) -> Iterator[Finding]:
    if text := lost_text(machine):
        yield Finding("lost-gpu", "error", text, remedy=LOST_REMEDY)


def _of_topology(subject: Subject) -> Iterator[Finding]:
    for gpus in _models([gpu for gpu in subject.machine.gpus if gpu.links_known]):
        for each in PROPERTIES:
            yield from _below(subject, gpus, each)


def _models(gpus: Sequence[Gpu]) -> list[list[Gpu]]:
    """GPUs by name, three and more: of two the right one is not known."""
    models = grouped(((gpu.name, gpu.mig), gpu) for gpu in gpus)
    return [found for found in models.values() if len(found) > 2]


def _below(subject: Subject, gpus: Sequence[Gpu], what: Property) -> Iterator[Finding]:
    """The GPUs that have less of something than most."""
    usual, count = Counter(map(what.of, gpus)).most_common(1)[0]
    if usual is None or count < MOST * len(gpus):
        return
    for gpu in gpus:
        own = what.of(gpu)
        if own is not None and own < usual:
            place = Place("gpu", gpu.index)
            yield Finding(
                id=what.id,
                severity=what.severity,
                statement=f"{place} has {what.text.format(own, usual)}, which {count} equivalent "
                "GPUs have",
                effect=1 - own / usual,
                devices=(subject.device(place),),
                remedy=what.remedy,
            )


def _of_paths(subject: Subject) -> Iterator[Finding]:
    """One finding for each GPU that does not support kinds of path, or failed at them, which most
    equivalent GPUs have. What a plan skipped for want of time is not missing."""
    has = {own for curve in subject.curves for own in _compared(subject, curve.transfer)}
    lost = _lost(subject)
    for gpus in _models(subject.machine.gpus):
        for gpu in gpus:
            missing = {
                kind: reason
                for kind, reason in lost.get(gpu.index, {}).items()
                if (kind, gpu.index) not in has
                and sum((kind, other.index) in has for other in gpus) >= MOST * len(gpus)
            }
            if missing:
                yield _missing(subject, gpu, missing)


def _compared(subject: Subject, transfer: Transfer | None) -> set[tuple[str, int]]:
    """The kind of path of a transfer with each GPU at its ends; none of what is not compared."""
    if transfer is None or not transfer.is_contiguous or not transfer.path.is_plain:
        return set()
    kind = str(kind_of(transfer, subject.machine))
    return {(kind, place.index) for place in transfer.path.places if place.kind == "gpu"}


def _lost(subject: Subject) -> dict[int, dict[str, str]]:
    """Kinds of path that are not supported, or failed, by GPU, with the reason."""
    reasons = [
        (_parsed(path), group.reason)
        for group in subject.overview.unsupported_paths
        for path in group.members
    ]
    reasons += [
        (point.workload.transfer, "it failed")
        for point in subject.overview.series
        if point.estimate is None and not point.skipped
    ]
    lost: dict[int, dict[str, str]] = {}
    for transfer, reason in reasons:
        for kind, gpu in _compared(subject, transfer):
            lost.setdefault(gpu, {}).setdefault(kind, reason)
    return lost


def _parsed(path: str) -> Transfer | None:
    """None for what is no single transfer: an operation, several transfers, a file's name."""
    try:
        return Workload.parse(path).transfer
    except WordError:
        return None


def _missing(subject: Subject, gpu: Gpu, missing: dict[str, str]) -> Finding:
    place = Place("gpu", gpu.index)
    why = "; ".join(sorted(set(missing.values()))[:2])
    return Finding(
        id="missing-path",
        severity="warning",
        statement=f"{place} has no {named(list(missing))}, which equivalent GPUs have: {why}",
        devices=(subject.device(place),),
        remedy=f"see the reason in waywiser show; {subject.again(*missing)}",
    )
