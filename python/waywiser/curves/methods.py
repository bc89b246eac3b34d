"""The methods to move bytes between two places: the curves that do the same for a program, by
memory, executor and settings.

Pairs of places that the machine's symmetry makes equivalent (`waywiser.curves.classes`) are one
group: what holds between one GPU and the host is reported once, with the number of others.
"""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.curves.cache_states import counted_curves
from waywiser.curves.curve import Curve
from waywiser.curves.subject import Subject
from waywiser.curves.wrong_bounds import LARGEST_GPU_CACHE
from waywiser.machine import DECLARED
from waywiser.machine.ranks import measurement
from waywiser.words import Memory, Place, Transfer, Value, format_settings, grouped


class PlacePair(Value, frozen=True):
    """Two places and the methods from one to the other."""

    source: Place
    destination: Place
    curves: tuple[Curve, ...]
    caches: int = 0
    """Bytes that the last caches of the CPUs hold together; 0 if that is not known."""
    of_ranks: bool = False
    """Whether the methods are messages between ranks that have their memory at the places: no copy
    within one program is compared with them."""
    messages: str = ""
    """Returns the memories of messages between surveyed ranks, and the test if it is not of one
    message: ``, GPU to GPU [window=16]``. Methods with the same text are compared."""

    def cached(self, curve: Curve) -> bool:
        """Whether a cache can hold both sides of its largest copy, so that nothing of it is known
        to have come from memory."""
        return is_cached(self.source, self.destination, curve.measured[-1].bytes, self.caches)

    @property
    def principal(self) -> tuple[Curve, ...]:
        return principal(self.curves)

    @property
    def text(self) -> str:
        if self.source == self.destination:
            return f"within {self.source}"
        ranks = "between ranks, " if self.of_ranks and self.source.kind != "rank" else ""
        return f"{ranks}{self.source} -> {self.destination}{self.messages}"


class PlaceGroup(Value, frozen=True):
    """Equivalent pairs of places."""

    pairs: tuple[PlacePair, ...]

    @property
    def first(self) -> PlacePair:
        """The one that was measured at most sizes."""
        return max(self.pairs, key=lambda pair: sum(len(curve.measured) for curve in pair.curves))

    @property
    def text(self) -> str:
        others = len(self.pairs) - 1
        return f"{self.first.text} and {others} equivalent" if others else self.first.text


def is_cached(source: Place, destination: Place, size: int, caches: int) -> bool:
    """Whether the last caches can hold both sides of a copy: of the CPUs (of ``caches`` bytes)
    within the host, of a GPU within that GPU. A cache beside a link between two places does not
    make it faster."""
    if source.kind == destination.kind == "numa":
        return 2 * size <= caches
    return source == destination and source.kind == "gpu" and 2 * size <= LARGEST_GPU_CACHE


def is_copy(curve: Curve) -> bool:
    """Whether it is one transfer of contiguous bytes; in whatever variant of memory, with whatever
    settings and state of the caches. A load is none."""
    transfer = curve.transfer
    if transfer is None or DECLARED.executor(transfer.path.executor).bystander:
        return False
    return transfer.is_contiguous


def counted_copies(curves: Iterable[Curve]) -> list[Curve]:
    """The copies with the caches as the last execution left them, and others where that alone was
    measured (`waywiser.curves.cache_states`)."""
    copies = [curve for curve in curves if is_copy(curve)]
    counted = counted_curves(curve.workload for curve in copies)
    return [curve for curve in copies if curve.text in counted]


def principal(curves: Iterable[Curve], *, peer_apart: bool = False) -> tuple[Curve, ...]:
    """The principal curve of each path: through plain memory with default settings; if another tool
    had settings of its own throughout, that with the fewest of them. In the order given.

    With ``peer_apart`` that is one curve with peer access and one without, for each node that
    submits them.
    """
    apart = ("peer", "submit") if peer_apart else ()
    by_path = grouped(
        ((str(t.path), *(t.parameters.get(name, "") for name in apart)), curve)
        for curve in counted_copies(curves)
        if (t := curve.first_transfer).path.is_plain
    )
    return tuple(min(found, key=_unusual) for found in by_path.values())


def _unusual(curve: Curve) -> tuple[bool, int, str]:
    return curve.workload.cache != "warm", *_settings(curve)


def _settings(curve: Curve) -> tuple[int, str]:
    return len(curve.first_transfer.parameters), curve.text


def method_text(transfer: Transfer) -> str:
    """What is chosen if the places are given: ``pinned -> device by sm[grid=paper]``."""
    path = transfer.path
    layout = f" as {transfer.layout}" if transfer.layout else ""
    return (
        f"{memory_text(path.source)} -> {memory_text(path.destination)} by "
        f"{executor_text(transfer)}{layout}"
    )


def executor_text(transfer: Transfer) -> str:
    """The executor with its settings: ``sm[grid=paper]``."""
    return f"{transfer.path.executor}{format_settings(transfer.parameters)}"


def memory_text(memory: Memory) -> str:
    """The memory without its place: ``pinned[pages=huge]``."""
    return f"{memory.kind}{format_settings(memory.variant)}"


def place_groups(subject: Subject) -> list[PlaceGroup]:
    """All pairs of places with a method between them, in the order of the profile; no methods that
    move nothing."""
    traits = subject.machine.traits
    pairs = grouped(
        ((path.places, traits.is_between_ranks(path), _messages(subject, curve)), curve)
        for curve in counted_copies(subject.curves)
        if not traits.moves_nothing((path := curve.first_transfer.path).source, path.destination)
    )
    alike = grouped(
        (
            (min(curve.representative for curve in curves), messages),
            PlacePair(*places, tuple(curves), subject.machine.last_caches, of_ranks, messages),
        )
        for (places, of_ranks, messages), curves in pairs.items()
    )
    return [PlaceGroup(tuple(found)) for found in alike.values()]


def _messages(subject: Subject, curve: Curve) -> str:
    """Returns the text for messages between ranks; empty if no ranks were surveyed."""
    if not subject.machine.ranks:
        return ""
    transfer = curve.first_transfer
    is_of_gpu = subject.machine.traits.is_of_gpu
    ends = ["GPU" if is_of_gpu(end) else "host" for end in transfer.path.ends]
    measured = format_settings(measurement(transfer))
    return f", {' to '.join(ends)}{' ' if measured else ''}{measured}"
