"""What is measured: transfers or an operation, and the words for how that went."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from waywiser.words.errors import WordError
from waywiser.words.memory import Place, divided
from waywiser.words.settings import format_settings, parse_word
from waywiser.words.transfer import Transfer
from waywiser.words.value import Value, canonical_json

Cache = Literal["warm", "dirtied", "flushed"]
"""State of the CPU caches before each execution: left as they are, source rewritten by the CPU of
its own place, or source and destination written back and evicted."""

TimingMode = Literal["device", "host"]
"""Who times: events of the devices behind a gate, or the host's clock from a common release to
completion. A path has exactly one, so its curve has no seam."""

Stop = Literal["converged", "budget", "limit", "failed", "skipped"]
"""Why sampling of a series stopped: the interval is within the target; the time was spent; the
largest number of samples was reached; an error (see the reason); never started (see the reason)."""


WorkloadKind = Literal["operation", "copy", "collective", "set"]
"""What a workload is: an operation; one copy, from one memory to one; one transfer over several
memories; transfers that start together."""


class Operation(Value, frozen=True, omit_defaults=True):
    """Something that costs time but moves no bytes of its own, at a place."""

    name: str
    place: Place
    parameters: dict[str, str] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}{format_settings(self.parameters)}@{self.place}"

    @classmethod
    def parse(cls, text: str) -> Operation:
        """Raises `WordError` for a text that is none."""
        head, place = divided(text, "an operation", "NAME@PLACE, as in malloc@numa:0")
        name, parameters = parse_word(head, "an operation")
        found = Place.parse(place)
        if found.is_several and found.kind != "rank":
            raise WordError(f"{text!r} is at several places", remedy="name one: malloc@numa:0")
        return cls(name, found, parameters)


class Quantity(Value, frozen=True):
    """What one execution of a workload does: bytes moved, items processed, and the unit in which
    its performance is given (``GB/s`` for transfers, ``s`` for operations)."""

    bytes: int
    items: int
    unit: str


class Workload(Value, frozen=True, omit_defaults=True):
    """Transfers (or one operation) that start together, with the cache state before each start.

    One transfer is unidirectional, a path and its opposite is bidirectional, more are concurrent.
    """

    transfers: tuple[Transfer, ...] = ()
    operation: Operation | None = None
    cache: Cache = "warm"
    shared: bool = False
    """Transfers that name the same memory on the same side use one buffer, and not one each."""

    def __str__(self) -> str:
        return self.texts[0]

    @property
    def texts(self) -> tuple[str, str]:
        """Its text, and that of its curve, which is the same without sizes."""
        states = self.states
        if not self.transfers:
            text = f"{self.operation}{states}"
            return text, text
        ways = [transfer.way for transfer in self.transfers]
        sized = [f"{way}{t.size_text}" for way, t in zip(ways, self.transfers, strict=True)]
        return f"{'; '.join(sized)}{states}", f"{'; '.join(ways)}{states}"

    @property
    def states(self) -> str:
        """What follows the transfers in the text: the cache's state and whether buffers are shared;
        empty for the usual."""
        cache = "" if self.cache == "warm" else f" ({self.cache})"
        return f"{cache} (shared)" if self.shared else cache

    @property
    def kind(self) -> WorkloadKind:
        """What it is, which a reader asks before it reads more."""
        if self.operation is not None:
            return "operation"
        if len(self.transfers) != 1:
            return "set"
        return "collective" if self.transfers[0].path.is_among_several else "copy"

    @property
    def is_sustained(self) -> bool:
        """Whether each transfer is timed while the others run throughout, and alone in turn: of a
        set with a collective within one process. Shorter ones repeat until the longest is done."""
        if len(self.transfers) < 2:
            return False
        sources = (each.path.source.place for each in self.transfers)
        return any(place.is_several and place.kind != "rank" for place in sources)

    @property
    def is_of_ranks(self) -> bool:
        """Whether one of its places is a rank."""
        return any(place.kind == "rank" for place in self.places)

    @property
    def copies(self) -> tuple[Transfer, ...]:
        """Its transfers, if each is from one memory to one; none of an operation and with a
        collective."""
        return () if any(each.path.is_among_several for each in self.transfers) else self.transfers

    @property
    def transfer(self) -> Transfer | None:
        """Its only transfer, if it is a copy; None otherwise."""
        return self.transfers[0] if self.kind == "copy" else None

    @property
    def size(self) -> int:
        """Bytes of its first transfer, by which its curve is ordered; 0 for an operation."""
        return self.transfers[0].bytes if self.transfers else 0

    @property
    def methods(self) -> frozenset[str]:
        """What makes it: the executors of its transfers, or the name of the operation."""
        if self.operation is not None:
            return frozenset((self.operation.name,))
        return frozenset(transfer.path.executor for transfer in self.transfers)

    @property
    def places(self) -> tuple[Place, ...]:
        """The places of the memories that its transfers name, as often as they do; an operation's
        own. Several are named one by one."""
        ends = tuple(
            single
            for transfer in self.transfers
            for place in transfer.path.places
            for single in place.each
        )
        return ends if self.operation is None else (*ends, *self.operation.place.each)

    @property
    def named_places(self) -> tuple[Place, ...]:
        """The same, and those in the parameters of an operation, as whose memory it reads."""
        if self.operation is None:
            return self.places
        found = list(self.places)
        for value in self.operation.parameters.values():
            try:
                found.append(Place.parse(value))
            except WordError:
                continue
        return tuple(found)

    @property
    def bytes(self) -> int:
        """Bytes of all transfers together; 0 for an operation."""
        return sum([transfer.bytes for transfer in self.transfers])

    @property
    def rated_bytes(self) -> int:
        """Bytes that its rate counts; 0 if it has none: of an operation, where not every byte of a
        range is touched, and where shorter transfers repeat."""
        return self.bytes if self.quantity.unit == "GB/s" else 0

    @property
    def quantity(self) -> Quantity:
        sparse = any(transfer.is_sparse for transfer in self.transfers)
        if self.kind == "operation" or sparse or self.is_sustained:
            return Quantity(bytes=0, items=max(len(self.transfers), 1), unit="s")
        return Quantity(bytes=self.bytes, items=len(self.transfers), unit="GB/s")

    @property
    def identity(self) -> str:
        """24 hexadecimal digits: the head of SHA-256 over the canonical JSON."""
        return identity_of(canonical_json(self))

    @property
    def curve(self) -> str:
        """The text without sizes: series with equal text lie on one curve."""
        return self.texts[1]

    @classmethod
    def parse(cls, text: str) -> Workload:
        cache: Cache = "warm"
        text, shared = _without_suffix(text, "(shared)")
        for state in ("warm", "dirtied", "flushed"):
            text, found = _without_suffix(text, f"({state})")
            cache = state if found else cache
        transfers = tuple(Transfer.parse(piece) for piece in text.split(";"))
        return cls(transfers, cache=cache, shared=shared)


def identity_of(canonical: bytes) -> str:
    """The identity of a workload from its `canonical_json`."""
    return hashlib.sha256(canonical).hexdigest()[:24]


def _without_suffix(text: str, suffix: str) -> tuple[str, bool]:
    stripped = text.rstrip()
    return (stripped.removesuffix(suffix), True) if stripped.endswith(suffix) else (text, False)
