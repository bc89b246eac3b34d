"""Alternatives: two methods of doing the same, of which a program takes one. They are pageable or
pinned memory, peer access on or off, and what an executor declares as its alternative, as managed
memory on demand or prefetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from waywiser.analysis.curve_pairs import CurveGroup, curve_groups
from waywiser.analysis.kinds import usual
from waywiser.analysis.subject import Curve, Subject
from waywiser.topology.traits import Alternative, Traits
from waywiser.words import Path, Transfer


class Choice(NamedTuple):
    """What is chosen between."""

    title: str
    """``pageable or pinned memory``."""
    one: str
    """As a cell says which is faster."""
    other: str
    counterpart: Callable[[Transfer], str | None]
    """The key (see `_key`) of the curve of the other, if the transfer is one of the one."""


def alternatives(subject: Subject) -> Iterator[tuple[Choice, CurveGroup]]:
    """Every choice of which a machine has both, by direction, which is the label of the group: its
    pairs are the one and the other."""
    traits = subject.machine.traits
    curves: dict[str, Curve] = {}
    for curve, _ in usual(subject):
        curves.setdefault(_key(curve.workload.transfers[0]), curve)
    executors = sorted({curve.workload.transfers[0].path.executor for curve in curves.values()})
    for choice in _choices(executors, traits):
        pairs: dict[str, list[tuple[Curve, Curve]]] = {}
        for curve in curves.values():
            source, destination = curve.workload.transfers[0].path.places
            other = curves.get(choice.counterpart(curve.workload.transfers[0]) or "")
            if other is not None and other is not curve and source != destination:
                ends = ("GPU" if place.kind == "gpu" else "host" for place in (source, destination))
                pairs.setdefault(" → ".join(ends), []).append((curve, other))
        for direction, found in pairs.items():
            for group in curve_groups({direction: found}):
                yield choice, group


def _choices(executors: Iterable[str], traits: Traits) -> Iterator[Choice]:
    """Between kinds of memory, of peer access, and those that executors declare."""
    pageable = traits.reference_memory("host", "numa")
    pinned = traits.reference_memory("gpu", "numa")

    def locked(transfer: Transfer) -> str | None:
        path = transfer.path
        if traits.executor(path.executor).reference != "gpu":
            return None
        replaced = _with_kind(path, pageable, pinned, traits)
        return _key(transfer, path=replaced) if replaced else None

    yield Choice(f"{pageable} or {pinned} memory", pageable, pinned, locked)
    yield Choice("peer access on or off", "on", "off", _without_peer_access)
    for name in executors:
        alternative = traits.executor(name).alternative
        if alternative is not None:
            question, own, other = alternative.question, alternative.own, alternative.other
            yield Choice(question, own, other, partial(_by_another, name, alternative))


def _without_peer_access(transfer: Transfer) -> str | None:
    on = transfer.parameters.get("peer", "on") == "on"
    return _key(transfer, peer="off") if on and _is_peer(transfer.path) else None


def _by_another(name: str, alternative: Alternative, transfer: Transfer) -> str | None:
    path = transfer.path
    if path.executor != name or (alternative.host_only and _is_peer(path)):
        return None
    return _key(transfer, path=Path(path.source, path.destination, alternative.executor))


def _key(transfer: Transfer, path: Path | None = None, peer: str = "") -> str:
    """A path with peer access on or off."""
    return f"{path or transfer.path} {peer or transfer.parameters.get('peer', 'on')}"


def _with_kind(path: Path, old: str, new: str, traits: Traits) -> Path | None:
    """With another kind of memory at the host; None if no end is a GPU's own memory."""
    ends = [
        msgspec.structs.replace(memory, kind=new) if memory.kind == old else memory
        for memory in (path.source, path.destination)
    ]
    own = traits.reference_memory("gpu", "gpu")
    gpu = any(memory.kind == own for memory in ends)
    return Path(ends[0], ends[1], path.executor) if gpu else None


def _is_peer(path: Path) -> bool:
    return path.source.place.kind == path.destination.place.kind == "gpu"
