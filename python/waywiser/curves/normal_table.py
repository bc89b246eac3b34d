"""What machines of others measured: a table of values, each with its source, and their ranges.

``normal_values.csv`` has the values; `read_values` checks its form. A class of machines is a link
(`waywiser.machine.link_class`), a headline path and a size. If at least `LEAST_SOURCES` sources
have one model of GPU at that link, this model has a range of its own. Copies within a GPU and over
NVLink-C2C are compared with those of the same model alone.
"""

from __future__ import annotations

import csv
import io
import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import get_args

import msgspec

from waywiser.curves.headline import Group
from waywiser.curves.regimes import BANDWIDTH_BYTES
from waywiser.machine import pcie
from waywiser.machine.link_class import MEMORY, THROUGH_HOST
from waywiser.stats import Interval
from waywiser.words import (
    NotRegular,
    TooLarge,
    Value,
    WaywiserError,
    format_bytes,
    format_number,
    grouped,
    read_regular,
)

FILE = pathlib.Path(__file__).with_name("normal_values.csv")

COLUMNS = (
    "link", "path", "bytes", "gb_per_s", "gpu", "group", "link_is", "source", "date", "tool",
    "note",
)  # fmt: skip

LEAST_SOURCES = 3
"""Sources without which a range decides nothing: one machine of others may be slow itself."""

C2C = "NVLink-C2C"
"""The link whose bandwidth depends on the product: how many GPUs share a CPU and its memory."""

OURS = "waywiser:"
"""What the sources of this project begin with. They count as one source: these machines are of two
models in one kind of virtual machine."""

SENT = "sent"
"""The source of rows that were sent without a page. They count as one: nothing shows whether
two of them are of one machine."""

LARGE_TEXT = f"{format_bytes(BANDWIDTH_BYTES)} and more"
"""One class of sizes: links are saturated, and most sources do not state the size."""

MOST_ERRORS = 5
"""Errors of a file that are named."""

_LINK = re.compile(
    rf"(?:[2-9]\d* × )?PCIe [1-7] x(?:1|2|4|8|16)(?:{THROUGH_HOST})?"
    rf"|NVLink [1-9] x[1-9]\d*|{C2C}|{MEMORY}"
)
_SOURCE = re.compile(r"https://[^\s/]+/\S+|[\w.-]+/[\w.-]+:\S+|waywiser:docs/results/\S+|sent")
_DATE = re.compile(r"~?20\d\d(?:-[01]\d)?")
_THRESHOLD = re.compile(r"\bthreshold\b", re.IGNORECASE)

_MODEL = re.compile(r"^(?:NVIDIA|AMD|Tesla|GeForce|Instinct|Radeon) ")
"""What drivers of some versions write before the model, and others do not."""


class NormalTableError(WaywiserError):
    """A table of values that is not in the form."""


class NormalValue(Value, frozen=True):
    """One value of one source."""

    link: str
    path: str
    bytes: int
    """The size of each transfer; 0 if the source does not state it: then it is the default of the
    tool, at least 32 MB."""
    gb_per_s: float
    gpu: str
    """The model as the driver names it, without the vendor; empty if unknown."""
    group: str
    """A class may have groups, none of which is a fault: ``near`` and ``far`` GPUs."""
    is_inferred: bool
    """Whether the source does not state the link, but it follows from model and figure."""
    source: str
    date: str
    tool: str
    note: str

    @property
    def size(self) -> str:
        return size_class(self.bytes)

    @property
    def counted_as(self) -> str:
        """Its source as sources are counted."""
        return OURS if self.source.startswith(OURS) else self.source


class NormalRange(Value, frozen=True):
    """What the values of one class reach."""

    link: str
    path: str
    size: str
    gpu: str
    """The model, if the range is of one; else empty."""
    values: tuple[NormalValue, ...]

    @property
    def whole(self) -> Interval:
        """From the lowest to the highest, GB/s."""
        rates = [value.gb_per_s for value in self.values]
        return Interval(min(rates), max(rates))

    @property
    def sources(self) -> tuple[str, ...]:
        """Each once; those of this project are one."""
        return tuple(dict.fromkeys(value.counted_as for value in self.values))

    @property
    def decides(self) -> bool:
        """Whether there are enough sources for a verdict; other products over NVLink-C2C give
        none."""
        return len(self.sources) >= LEAST_SOURCES and (self.link != C2C or bool(self.gpu))

    @property
    def of(self) -> str:
        """``PCIe 4 x16``, ``H200 at PCIe 5 x16``, ``H200``: what it is the range of."""
        if self.link == MEMORY:
            return self.gpu
        return f"{self.gpu} at {self.link}" if self.gpu else self.link

    @property
    def figures(self) -> str:
        """``24.7–28.4``; of groups ``36.7–39 or 52.7–56.6``."""
        by_group = grouped((value.group, value.gb_per_s) for value in self.values)
        spans = sorted((min(rates), max(rates)) for rates in by_group.values())
        return " or ".join(_span(*each) for each in _joined(spans))

    def __str__(self) -> str:
        number = len(self.sources)
        return f"{self.of}: {self.figures} ({number} source{'' if number == 1 else 's'})"


def _span(low: float, high: float) -> str:
    ends = [format_number(float(f"{each:.3g}")) for each in (low, high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _joined(spans: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The spans, those that overlap as one."""
    last: tuple[float, float] | None = None
    for low, high in spans:
        if last is not None and low <= last[1]:
            last = last[0], max(last[1], high)
            continue
        if last is not None:
            yield last
        last = low, high
    if last is not None:
        yield last


def size_class(size: int) -> str:
    """``16 MiB and more``, below it the nearest power of two: ``about 1 MiB``. An unknown size
    (0) is the default of a tool, which is large."""
    if not size or size >= BANDWIDTH_BYTES:
        return LARGE_TEXT
    return f"about {format_bytes(2 ** round(math.log2(size)))}"


def model_name(gpu: str) -> str:
    """The model without the vendor: ``H100 80GB HBM3`` of ``NVIDIA H100 80GB HBM3``."""
    while (shorter := _MODEL.sub("", gpu)) != gpu:
        gpu = shorter
    return gpu


@cache
def shipped_values() -> tuple[NormalValue, ...]:
    """The values of this version."""
    return read_values(FILE.read_text(encoding="utf-8"), str(FILE))


def ranges(values: Iterable[NormalValue]) -> list[NormalRange]:
    """All ranges, in the order of the values: of each link, then of its models."""
    found = []
    for (link, path, size), own in grouped(((v.link, v.path, v.size), v) for v in values).items():
        if link != MEMORY:
            found.append(NormalRange(link, path, size, "", tuple(own)))
        for gpu, of_model in grouped((value.gpu, value) for value in own if value.gpu).items():
            each = NormalRange(link, path, size, gpu, tuple(of_model))
            if link in (MEMORY, C2C) or each.decides:
                found.append(each)
    return found


def range_of_class(
    values: Iterable[NormalValue], link: str, path: str, size: str, gpu: str
) -> NormalRange | None:
    """The range of a model at a link if there is one, else that of the link; None without any.
    ``gpu`` is the name that a driver states."""
    own = [v for v in values if (v.link, v.path, v.size) == (link, path, size)]
    known = {each.gpu: each for each in ranges(own)}
    return known.get(model_name(gpu)) or known.get("")


MOST_BYTES = 4 * 2**20
"""Size of a table of values that is read."""


def read_table(file: str) -> tuple[NormalValue, ...]:
    """The values of a file. Raises `NormalTableError` for one that is no table of values."""
    try:
        text = read_regular(pathlib.Path(file), MOST_BYTES).decode()
    except (OSError, NotRegular, TooLarge) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise NormalTableError(
            f"cannot be read: {why}", where=file, remedy="name a table"
        ) from None
    except UnicodeDecodeError:
        raise NormalTableError("is no text in UTF-8", where=file, remedy="name a table") from None
    return read_values(text, file)


def read_values(text: str, name: str) -> tuple[NormalValue, ...]:
    """Returns the values of a table as CSV. Raises `NormalTableError` with its first errors, each
    with its line; ``name`` is the file."""
    (_, header), *rows = _lines(text, name) or [(1, [])]
    if tuple(header) != COLUMNS:
        raise NormalTableError(
            f"its first line is {','.join(header)[:120]!r}",
            where=name,
            remedy=f"write {','.join(COLUMNS)}",
        )
    values, errors = [], []
    seen: dict[tuple[str, ...], int] = {}
    for line, row in rows:
        found = list(_errors(row))
        if not found and (before := seen.setdefault(tuple(row[:8]), line)) != line:
            found = [f"it repeats line {before}"]
        errors += [f"line {line}: {error}" for error in found]
        if not found:
            values.append(_value(dict(zip(COLUMNS, row, strict=True))))
    if errors:
        more = f"; and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
        raise NormalTableError(
            "; ".join(errors[:MOST_ERRORS]) + more,
            where=name,
            remedy="docs/how-to/compare-with-other-machines.md describes the columns",
        )
    return tuple(values)


def _lines(text: str, name: str) -> list[tuple[int, list[str]]]:
    """The cells of each line that is not empty, with its number. Raises `NormalTableError`."""
    reader = csv.reader(text.splitlines())
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise NormalTableError(
            f"line {reader.line_num}: {error}", where=name, remedy="write a table as CSV"
        ) from None


def values_text(values: Iterable[NormalValue]) -> str:
    """The values as a table that `read_values` reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for value in values:
        writer.writerow(
            {
                **msgspec.structs.asdict(value),
                "bytes": value.bytes or "",
                "gb_per_s": f"{value.gb_per_s:.4g}",
                "link_is": "inferred" if value.is_inferred else "stated",
            }
        )
    return text.getvalue()


def _value(row: Mapping[str, str]) -> NormalValue:
    return NormalValue(
        link=row["link"],
        path=row["path"],
        bytes=int(row["bytes"] or 0),
        gb_per_s=float(row["gb_per_s"]),
        gpu=model_name(row["gpu"]),
        group=row["group"],
        is_inferred=row["link_is"] == "inferred",
        source=row["source"],
        date=row["date"],
        tool=row["tool"],
        note=row["note"],
    )


def _errors(cells: Sequence[str]) -> Iterator[str]:
    """What is wrong with one row."""
    if len(cells) != len(COLUMNS):
        yield f"it has {len(cells)} columns of {len(COLUMNS)}"
        return
    row = dict(zip(COLUMNS, cells, strict=True))
    if any(cell != cell.strip() or not cell.isprintable() for cell in cells):
        yield "a cell has blanks at its ends, or characters that do not print"
    if not _LINK.fullmatch(row["link"]):
        yield f"{row['link']!r} is no link, such as PCIe 5 x16, NVLink 4 x18 or {MEMORY}"
    elif (row["link"] == MEMORY) != (row["path"] == "local copy"):
        yield f"copies within a GPU, and only these, have the link {MEMORY}"
    if row["path"] not in get_args(Group):
        yield f"{row['path']!r} is no headline path, such as H2D or P2P"
    if row["bytes"] and not (row["bytes"].isascii() and row["bytes"].isdigit()):
        yield f"{row['bytes']!r} is no number of bytes"
    if row["link_is"] not in ("stated", "inferred"):
        yield f"link_is is {row['link_is']!r}: write stated or inferred"
    if row["link"] == MEMORY and not row["gpu"]:
        yield "copies within a GPU need its model"
    if not _SOURCE.fullmatch(row["source"]):
        yield f"{row['source']!r} names no page (https://…) and no repository (owner/name:path)"
    if not _DATE.fullmatch(row["date"]):
        yield f"{row['date']!r} is no date, such as 2026, 2026-03 or ~2026"
    if not row["tool"]:
        yield "the tool is missing"
    if _THRESHOLD.search(row["note"]):
        yield "a threshold is no measured value"
    yield from _errors_of_rate(row)


def _errors_of_rate(row: Mapping[str, str]) -> Iterator[str]:
    try:
        rate = float(row["gb_per_s"])
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        yield f"{row['gb_per_s']!r} is no bandwidth in GB/s"
        return
    found = re.search(r"(?:(\d+) × )?PCIe (\d) x(\d+)", row["link"])
    if found is None:
        return
    peak = int(found[1] or 1) * pcie.bytes_per_second(int(found[2]), int(found[3])) / 1e9
    peak *= 2 if "bidirectional" in row["path"] else 1
    if rate > peak:
        yield f"{rate:g} GB/s is more than the {peak:.1f} GB/s that {row['link']} can carry"
