"""Reads a file that may come from anyone: never more than fits. What it says is in Waywiser's
words, before it is a profile; what can be wrong with it has types: a line with file and place.

A size above `LIMIT_BYTES` is an error before a byte is read, and more than `LIMIT_PARTS` before
anything is parsed, so memory stays bounded whatever the file holds. NaN and infinities, which
Google Benchmark writes bare, are read; whether one is allowed where it stands the caller decides
for a number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from waywiser.words import (
    Failure,
    NotRegular,
    Samples,
    TimingMode,
    TooLarge,
    Unsupported,
    Value,
    WaywiserError,
    Workload,
    read_regular,
    why_not_read,
)


class ImportFailed(WaywiserError):
    """A file, or several together, that cannot be imported. ``exit_code`` is 2."""


class EmptyFile(ImportFailed):
    """A file without a single byte of content, as a benchmark that never ran leaves behind."""


class Malformed(ImportFailed):
    """A file of a known format that breaks its rules: where, what was expected."""


class NoTable(Malformed):
    """A text that names a benchmark and has no table of it."""


class UnknownFormat(ImportFailed):
    """A file that is of none of the formats."""


LIMIT_BYTES = 128 * 2**20
"""Size of one file: more than a whole run of Comm|Scope on eight GPUs writes."""

LIMIT_PARTS = 16_000_000
"""Commas, brackets and lines of one file: as many as fit with the text of real results, and few
enough that parsed they take no more than some gigabyte."""

T = TypeVar("T")
P = TypeVar("P")

_DATABASE = b"SQLite format 3\0"
"""How profiles begin, and every other file of SQLite."""

LIMIT_TEXT = 300
"""Characters of a name or message that are kept."""

_REMEDIES: dict[type[OSError], str] = {
    NotRegular: "name result files",
    TooLarge: "import the runs of it one by one",
}


def read_text(path: Path, limit: int = LIMIT_BYTES) -> str:
    """The text of the whole file, without the colours of a terminal.

    Raises `EmptyFile`, and `ImportFailed` if it is not a regular file, cannot be read, is not
    text, or has more than ``limit`` bytes.
    """
    where = str(path)
    try:
        data = read_regular(path, limit)
    except FileNotFoundError as error:
        raise ImportFailed(
            "there is no such file", where=where, remedy="name result files"
        ) from error
    except OSError as error:
        remedy = _REMEDIES.get(type(error), "ask its owner")
        raise ImportFailed(why_not_read(error), where=where, remedy=remedy) from error
    if not data.strip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0"):
        raise EmptyFile("the file is empty", where=where, remedy="run the benchmark again")
    if sum(map(data.count, (b",", b"[", b"{", b"\n"))) > LIMIT_PARTS:
        raise ImportFailed(
            f"has more than {LIMIT_PARTS:,} parts", where=where, remedy="import its runs one by one"
        )
    if data.startswith(_DATABASE):
        raise ImportFailed(
            "is a database", where=where, remedy="a profile needs no import: waywiser show reads it"
        )
    return without_escapes(decoded(data, where))


def parse_json(text: str, where: str) -> Any:
    """The value of a JSON text. Raises `Malformed` with line and column for anything else, for
    keys that an object has twice, and for nesting that nothing sane has."""
    try:
        return json.loads(text, object_pairs_hook=without_duplicates)
    except DuplicateKey as error:
        raise Malformed(f"an object has the key {error.key} twice", where=where) from None
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
            raise Malformed(
                "the file ends in the middle: it is truncated",
                where=f"{where}:{error.lineno}",
                remedy="copy it again, or run the benchmark again",
            ) from error
        what = error.msg[:1].lower() + error.msg[1:]
        place = f"{where}:{error.lineno}:{error.colno}"
        raise Malformed(f"is not JSON: {what}", where=place) from error
    except RecursionError:
        raise Malformed("is nested too deep to be a result", where=where) from None
    except ValueError as error:  # a number of thousands of digits
        raise Malformed(f"is not JSON: {clipped(str(error))}", where=where) from error


class DuplicateKey(Exception):
    """An object has the same key twice."""

    def __init__(self, key: str) -> None:
        self.key = clipped(repr(key), 60)


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of ``pairs``. Raises `DuplicateKey`."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKey(key)
            seen.add(key)
    return found


def clipped(text: str, limit: int = LIMIT_TEXT) -> str:
    """One printable line of at most ``limit`` characters."""
    head = text[: 4 * limit]
    if not head.isprintable():
        head = "".join(c if c.isprintable() else " " for c in head)
    line = " ".join(head.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def object_of(value: Any, where: str) -> dict[str, Any]:
    """Raises `Malformed` for anything but an object."""
    if not isinstance(value, dict):
        raise Malformed(f"{_kind(value)} where an object is expected", where=where)
    return value


def list_of(value: Any, where: str) -> list[Any]:
    """Raises `Malformed` for anything but a list."""
    if not isinstance(value, list):
        raise Malformed(f"{_kind(value)} where a list is expected", where=where)
    return value


def text_of(value: Any, where: str) -> str:
    """A text, clipped to one line. Raises `Malformed` for anything else."""
    if not isinstance(value, str):
        raise Malformed(f"{_kind(value)} where a text is expected", where=where)
    return clipped(value)


def parse_each(
    values: Sequence[Any], parse: Callable[[Any, str], T], where: str
) -> tuple[list[T], list[Unsupported]]:
    """(what ``parse`` makes of each value, the others with what is wrong with them). Raises as
    `parse_good`."""
    places = [(value, f"{where}[{n}]") for n, value in enumerate(values)]
    good, errors = parse_good(places, lambda each: parse(*each))
    key = where.rpartition(": ")[0]
    return good, [
        Unsupported(clipped(error.where.removeprefix(f"{key}: ")), error.what)
        for _, error in errors
    ]


def parse_good(
    parts: Iterable[P], parse: Callable[[P], T]
) -> tuple[list[T], list[tuple[P, Malformed]]]:
    """(what ``parse`` makes of each part, the others with what is wrong with them): one damaged
    part never loses the good ones. Raises the first `Malformed` if no part is good."""
    good: list[T] = []
    errors: list[tuple[P, Malformed]] = []
    for part in parts:
        try:
            good.append(parse(part))
        except Malformed as error:
            errors.append((part, error))
    if errors and not good:
        raise errors[0][1]
    return good, errors


def number_of(value: Any, where: str) -> float:
    """A finite number. Raises `Malformed` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed(f"{_kind(value)} where a number is expected", where=where)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Malformed("a number that is not finite", where=where)
    return number


def plain(known: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The known values of ``keys``, shortened: for provenance; nothing is computed from them."""
    return {key: _plain(known[key]) for key in keys if key in known}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clipped(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if abs(value) < 2**53 else clipped(repr(value))  # False for NaN
    try:
        return clipped(json.dumps(value, default=str))
    except RecursionError:
        return "…"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


_BYTE_ORDER_MARKS = (
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B])")
"""Colours, movements of the cursor and titles of windows."""


def decoded(data: bytes, where: str) -> str:
    """The text of ``data``: UTF-8, or UTF-16 as its first bytes show. Raises `ImportFailed`, with
    the line, for anything else."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "")
    if not encoding:
        encoding = _encoding_by_zeros(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ImportFailed(
            "is not text",
            where=f"{where}:{line}",
            remedy="name the file that the benchmark wrote, in UTF-8 or UTF-16",
        ) from error


def _encoding_by_zeros(data: bytes) -> str:
    """UTF-16 without a byte order mark has a zero in nearly every second byte."""
    head = data[:4096]
    if len(head) >= 4 and len(head) % 2 == 0:
        for encoding, first in (("utf-16-le", 1), ("utf-16-be", 0)):
            every_second, others = head[first::2], head[1 - first :: 2]
            if every_second.count(0) > 0.9 * len(every_second) and not others.count(0):
                return encoding
    return "utf-8"


def without_escapes(text: str) -> str:
    """The same lines without colours, movements of the cursor and titles of windows."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


class ForeignSeries(Value, frozen=True):
    """One set of repetitions of one foreign benchmark that has a counterpart here."""

    name: str
    """The benchmark's own, size included."""
    family: str
    """The name without sizes and places."""
    workload: Workload
    mode: TimingMode
    samples: Samples = Samples()
    failure: Failure | None = None
    """Why there are no samples, as the other tool says."""
    notes: tuple[str, ...] = ()
    """What was assumed or converted, one line each."""
    deviation: float = 0.0
    """Relative standard deviation of repetitions that are not there, as the tool gives it; 0 if
    it does not."""
    settings: tuple[str, ...] | None = None
    """What else its command says that can change what is measured, and that no other word of the
    series names: runs that differ in it are no blocks. None if its command is not known."""

    def noted(self, *notes: str) -> ForeignSeries:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))


class HalfSeries(Value, frozen=True):
    """One direction of copies in both directions, whose other direction is a case of its own."""

    case: str
    other: str
    """The case with the other direction."""
    named_after: str
    """The case of the two that the whole is named after."""
    series: ForeignSeries
    """The whole, with samples of nothing yet."""
    seconds: tuple[float, ...]
    """Those of each transfer; 0 for the ones of the other direction."""


class ForeignGpu(Value, frozen=True):
    """A GPU as a file names it."""

    index: int
    name: str = ""
    pci: str = ""
    """``0000:1b:00.0``; empty if the file does not say."""
    host: str = ""
    """Name of the host that it is in; empty if the file does not say."""


class ForeignFile(Value, frozen=True):
    """All that one file says."""

    format: str
    """A key of `waywiser.exchange.imports.detect.FORMATS`."""
    tool: str
    """What wrote it, if it says so: ``nvbandwidth``, ``Google Benchmark``."""
    version: str = ""
    date: str = ""
    """As written in the file; empty if it has none."""
    started: str = ""
    """The same as ISO 8601, in UTC if the file gives its time zone; empty without a date."""
    hostname: str = ""
    runtime: Literal["", "hip"] = ""
    """The runtime that it called, if its calls are not CUDA's."""
    driver: str = ""
    cuda_driver: str = ""
    gpus: tuple[ForeignGpu, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What else the file says of how it was made, under its own names."""
    measured: tuple[ForeignSeries, ...] = ()
    unsupported_paths: tuple[Unsupported, ...] = ()
    """Benchmarks without a counterpart here, each with the reason."""
    halves: tuple[HalfSeries, ...] = ()
    """Cases with one direction of two, until the files are joined."""
    notes: tuple[str, ...] = ()
    """What was done to the whole text before it was read, one line each."""


def hosts_of(gpus: Iterable[ForeignGpu]) -> list[str]:
    """The hosts of GPUs, each once, in alphabetical order."""
    return sorted({gpu.host for gpu in gpus if gpu.host})


def only_host(gpus: Iterable[ForeignGpu]) -> str:
    """The host that all GPUs are in; empty if they are in several, or none is named."""
    hosts = hosts_of(gpus)
    return hosts[0] if len(hosts) == 1 else ""


ALREADY_IMPORTED = "it makes the same transfers as a case above it, which is imported"


def without_mixed_operations(found: ForeignFile) -> ForeignFile:
    """The same without series whose workload an earlier benchmark of another name has.

    Repetitions of one benchmark are blocks of a series. Two benchmarks are not, even if both have
    the same counterpart here: their median would be a figure that was never measured.
    """
    names: dict[tuple[str, tuple[str, ...] | None], str] = {}
    measured: list[ForeignSeries] = []
    mixed: dict[str, Unsupported] = {}
    for each in found.measured:
        first = names.setdefault((each.workload.identity, each.settings), each.name)
        if first == each.name:
            measured.append(each)
        else:
            mixed.setdefault(each.name, Unsupported(each.name, ALREADY_IMPORTED))
    if not mixed:
        return found
    unsupported = (*found.unsupported_paths, *mixed.values())
    return replace(found, measured=tuple(measured), unsupported_paths=unsupported)
