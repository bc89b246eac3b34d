"""Workloads that a person names: ``--workload "A -> B by X; C -> D by Y"``.

They are written in the grammar of `waywiser.words`, and ``A <-> B by X`` is a transfer and its
opposite, as the tables write it. A transfer with a size (``of 64MiB``) is measured at that size,
the others at the sizes of the survey. What the registry does not support is an error here and no
note: the user named it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from waywiser.curves import has_name, with_paths
from waywiser.curves.named_workloads import size_of_each
from waywiser.machine import Catalogue, Machine, Parameter
from waywiser.measure.plan.curves import PlannedCurve
from waywiser.measure.plan.paths import NO_GPU
from waywiser.profile import Profile, SeriesFrame
from waywiser.words import (
    Memory,
    Path,
    Transfer,
    WaywiserError,
    WordError,
    Workload,
    parse_bytes,
    without_units,
)


class WorkloadError(WaywiserError):
    """A workload of the command line that is not valid, or that cannot be measured here."""


def requested_curves(texts: Sequence[str], machine: Machine) -> list[PlannedCurve]:
    """The workloads as curves, each once, those of one curve beside each other.

    Raises `WorkloadError` naming the transfer: not in the grammar, not supported, transfers
    that need processes with and without peer access.
    """
    if not texts:
        return []
    catalogue = Catalogue(machine)
    curves: dict[str, list[PlannedCurve]] = {}
    for text in texts:
        curve = _curve(text, catalogue, machine)
        same = curves.setdefault(curve.text, [])
        if curve not in same:
            same.append(curve)
    return [curve for same in curves.values() for curve in same]


def _curve(text: str, catalogue: Catalogue, machine: Machine) -> PlannedCurve:
    workload = parse_workload(text)
    for transfer, reason in unsupported_transfers(workload, catalogue, machine):
        skipped = [f"{place} is skipped" for place in transfer.path.places]
        why = [note for note in machine.notes if note.partition(": ")[0] in skipped]
        remedy = "; ".join([reason, *why])
        raise WorkloadError(f"--workload: {transfer} cannot be measured here", remedy=remedy)
    transfers = tuple(_plain(transfer, catalogue) for transfer in workload.transfers)
    sides = zip(*(map(str, transfer.path.ends) for transfer in transfers), strict=True)
    if workload.shared and all(len(set(side)) == len(side) for side in sides):
        raise WorkloadError(
            f"--workload {text!r}: no memory is named twice on one side, so none can be shared",
            remedy="remove (shared)",
        )
    needs = {catalogue.peer_access(transfer): transfer for transfer in transfers}
    if True in needs and False in needs:
        raise WorkloadError(
            f"--workload: {needs[False]} needs a process without peer access, and {needs[True]} "
            "one with it: they cannot run together",
            remedy="set peer to on, or to off, in all of them",
        )
    known = all(transfer.bytes for transfer in transfers)
    return PlannedCurve.of(
        transfers,
        catalogue,
        cache=workload.cache,
        shared=workload.shared,
        principal=True,
        requested=True,
        sizes=(max(transfer.bytes for transfer in transfers),) if known else (),
    )


def unsupported_transfers(
    workload: Workload, catalogue: Catalogue, machine: Machine
) -> Iterator[tuple[Transfer, str]]:
    """The transfers that cannot be measured on the machine, and why."""
    for transfer in workload.transfers:
        reason = catalogue.unsupported_reason(transfer)
        if not machine.gpus and _needs_gpu(transfer, catalogue):
            reason = machine.gpu_reason or reason or NO_GPU
        if reason:
            yield transfer, reason


def parse_workload(text: str) -> Workload:
    """The workload, with the opposite for ``A <-> B``; sizes of settings may have units, as tables
    write them. A size of 0, which words take for none, is an error."""
    pieces = (size_of_each(piece, 2 if "<->" in piece else 1) for piece in text.split(";"))
    plain = without_units(";".join(pieces))
    try:
        workload = Workload.parse(plain.replace("<->", "->"))
        transfers: list[Transfer] = []
        for transfer, piece in zip(workload.transfers, plain.split(";"), strict=True):
            transfers.append(transfer)
            if "<->" in piece:
                opposite = transfer.path.opposite
                transfers.append(msgspec.structs.replace(transfer, path=opposite))
            size = piece.rpartition(" by ")[2].partition(" of ")[2].partition("(")[0].strip()
            if size and parse_bytes(size) == 0:
                raise WordError("a size of 0 bytes moves nothing")
    except WordError as error:
        raise WorkloadError(f"--workload {text!r}: {error.what}", remedy=error.remedy) from error
    return msgspec.structs.replace(workload, transfers=tuple(transfers))


def named_workload_of(text: str, profile: Profile) -> Workload:
    """The workload, also of paths by the names that the profile has for them."""
    known = SeriesFrame.read(profile).workloads if has_name(text) else ()
    return parse_workload(with_paths(text, known, profile.machine))


def _needs_gpu(transfer: Transfer, catalogue: Catalogue) -> bool:
    return any(
        memory.place.kind == "gpu"
        or (memory.kind in catalogue.memories and catalogue.memories[memory.kind].needs_gpu)
        for memory in transfer.path.ends
    )


def _plain(transfer: Transfer, catalogue: Catalogue) -> Transfer:
    """The transfer without settings that equal their defaults, which words leave out."""
    ends: list[Memory] = []
    for end in transfer.path.ends:
        known = catalogue.memories[end.kind].parameters
        ends.append(Memory(end.kind, end.place, _without_defaults(end.variant, known)))
    path = Path(ends[0], ends[1], transfer.path.executor)
    parameters = _without_defaults(transfer.parameters, catalogue.parameters(transfer))
    return msgspec.structs.replace(transfer, path=path, parameters=parameters)


def _without_defaults(settings: dict[str, str], known: Sequence[Parameter]) -> dict[str, str]:
    """Those of parameters that are always written are added if they are missing."""
    usual = {p.name: p.choices[0] for p in known if p.written}
    defaults = {p.name: p.choices[0] for p in known if p.choices and not p.written}
    settings = usual | settings
    return {name: value for name, value in settings.items() if defaults.get(name) != value}
