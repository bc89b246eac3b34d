"""Workloads that a person names: ``--workload "A -> B by X; C -> D by Y"``.

They are written in the grammar of `waywiser.words`, and ``A <-> B by X`` is a transfer and its
opposite, as the tables write it. A transfer with a size (``of 64MiB``) is measured at that size,
the others at the sizes of the survey. Whatever the registry refuses is an error here and no note:
somebody asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from waywiser.plan.catalogue import Catalogue, Parameter
from waywiser.plan.curves import Curve
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Path, Transfer, WaywiserError, WordError, Workload, parse_bytes


class AskedError(WaywiserError):
    """A workload of the command line that is none, or that cannot be measured here."""


def asked_curves(texts: Sequence[str], machine: Machine) -> list[Curve]:
    """The workloads as curves, each once, those of one curve beside each other.

    Raises `AskedError` naming the transfer: not in the grammar, refused by the registry, transfers
    that need processes with and without peer access.
    """
    if not texts:
        return []
    catalogue = Catalogue(machine)
    curves: dict[str, list[Curve]] = {}
    for text in texts:
        curve = _curve(text, catalogue, machine)
        same = curves.setdefault(curve.text, [])
        if curve not in same:
            same.append(curve)
    return [curve for same in curves.values() for curve in same]


def _curve(text: str, catalogue: Catalogue, machine: Machine) -> Curve:
    workload = _parse(text)
    for transfer in workload.transfers:
        if reason := _refusal(transfer, catalogue, machine):
            raise AskedError(f"--workload: {transfer} cannot be measured here", remedy=reason)
    transfers = tuple(_plain(transfer, catalogue) for transfer in workload.transfers)
    if workload.shared and not _named_twice(transfers):
        raise AskedError(
            f"--workload {text!r}: no memory is named twice on one side, so none can be shared",
            remedy="leave out (shared)",
        )
    known = all(transfer.bytes for transfer in transfers)
    return Curve(
        transfers,
        cache=workload.cache,
        shared=workload.shared,
        principal=True,
        peer_access=_peer_access(transfers, catalogue),
        asked=True,
        sizes=(max(transfer.bytes for transfer in transfers),) if known else (),
    )


def _parse(text: str) -> Workload:
    try:
        workload = Workload.parse(text.replace("<->", "->"))
        pieces = zip(workload.transfers, text.split(";"), strict=True)
        transfers = [both for transfer, piece in pieces for both in _ways(transfer, "<->" in piece)]
        _require_bytes(text)
    except WordError as error:
        raise AskedError(f"--workload {text!r}: {error.what}", remedy=error.remedy) from error
    return msgspec.structs.replace(workload, transfers=tuple(transfers))


def _ways(transfer: Transfer, both: bool) -> Iterator[Transfer]:
    """The transfer, and its opposite where somebody wrote ``A <-> B``."""
    yield transfer
    if both:
        yield msgspec.structs.replace(transfer, path=transfer.path.opposite)


def _require_bytes(text: str) -> None:
    """Raises for a size of 0, which words take for none."""
    heads = (piece.rpartition(" by ")[2] for piece in text.split(";"))
    sizes = (head.partition(" of ")[2].partition("(")[0].strip() for head in heads)
    if any(size and parse_bytes(size) == 0 for size in sizes):
        raise WordError("a size of 0 bytes moves nothing")


def _refusal(transfer: Transfer, catalogue: Catalogue, machine: Machine) -> str | None:
    reason = catalogue.refusal(transfer)
    if reason and not machine.gpus and _needs_gpu(transfer, catalogue):
        return machine.gpu_reason or reason
    return reason


def _needs_gpu(transfer: Transfer, catalogue: Catalogue) -> bool:
    memories = (transfer.path.source, transfer.path.destination)
    return any(
        memory.place.kind == "gpu"
        or (memory.kind in catalogue.memories and catalogue.memories[memory.kind].needs_gpu)
        for memory in memories
    )


def _plain(transfer: Transfer, catalogue: Catalogue) -> Transfer:
    """Without settings that equal their defaults, which words leave out."""
    path = transfer.path
    bare = Path(
        _plain_memory(path.source, catalogue),
        _plain_memory(path.destination, catalogue),
        path.executor,
    )
    known = catalogue.parameters(transfer)
    return msgspec.structs.replace(
        transfer, path=bare, parameters=_without_defaults(transfer.parameters, known)
    )


def _plain_memory(memory: Memory, catalogue: Catalogue) -> Memory:
    known = catalogue.memories[memory.kind].parameters
    return Memory(memory.kind, memory.place, _without_defaults(memory.variant, known))


def _without_defaults(settings: dict[str, str], known: Sequence[Parameter]) -> dict[str, str]:
    defaults = {parameter.name: parameter.choices[0] for parameter in known if parameter.choices}
    return {name: value for name, value in settings.items() if defaults.get(name) != value}


def _named_twice(transfers: Sequence[Transfer]) -> bool:
    def twice(memories: Iterator[Memory]) -> bool:
        texts = [str(memory) for memory in memories]
        return len(set(texts)) < len(texts)

    return twice(t.path.source for t in transfers) or twice(t.path.destination for t in transfers)


def _peer_access(transfers: Sequence[Transfer], catalogue: Catalogue) -> bool | None:
    """What the process must have; raises where transfers need it on and off."""
    needs = {catalogue.peer_access(transfer): transfer for transfer in transfers}
    if True in needs and False in needs:
        raise AskedError(
            f"--workload: {needs[False]} needs a process without peer access, and {needs[True]} "
            "one with it: they cannot run together",
            remedy="set peer to on, or to off, in all of them",
        )
    return True if True in needs else False if False in needs else None
