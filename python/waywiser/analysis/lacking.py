"""What a GPU lacks that its twins have: lanes, a link's width or generation, peers, whole paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from waywiser.analysis.answer import Device, Finding
from waywiser.analysis.kinds import is_plain, kind_of
from waywiser.analysis.subject import Subject
from waywiser.severity import Severity
from waywiser.topology.machine import Gpu
from waywiser.words import Place, Workload

MOST = 2 / 3
"""Of the twins must have something before one is said to lack it."""


def findings(subject: Subject) -> list[Finding]:
    """Of topology first, then of what was measured."""
    return [*_of_topology(subject), *_of_paths(subject)]


def _of_topology(subject: Subject) -> Iterator[Finding]:
    for gpus in _models(subject.machine.gpus):
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
    """One finding for each GPU that lacks kinds of path which most of its twins have."""
    has, tried = _kinds_by_gpu(subject)
    refused = {path: group.reason for group in subject.overview.refusals for path in group.members}
    for gpus in _models([gpu for gpu in subject.machine.gpus if gpu.index in tried]):
        for gpu in gpus:
            lacking = [
                label
                for label, owners in has.items()
                if gpu.index not in owners
                and sum(other.index in owners for other in gpus) >= MOST * len(gpus)
            ]
            if lacking:
                yield _missing(subject, gpu, lacking, refused)


def _kinds_by_gpu(subject: Subject) -> tuple[dict[str, set[int]], set[int]]:
    """(GPUs that have a kind of path, measured or planned and left out; GPUs with any path)."""
    failed = {name for group in subject.overview.failures for name in group.members}
    has: dict[str, set[int]] = {}
    tried: set[int] = set()
    for line in subject.overview.series:
        workload = _parsed(line.curve)
        if workload is None or len(workload.transfers) != 1 or not is_plain(workload.transfers[0]):
            continue
        transfer = workload.transfers[0]
        places = {transfer.path.source.place, transfer.path.destination.place}
        gpus = {place.index for place in places if place.kind == "gpu"}
        tried |= gpus
        gone = line.estimate is None and not line.left_out and bool(failed)
        if workload.cache == "warm" and not gone:
            has.setdefault(str(kind_of(transfer, subject.machine)), set()).update(gpus)
    return has, tried


def _parsed(curve: str) -> Workload | None:
    """None for an operation."""
    return Workload.parse(curve) if " -> " in curve else None


def _missing(
    subject: Subject, gpu: Gpu, lacking: Sequence[str], refused: dict[str, str]
) -> Finding:
    place = Place("gpu", gpu.index)
    device: Device = subject.device(place)
    why = {reason for path, reason in refused.items() if f"@{place} " in f"{path} "}
    told = f": {'; '.join(sorted(why)[:2])}" if why else ""
    return Finding(
        id="missing-path",
        severity="warning",
        statement=f"{place} lacks {', '.join(lacking[:3])}"
        f"{f' and {len(lacking) - 3} more kinds of path' if len(lacking) > 3 else ''}, "
        f"which its twins have{told}",
        devices=(device,),
        remedy="see what failed or was refused in waywiser show, and survey it again with --only",
    )
