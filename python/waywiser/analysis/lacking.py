"""What a GPU lacks that its twins have: lanes, a link's width or generation, peers, whole paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from waywiser.analysis.answer import Finding
from waywiser.analysis.kinds import kind_of
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import named
from waywiser.severity import Severity
from waywiser.topology.machine import Gpu
from waywiser.words import Place, Transfer, WordError, Workload

MOST = 2 / 3
"""Of the twins must have something before one is said to lack it."""


def findings(subject: Subject) -> list[Finding]:
    """Of topology first, then of what was measured."""
    return [*_of_topology(subject), *_of_paths(subject)]


def _of_topology(subject: Subject) -> Iterator[Finding]:
    for gpus in _models([gpu for gpu in subject.machine.gpus if gpu.links_known]):
        yield from _below(
            subject,
            gpus,
            "missing-lanes",
            "error",
            lambda gpu: sum(link.lanes for link in gpu.nvlinks),
            "{} of {} NVLink lanes",
            "see nvidia-smi nvlink -s, and the health of the links in waywiser show",
        )
        yield from _below(
            subject,
            gpus,
            "narrow-link",
            "error",
            lambda gpu: gpu.pcie.width_max,
            "PCIe x{} instead of x{}",
            "reseat the GPU, and compare slot, riser and firmware settings",
        )
        yield from _below(
            subject,
            gpus,
            "narrow-link",
            "error",
            lambda gpu: gpu.pcie.generation_max,
            "PCIe generation {} instead of {}",
            "compare slot, riser and firmware settings",
        )
        yield from _below(
            subject,
            gpus,
            "missing-peers",
            "warning",
            lambda gpu: len(gpu.peers),
            "{} peers instead of {}",
            "see nvidia-smi topo -p2p r; a fabric manager that does not run, or access control "
            "of PCIe switches, takes peers away",
        )


def _models(gpus: Sequence[Gpu]) -> list[list[Gpu]]:
    """GPUs by name, three and more: of two nobody knows which is right."""
    found: dict[tuple[str, str], list[Gpu]] = {}
    for gpu in gpus:
        found.setdefault((gpu.name, gpu.mig), []).append(gpu)
    return [each for each in found.values() if len(each) > 2]


def _below(
    subject: Subject,
    gpus: Sequence[Gpu],
    id: str,
    severity: Severity,
    of: Callable[[Gpu], int],
    text: str,
    remedy: str,
) -> Iterator[Finding]:
    """The GPUs that have less of something than most; 0 is unknown where most have none."""
    usual, count = Counter(map(of, gpus)).most_common(1)[0]
    if count < MOST * len(gpus):
        return
    for gpu in gpus:
        if of(gpu) < usual and (of(gpu) or "PCIe" not in text):
            place = Place("gpu", gpu.index)
            yield Finding(
                id=id,
                severity=severity,
                statement=f"{place} has {text.format(of(gpu), usual)}, which {count} twins have",
                effect=1 - of(gpu) / usual,
                devices=(subject.device(place),),
                remedy=remedy,
            )


def _of_paths(subject: Subject) -> Iterator[Finding]:
    """One finding for each GPU that was refused kinds of path, or failed at them, which most of its
    twins have. What a plan left out for want of time is not lacking."""
    has = _measured(subject)
    lost = _lost(subject)
    for gpus in _models(subject.machine.gpus):
        for gpu in gpus:
            lacking = {
                kind: reason
                for kind, reason in lost.get(gpu.index, {}).items()
                if gpu.index not in has.get(kind, ())
                and sum(other.index in has.get(kind, ()) for other in gpus) >= MOST * len(gpus)
            }
            if lacking:
                yield _missing(subject, gpu, lacking)


def _measured(subject: Subject) -> dict[str, set[int]]:
    """The GPUs that have a kind of path."""
    has: dict[str, set[int]] = {}
    for curve in subject.curves:
        if curve.transfer is not None and _compared(curve.transfer):
            kind = str(kind_of(curve.transfer, subject.machine))
            has.setdefault(kind, set()).update(_gpus(curve.transfer))
    return has


def _lost(subject: Subject) -> dict[int, dict[str, str]]:
    """By GPU: kinds of path that were refused, or failed, with the reason."""
    reasons = [
        (path, group.reason) for group in subject.overview.refusals for path in group.members
    ]
    reasons += [
        (line.curve, "it failed")
        for line in subject.overview.series
        if line.estimate is None and not line.left_out
    ]
    lost: dict[int, dict[str, str]] = {}
    for path, reason in reasons:
        transfer = _parsed(path)
        if transfer is not None and _compared(transfer):
            kind = str(kind_of(transfer, subject.machine))
            for gpu in _gpus(transfer):
                lost.setdefault(gpu, {}).setdefault(kind, reason)
    return lost


def _compared(transfer: Transfer) -> bool:
    return transfer.is_contiguous and transfer.path.is_plain


def _gpus(transfer: Transfer) -> set[int]:
    return {place.index for place in transfer.path.places if place.kind == "gpu"}


def _parsed(path: str) -> Transfer | None:
    """None for what is no single transfer: an operation, several transfers, a file's name."""
    try:
        return Workload.parse(path).transfer
    except WordError:
        return None


def _missing(subject: Subject, gpu: Gpu, lacking: dict[str, str]) -> Finding:
    place = Place("gpu", gpu.index)
    why = "; ".join(sorted(set(lacking.values()))[:2])
    return Finding(
        id="missing-path",
        severity="warning",
        statement=f"{place} lacks {named(list(lacking))}, which its twins have: {why}",
        devices=(subject.device(place),),
        remedy="see what failed or was refused in waywiser show, and survey it again with --only",
    )
