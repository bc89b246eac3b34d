"""Two ways of doing the same, of which a program takes one: pageable or pinned memory, peer access
on or off, managed memory on demand or prefetched, host memory read in place or copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from waywiser.analysis.grouped import Grouped
from waywiser.analysis.kinds import usual
from waywiser.analysis.related import Related, relate
from waywiser.analysis.subject import Curve, Subject
from waywiser.words import Path, Value


class Choice(NamedTuple):
    """What is chosen between: how a curve of the one becomes one of the other."""

    title: str
    """``pageable or pinned``."""
    one: str
    """As a cell says which is faster."""
    other: str


CHOICES = (
    Choice("pageable or pinned memory", "pageable", "pinned"),
    Choice("peer access on or off", "on", "off"),
    Choice("managed memory on demand or prefetched", "on demand", "prefetched"),
    Choice("host memory by kernels in place or by copy engines", "in place", "copied"),
)


class Chosen(Value, frozen=True):
    """One direction of one choice on one machine."""

    title: str
    one: str
    other: str
    group: Grouped
    """Pairs of the one and the other; its label is the direction."""


def chosen(subject: Subject) -> Iterator[Chosen]:
    """Every choice of which a machine has both, by direction."""
    curves = {_key(curve): curve for curve, _ in usual(subject)}
    for choice in CHOICES:
        pairs: dict[str, list[Related]] = {}
        for curve in curves.values():
            for direction, other in _other(choice, curve, curves):
                if (pair := relate(curve, other)).sizes:
                    pairs.setdefault(direction, []).append(pair)
        for direction, found in pairs.items():
            group = Grouped(direction, tuple(found))
            yield Chosen(choice.title, choice.one, choice.other, group)


def _key(curve: Curve) -> str:
    transfer = curve.workload.transfers[0]
    return f"{transfer.path} {transfer.parameters.get('peer', 'on')}"


def _other(choice: Choice, curve: Curve, curves: dict[str, Curve]) -> Iterator[tuple[str, Curve]]:
    """(direction, the other of the choice) where the curve is the one; nothing else."""
    path = curve.workload.transfers[0].path
    peer = curve.workload.transfers[0].parameters.get("peer", "on")
    found = None
    if choice.one == "pageable" and path.executor == "copy-engine":
        found = curves.get(f"{_with_kind(path, 'pageable', 'pinned')} {peer}")
    elif choice.one == "on" and peer == "on" and _is_peer(path):
        found = curves.get(f"{path} off")
    elif choice.one == "on demand" and path.executor == "page-fault":
        found = curves.get(f"{Path(path.source, path.destination, 'prefetch')} {peer}")
    elif choice.one == "in place" and path.executor == "sm" and not _is_peer(path):
        found = curves.get(f"{Path(path.source, path.destination, 'copy-engine')} {peer}")
    if found is not None and found is not curve and not _within(path):
        yield _direction(path), found


def _with_kind(path: Path, old: str, new: str) -> Path | None:
    ends = [
        msgspec.structs.replace(memory, kind=new) if memory.kind == old else memory
        for memory in (path.source, path.destination)
    ]
    gpu = any(memory.kind == "device" for memory in ends)
    return Path(ends[0], ends[1], path.executor) if gpu else None


def _is_peer(path: Path) -> bool:
    return path.source.place.kind == path.destination.place.kind == "gpu"


def _within(path: Path) -> bool:
    return path.source.place == path.destination.place


def _direction(path: Path) -> str:
    ends = path.places
    return " → ".join("GPU" if place.kind == "gpu" else "host" for place in ends)
