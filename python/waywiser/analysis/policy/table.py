"""The policy file as values, field by field as docs/policy.md specifies it.

A value that this version does not know is ignored; another ``version`` is an error
(`waywiser.analysis.policy.file`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from waywiser.words import Value, json_text

FORMAT = "waywiser-policy"
VERSION = 1

LIMIT_BYTES = 2**20
"""The library reads no larger file."""

Relation = Literal["", "same", "peers", "no-peers"]
"""The relation of two GPUs: one and the same, with peer access, without; empty if not both sides
are GPUs."""


class _Tolerant(Value, frozen=True, forbid_unknown_fields=False):
    """A value of a file that a later program may have written."""


class Fingerprint(_Tolerant, frozen=True):
    """The machine of a policy. It identifies no host: no name, no UUID, no serial number."""

    gpu: str = ""
    gpu_link: str = ""
    """``PCIe 5 x16``."""
    cpu: str = ""
    driver: int = 0
    """The major version."""
    hypervisor: str = ""
    """``none`` is bare metal."""

    def differences(self, other: Fingerprint) -> tuple[str, ...]:
        """The names of the fields that both know and that differ."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in _fields(self))
        return tuple(name for name, own, its in pairs if own and its and own != its)

    def fits(self, other: Fingerprint) -> bool:
        """Whether all that both know is equal."""
        return not self.differences(other)


class MethodCosts(_Tolerant, frozen=True):
    """What a method takes from other work on the machine."""

    threads: int = 0
    """CPUs that move bytes."""
    multiprocessors: int | None = 0
    """None if a kernel, or a copy that the runtime lets them make, uses as many as it gets: surveys
    do not store how many a GPU has."""
    pinned_bytes: int = 0
    """Pinned staging memory."""
    relays: int = 0
    """Other GPUs whose links carry bytes."""
    small_copy: float | None = None
    """How many times as long a small copy on the same link takes meanwhile; None if not
    measured."""
    matrix_product: float | None = None
    """The same of a matrix product on the same GPU."""
    collectives: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """The same of collectives over GPUs, by name (``allreduce``); not set if none was measured."""


def collectives_of(costs: MethodCosts) -> dict[str, float]:
    """How many times as long collectives take beside a method; empty if none was measured."""
    return {} if costs.collectives is msgspec.UNSET else costs.collectives


class NextBest(_Tolerant, frozen=True, omit_defaults=True):
    """The second best method."""

    executor: str
    settings: dict[str, str]
    seconds: float
    margin: float
    """How much longer it takes, as a share; below 0 if it is faster by no more than the noise."""
    by_multiprocessors: bool = False
    """Whether multiprocessors were observed to make such copies of the runtime."""


class PolicyRow(_Tolerant, frozen=True):
    """What to do for copies from ``from_bytes`` on."""

    from_bytes: int
    bytes: int
    """The size that was measured: bytes of the copy, or of each piece of a list."""
    count: int
    threads: int
    """The number of CPUs from which it holds."""
    executor: str
    settings: dict[str, str]
    """All that the library takes, so that other defaults of a later version change nothing."""
    seconds: float
    low: float
    high: float
    next: NextBest | None = None
    costs: MethodCosts = MethodCosts()
    pieces: int = 1
    """The number of pieces that was measured; ``count`` is the smallest that the row is for."""

    @property
    def method(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The executor and its settings, to compare rows by."""
        return self.executor, tuple(sorted(self.settings.items()))


class PolicyClass(_Tolerant, frozen=True, rename={"source": "from", "destination": "to"}):
    """A kind of copy with its rows, by ``count``, ``threads`` and ``from_bytes``."""

    source: str
    destination: str
    relation: Relation = ""
    peers_idle: bool = False
    rows: tuple[PolicyRow, ...] = ()
    host_contiguous: tuple[PolicyRow, ...] = ()
    """The rows of lists that are contiguous in host memory and scattered on a GPU."""

    @property
    def kind(self) -> tuple[str, str, str, bool]:
        return self.source, self.destination, self.relation, self.peers_idle

    @property
    def all_rows(self) -> tuple[PolicyRow, ...]:
        return (*self.rows, *self.host_contiguous)

    def row(
        self, size: int, count: int, threads: int, *, host_contiguous: bool = False
    ) -> PolicyRow | None:
        """The row for a copy; None for the library's defaults. ``size`` is that of each piece."""
        known = self.host_contiguous if host_contiguous else self.rows
        rows = [row for row in known if (row.count > 1) == (count > 1)]
        most = max((row.threads for row in rows if row.threads <= threads), default=0)
        rows = _of_count([row for row in rows if row.threads == most], count)
        rows = [row for row in rows if row.from_bytes <= size]
        return max(rows, key=lambda row: row.from_bytes, default=None)


class Policy(_Tolerant, frozen=True):
    """The policy of a machine."""

    machine: Fingerprint
    classes: tuple[PolicyClass, ...]
    measured: str = ""
    """The day of the newest measurement: ``2026-11-23``."""
    program: str = ""
    """The version of the program that wrote it."""
    format: str = FORMAT
    version: int = VERSION

    def class_of(
        self, source: str, destination: str, relation: str = "", peers_idle: bool = False
    ) -> PolicyClass | None:
        """The class of a kind of copy; None if nothing of it was measured."""
        kind = source, destination, relation, peers_idle
        return next((each for each in self.classes if each.kind == kind), None)

    def to_json(self) -> bytes:
        """The content of a policy file. If it would be too large for the library, it has the rows
        that change the method alone."""
        data = _lines(self)
        return data if len(data) <= LIMIT_BYTES else _lines(_changes(self))

    def __iter__(self) -> Iterator[tuple[PolicyClass, PolicyRow]]:
        return ((each, row) for each in self.classes for row in each.all_rows)


def _of_count(rows: Sequence[PolicyRow], count: int) -> list[PolicyRow]:
    """The rows of one copy; for a list those with the largest count that is not larger than its
    own, or the smallest one."""
    if count <= 1:
        return [row for row in rows if row.count == 1]
    counts = sorted({row.count for row in rows if row.count >= 2})
    chosen = max((each for each in counts if each <= count), default=min(counts, default=0))
    return [row for row in rows if row.count == chosen]


def _fields(value: msgspec.Struct) -> tuple[str, ...]:
    return value.__struct_fields__


def _changes(policy: Policy) -> Policy:
    classes = []
    for each in policy.classes:
        rows, contiguous = _changing(each.rows), _changing(each.host_contiguous)
        classes.append(msgspec.structs.replace(each, rows=rows, host_contiguous=contiguous))
    return msgspec.structs.replace(policy, classes=tuple(classes))


def _changing(rows: Sequence[PolicyRow]) -> tuple[PolicyRow, ...]:
    kept: list[PolicyRow] = []
    for row in rows:
        group = row.count, row.threads, row.method
        last = kept[-1] if kept else None
        if last is None or group != (last.count, last.threads, last.method):
            kept.append(row)
    return tuple(kept)


def _lines(policy: Policy) -> bytes:
    """One line for each row, so that two files can be compared line by line."""
    fields = msgspec.to_builtins(policy)
    classes = fields.pop("classes")
    ordered = {name: fields.pop(name) for name in ("format", "version", "program", "measured")}
    head = {**ordered, **fields}
    parts = [f"  {json_text(name)}: {json_text(value)}" for name, value in head.items()]
    blocks = []
    for each in classes:
        rows = _rows_text("rows", each.pop("rows"))
        if contiguous := each.pop("host_contiguous"):
            rows += f",\n{_rows_text('host_contiguous', contiguous)}"
        own = ",\n".join(f"      {json_text(k)}: {json_text(v)}" for k, v in each.items())
        blocks.append(f"    {{\n{own},\n{rows}\n    }}")
    parts.append('  "classes": [\n' + ",\n".join(blocks) + "\n  ]")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _rows_text(name: str, rows: Sequence[object]) -> str:
    lines = ",\n".join(f"        {json_text(row)}" for row in rows)
    return f'      "{name}": [\n{lines}\n      ]'
