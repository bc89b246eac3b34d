"""The words of the house, as frozen values: the ground floor that every room speaks.

Every value has one canonical text (for people and patterns) and one canonical JSON form (for
files, processes and identities). The grammar of the text:

    place      numa:0 | gpu:1 | file:/data/x
    memory     KIND[VARIANT]@PLACE            pageable[pages=huge]@numa:0
    path       MEMORY -> MEMORY by EXECUTOR   pinned@numa:0 -> device@gpu:0 by copy-engine
    layout     KIND[SETTINGS]                 list[piece=28672] | box[height=64,width=512]
    transfer   PATH[PARAMETERS] of BYTES      ... by copy-engine[api=sync] of 1048576
               PATH[...] as LAYOUT of BYTES   ... by batch as list[piece=28672] of 1048576
    operation  NAME[PARAMETERS]@PLACE         malloc[bytes=65536]@numa:0
    workload   TRANSFER; TRANSFER (CACHE)     ... (flushed)
               TRANSFER; TRANSFER (shared)    ... one buffer for each memory that is named twice

Variants and parameters are written ``[key=value,key=value]`` with keys sorted; all values are
text, and a value that equals its default is not written. A workload's identity is a hash of its
canonical JSON, so that new kinds of workload need no new columns.
"""

from __future__ import annotations

import hashlib
import re
from fractions import Fraction
from typing import Literal

import msgspec

Cache = Literal["warm", "dirtied", "flushed"]
"""State of the CPU caches before each execution: left as they are, source rewritten by the CPU of
its own place, or source and destination written back and evicted."""

TimingMode = Literal["device", "host"]
"""Who times: events of the devices behind a gate, or the host's clock from a common release to
completion. A path has exactly one, so its curve has no seam."""

Stop = Literal["converged", "budget", "limit", "failed", "skipped"]
"""Why sampling of a series stopped: the interval is within the target; the time was spent; the
largest number of samples was reached; an error (see the reason); never started (see the reason)."""


class WaywiserError(Exception):
    """Base of every error this package raises on purpose: one line, with what, where and remedy.

    ``exit_code`` is what the command line exits with when the error reaches the edge.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        line = f"{where}: {what}" if where else what
        super().__init__(f"{line} ({remedy})" if remedy else line)


class WordError(WaywiserError, ValueError):
    """A text that is not in the grammar of the words."""


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all values that cross a room: immutable, and strict when decoded."""


class Place(Value, frozen=True):
    """Where memory is: a NUMA node or GPU by index, or a file by path."""

    kind: Literal["numa", "gpu", "file"]
    index: int = 0
    file: str = ""

    def __str__(self) -> str:
        return f"file:{self.file}" if self.kind == "file" else f"{self.kind}:{self.index}"

    @classmethod
    def parse(cls, text: str) -> Place:
        kind, separator, rest = text.strip().partition(":")
        if separator and kind == "file" and rest:
            return cls("file", file=rest)
        if separator and kind in ("numa", "gpu") and rest.isascii() and rest.isdigit():
            return cls(kind, index=int(rest))  # type: ignore[arg-type]
        raise WordError(
            f"{text!r} is not a place", remedy="write numa:N, gpu:N or file:PATH, as in numa:0"
        )


def format_settings(settings: dict[str, str]) -> str:
    """``{"b": "2", "a": "1"}`` as ``[a=1,b=2]``; nothing for no settings."""
    if not settings:
        return ""
    return "[" + ",".join(f"{key}={settings[key]}" for key in sorted(settings)) + "]"


def parse_settings(text: str) -> dict[str, str]:
    """The inverse of `format_settings`; accepts the text with or without its brackets."""
    body = text.strip().removeprefix("[").removesuffix("]").strip()
    settings: dict[str, str] = {}
    for item in filter(None, (piece.strip() for piece in body.split(","))):
        key, separator, value = (part.strip() for part in item.partition("="))
        if not separator or not key or not value:
            raise WordError(f"{item!r} is not a setting", remedy="write KEY=VALUE")
        if key in settings:
            raise WordError(f"{key!r} is set twice in {text!r}")
        settings[key] = value
    return settings


_WORD_WITH_SETTINGS = re.compile(r"^\s*([a-z][a-z0-9-]*)\s*(\[[^\[\]]*\])?\s*$")


def _parse_word(text: str, what: str) -> tuple[str, dict[str, str]]:
    match = _WORD_WITH_SETTINGS.match(text)
    if match is None:
        raise WordError(f"{text!r} is not {what}", remedy="write WORD or WORD[KEY=VALUE,...]")
    return match[1], parse_settings(match[2] or "")


class Memory(Value, frozen=True, omit_defaults=True):
    """A kind of memory at a place, with the variant of that kind (huge pages, say)."""

    kind: str
    place: Place
    variant: dict[str, str] = {}

    def __str__(self) -> str:
        return f"{self.kind}{format_settings(self.variant)}@{self.place}"

    @classmethod
    def parse(cls, text: str) -> Memory:
        head, separator, place = text.strip().partition("@")
        if not separator:
            raise WordError(
                f"{text!r} is not a memory", remedy="write KIND@PLACE, as in pinned@numa:0"
            )
        kind, variant = _parse_word(head, "a kind of memory")
        return cls(kind, Place.parse(place), variant)


class Path(Value, frozen=True, omit_defaults=True):
    """Source memory to destination memory by an executor: one logical communication path."""

    source: Memory
    destination: Memory
    executor: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} by {self.executor}"

    @property
    def places(self) -> tuple[Place, Place]:
        """Where the source is, and where the destination is."""
        return self.source.place, self.destination.place

    @property
    def opposite(self) -> Path:
        """The path with source and destination exchanged, by the same executor."""
        return Path(self.destination, self.source, self.executor)

    @property
    def is_plain(self) -> bool:
        """Whether both memories are what their kinds are by default, without a variant."""
        return not self.source.variant and not self.destination.variant

    @classmethod
    def parse(cls, text: str) -> Path:
        transfer = Transfer.parse(text)
        if transfer.parameters or transfer.bytes or transfer.layout:
            raise WordError(
                f"{text!r} says more than a path", remedy="leave out [...], 'as' and 'of'"
            )
        return transfer.path


class Layout(Value, frozen=True, omit_defaults=True):
    """How the bytes of a transfer lie where they are not contiguous, on both sides alike.

    ``list``
        pieces of ``piece`` bytes each, scattered over a pool that is half in use, in an order that
        is shuffled and the same everywhere; ``scattered`` is ``both`` (the default), ``source`` or
        ``destination``, and the other side is contiguous.
    ``box``
        of a 3-D array: rows of ``width`` bytes, ``height`` rows to a plane, as many planes as the
        transfer has bytes for; from row to row are ``pitch`` bytes (twice the width), from plane
        to plane ``rows`` rows (twice the height).
    """

    kind: Literal["box", "list"]
    settings: dict[str, str] = {}

    def __str__(self) -> str:
        return f"{self.kind}{format_settings(self.settings)}"

    @property
    def run(self) -> int:
        """Bytes that lie together; 0 where the settings do not say."""
        name = {"list": "piece", "box": "width"}.get(self.kind, "")
        text = self.settings.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0

    @property
    def unit(self) -> int:
        """Bytes that a transfer of this layout is a whole number of."""
        if self.kind != "box":
            return self.run or 1
        height = self.settings.get("height", "")
        return max(self.run, 1) * (int(height) if height.isascii() and height.isdigit() else 1)

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Raises `WordError` for a layout that is none; sizes may be written with units."""
        kind, settings = _parse_word(text, "a layout")
        if kind not in ("box", "list"):
            raise WordError(
                f"{kind!r} is not a layout", remedy="write list[piece=28KiB] or box[...]"
            )
        sized = {
            key: str(parse_bytes(value)) if value[0].isdigit() else value
            for key, value in settings.items()
        }
        return cls(kind, sized)  # type: ignore[arg-type]


class Transfer(Value, frozen=True, omit_defaults=True):
    """A path, how many bytes it moves, the executor's parameters, and how the bytes lie."""

    path: Path
    bytes: int = 0
    parameters: dict[str, str] = {}
    layout: Layout | None = None
    """None where they are contiguous."""

    def __str__(self) -> str:
        size = f" of {self.bytes}" if self.bytes else ""
        return f"{self.way}{size}"

    @property
    def is_sparse(self) -> bool:
        """Whether it touches its range only here and there: how much of it moves then is the
        driver's to decide, and no rate tells it."""
        chunk = self.parameters.get("chunk", "0")
        return int(self.parameters.get("stride", "0")) > int(chunk)

    @property
    def is_contiguous(self) -> bool:
        """Whether it moves every byte of one range."""
        return self.layout is None and not self.is_sparse

    @property
    def way(self) -> str:
        """The text without the size: what is one curve."""
        layout = f" as {self.layout}" if self.layout else ""
        return f"{self.path}{format_settings(self.parameters)}{layout}"

    @classmethod
    def parse(cls, text: str) -> Transfer:
        source, arrow, rest = text.partition("->")
        destination, by, tail = rest.partition(" by ")
        if not arrow or not by:
            raise WordError(
                f"{text.strip()!r} is not a path",
                remedy="write MEMORY -> MEMORY by EXECUTOR, "
                "as in pinned@numa:0 -> device@gpu:0 by copy-engine",
            )
        head, _, size = tail.partition(" of ")
        head, _, layout = head.partition(" as ")
        executor, parameters = _parse_word(head, "an executor")
        path = Path(Memory.parse(source), Memory.parse(destination), executor)
        return cls(
            path,
            parse_bytes(size) if size else 0,
            parameters,
            Layout.parse(layout) if layout else None,
        )


class Operation(Value, frozen=True, omit_defaults=True):
    """Something that costs time but moves no bytes of its own, at a place."""

    name: str
    place: Place
    parameters: dict[str, str] = {}

    def __str__(self) -> str:
        return f"{self.name}{format_settings(self.parameters)}@{self.place}"

    @classmethod
    def parse(cls, text: str) -> Operation:
        """Raises `WordError` for a text that is none."""
        head, separator, place = text.strip().partition("@")
        if not separator:
            raise WordError(
                f"{text!r} is not an operation", remedy="write NAME@PLACE, as in malloc@numa:0"
            )
        name, parameters = _parse_word(head, "an operation")
        return cls(name, Place.parse(place), parameters)


class Quantity(Value, frozen=True):
    """What one execution of a workload does: bytes moved, items processed, and the unit in which
    its performance is told (``GB/s`` for transfers, ``s`` for operations)."""

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
        body = "; ".join(map(str, self.transfers)) if self.transfers else str(self.operation)
        return f"{body}{self.states}"

    @property
    def states(self) -> str:
        """What follows the transfers in the text: the cache's state and whether buffers are shared;
        empty for the usual."""
        cache = "" if self.cache == "warm" else f" ({self.cache})"
        return f"{cache} (shared)" if self.shared else cache

    @property
    def transfer(self) -> Transfer | None:
        """Its only transfer; None for an operation and for several at once."""
        return self.transfers[0] if len(self.transfers) == 1 else None

    @property
    def places(self) -> tuple[Place, ...]:
        """Of the memories that its transfers name, as often as they do; of an operation its own."""
        ends = tuple(place for transfer in self.transfers for place in transfer.path.places)
        return ends if self.operation is None else (*ends, self.operation.place)

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
        return sum(transfer.bytes for transfer in self.transfers)

    @property
    def rated_bytes(self) -> int:
        """Bytes that its rate counts; 0 where it has none: of an operation, and where not every
        byte of a range is touched."""
        return 0 if any(transfer.is_sparse for transfer in self.transfers) else self.bytes

    @property
    def quantity(self) -> Quantity:
        if self.operation is not None or any(transfer.is_sparse for transfer in self.transfers):
            return Quantity(bytes=0, items=max(len(self.transfers), 1), unit="s")
        return Quantity(bytes=self.bytes, items=len(self.transfers), unit="GB/s")

    @property
    def identity(self) -> str:
        """24 hexadecimal digits: the head of SHA-256 over the canonical JSON."""
        return hashlib.sha256(canonical_json(self)).hexdigest()[:24]

    @property
    def curve(self) -> str:
        """The text without sizes: series with equal text lie on one curve."""
        parts = [transfer.way for transfer in self.transfers]
        body = "; ".join(parts) if parts else str(self.operation)
        return f"{body}{self.states}"

    @classmethod
    def parse(cls, text: str) -> Workload:
        cache: Cache = "warm"
        text, shared = _without_suffix(text, "(shared)")
        for state in ("warm", "dirtied", "flushed"):
            text, found = _without_suffix(text, f"({state})")
            cache = state if found else cache
        transfers = tuple(Transfer.parse(piece) for piece in text.split(";"))
        return cls(transfers, cache=cache, shared=shared)


def _without_suffix(text: str, suffix: str) -> tuple[str, bool]:
    stripped = text.rstrip()
    return (stripped.removesuffix(suffix), True) if stripped.endswith(suffix) else (text, False)


def canonical_json(value: object) -> bytes:
    """JSON with sorted keys: equal values give equal bytes.

    Words leave out what equals its default, so that a field that is added later, with a default
    that means what was meant before, leaves the identities of recorded workloads as they are.
    """
    return msgspec.json.encode(msgspec.to_builtins(value), order="sorted")


_UNITS = {"": 1, "b": 1, "k": 2**10, "kib": 2**10, "m": 2**20, "mib": 2**20, "g": 2**30,
          "gib": 2**30, "t": 2**40, "tib": 2**40}  # fmt: skip
_SIZE = re.compile(r"^\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zA-Z]*)\s*$")
_MOST_BYTES = 2**62
"""More than any machine has, and what 64 bits with a sign can still add and double."""


def parse_bytes(text: str) -> int:
    """``4096``, ``64KiB``, ``1.5 GiB`` as a number of bytes; K, M, G alone are binary as well."""
    match = _SIZE.match(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise WordError(f"{text!r} is not a size", remedy="write 4096, 64KiB, 8MiB or 1GiB")
    size = Fraction(match[1]) * unit
    if size.denominator != 1:
        raise WordError(f"{text!r} is not a whole number of bytes")
    if size > _MOST_BYTES:
        raise WordError(f"{text!r} is more than any machine has")
    return int(size)


def format_bytes(size: int) -> str:
    """The shortest exact text in binary units: ``8 B``, ``64 KiB``, ``1 GiB``, ``1536 B``."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"
