"""Methods for lists of pieces as JSON that any program can read: see
``docs/how-to/choose-kv-thresholds.md``.

``docs/kv-offload.schema.json`` is its JSON schema, made from the values here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from waywiser.curves import Subject
from waywiser.exchange.settings.list_methods import (
    DIRECTIONS,
    MULTIPROCESSORS,
    Direction,
    ListCell,
    ListDirection,
    ListMethod,
    list_directions,
)
from waywiser.exchange.settings.origin import OmittedSetting
from waywiser.profile.layout_crossover import is_first_clear
from waywiser.version import __version__
from waywiser.words import Value, whole_number

VERSION = 1
"""Raised whenever an older reader would misunderstand a newer file. A new key does not raise it."""


class KvMachine(Value, frozen=True):
    """The machine that was measured; no host name, no UUID."""

    gpus: tuple[str, ...]
    cpu: str
    driver: str


class KvMethod(Value, frozen=True):
    """One method at one size of pieces and count."""

    call: str
    """What a program calls."""
    executor: str
    settings: dict[str, str]
    gb_per_s: float
    """Bytes of all pieces over the median time from call to completion, 10^9 bytes per second."""
    gb_per_s_low: float | None
    """Low end of the 95 % interval."""
    gb_per_s_high: float | None
    samples: int
    processes: int
    multiprocessors: int | None
    """Multiprocessors that a kernel used; 0 for a copy engine, null if the profile does not say."""
    series: str
    """The series of the profile."""


class KvPoint(Value, frozen=True):
    """A number of pieces of one size, with the methods that were measured, the fastest first."""

    piece_bytes: int
    count: int
    margin: float | None
    """How much longer the second fastest takes, as a share; null if there is no second."""
    clear: bool
    """Whether the interval of the fastest lies below those of all others."""
    methods: tuple[KvMethod, ...]


class KvCrossover(Value, frozen=True):
    """The fastest method at one size of pieces, for lists of about the same number of bytes."""

    bytes: int
    """The power of two nearest to the bytes of the list."""
    piece_bytes: int
    method: str
    next_method: str
    margin: float
    clear: bool
    interpolated: bool
    """Not measured: between the next smaller and the next larger pieces."""


class KvDirection(Value, frozen=True):
    direction: Direction
    source: str
    destination: str
    points: tuple[KvPoint, ...]
    crossovers: tuple[KvCrossover, ...]


class KvOffload(Value, frozen=True, kw_only=True):
    format: Literal["waywiser-kv-offload"] = "waywiser-kv-offload"
    version: int = VERSION
    program: str
    """The version of Waywiser."""
    measured: str
    """When the profile was made, UTC, ISO 8601."""
    machine: KvMachine
    directions: tuple[KvDirection, ...]
    omitted: tuple[OmittedSetting, ...]


def kv_offload(subject: Subject, created: str = "") -> KvOffload:
    """Raises `SettingsError` if the profile has no lists between a GPU and pinned memory."""
    directions = list_directions(subject)
    machine = subject.machine
    return KvOffload(
        program=__version__,
        measured=created,
        machine=KvMachine(
            tuple(gpu.name for gpu in machine.gpus), machine.cpu_model, machine.driver
        ),
        directions=tuple(_direction(subject, each) for each in directions.values()),
        omitted=tuple(
            OmittedSetting(name, "no list in this direction was measured")
            for name in DIRECTIONS
            if name not in directions
        ),
    )


def kv_offload_json(subject: Subject, created: str = "") -> str:
    """The text of the file."""
    made = msgspec.json.encode(kv_offload(subject, created))
    return msgspec.json.format(made, indent=1).decode() + "\n"


def kv_offload_schema() -> str:
    """The JSON schema of the file."""
    schema = msgspec.json.schema(KvOffload)
    return msgspec.json.format(msgspec.json.encode(schema), indent=1).decode() + "\n"


def _direction(subject: Subject, found: ListDirection) -> KvDirection:
    source, _, destination = found.ends.partition(" -> ")
    return KvDirection(
        found.direction,
        source,
        destination,
        tuple(_point(subject, cell) for cell in found.cells),
        tuple(
            KvCrossover(known.bytes, each.low, each.fastest, each.second, each.most,
                        bool(each.is_sure), each.interpolated)
            for known in subject.overview.layout_crossovers
            if known.kind == "list" and not known.scattered and known.ends == found.ends
            for each in known.fastest
        ),
    )  # fmt: skip


def _point(subject: Subject, cell: ListCell) -> KvPoint:
    best, *others = cell.methods
    clear = bool(others) and is_first_clear([method.estimate for method in cell.methods])
    margin = others[0].seconds / best.seconds - 1 if others else None
    methods = tuple(_method(subject, method) for method in cell.methods)
    return KvPoint(cell.piece, cell.count, margin, clear, methods)


def _method(subject: Subject, method: ListMethod) -> KvMethod:
    found, size = method.estimate, method.transfer.bytes
    interval = found.seen_interval
    known = interval is not None and interval.low > 0
    return KvMethod(
        call=method.call,
        executor=method.transfer.path.executor,
        settings=method.transfer.parameters,
        gb_per_s=size / method.seconds / 1e9,
        gb_per_s_low=size / interval.high / 1e9 if known and interval else None,
        gb_per_s_high=size / interval.low / 1e9 if known and interval else None,
        samples=found.count,
        processes=len(found.blocks),
        multiprocessors=_multiprocessors(subject, method),
        series=str(method.transfer),
    )


def _multiprocessors(subject: Subject, method: ListMethod) -> int | None:
    traits = subject.machine.traits
    mine = traits.executor(method.transfer.path.executor)
    reference = traits.executor(traits.reference_executor("gpu"))
    if mine.family == reference.family:
        return 0
    return whole_number(method.transfer.parameters.get(MULTIPROCESSORS, ""))
