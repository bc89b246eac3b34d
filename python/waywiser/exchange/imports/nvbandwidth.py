"""The JSON of nvbandwidth (``-j``, 0.5 to 0.10).

Figures are medians or means without their samples, so each is a summary; the buffer's size is
not stored either: the tool's default is assumed, on which a bandwidth does not depend. Host
memory is page-locked, on the node near the GPU. The meaning of the cases is in
`waywiser.exchange.imports.nvbandwidth_cases`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignGpu,
    ForeignSeries,
    Malformed,
    clipped,
    hosts_of,
    list_of,
    object_of,
    parse_each,
    text_of,
)
from waywiser.exchange.imports.nearby import MOST_GPUS
from waywiser.exchange.imports.nvbandwidth_cases import (
    Case,
    Matrix,
    halves_of,
    measured_of,
    rows_of,
    unit_of,
    why_no_matrix,
)
from waywiser.words import Unsupported, count

_GPU = re.compile(r"^\s*(?P<index>[0-9]{1,4}): (?P<name>.*?)(?: \((?P<pci>[0-9a-fA-F:.]+)\))?"
                  r"(?:: \((?P<host>[^()]*)\))?\s*$")  # fmt: skip


def read(value: Any, where: str) -> ForeignFile:
    """Raises `Malformed` if a key or a cell is not as the format has it."""
    top = object_of(object_of(value, where).get("nvbandwidth"), f"{where}: nvbandwidth")
    found = FoundCases()
    entries = list_of(top.get("testcases", []), f"{where}: nvbandwidth.testcases")
    good, damaged = parse_each(entries, _entry, f"{where}: testcases")
    for each in good:
        found.enter(each)
    return file_of(
        found,
        damaged,
        text_of(top.get("error", ""), f"{where}: nvbandwidth.error"),
        version=text_of(top.get("version", ""), f"{where}: nvbandwidth.version"),
        hostname=text_of(top.get("Hostname", ""), f"{where}: nvbandwidth.Hostname"),
        driver=text_of(top.get("Driver Version", ""), f"{where}: nvbandwidth.Driver Version"),
        cuda_driver=cuda_version(top.get("CUDA Runtime Version")),
        gpus=tuple(_gpus(top, f"{where}: nvbandwidth.GPU Device list")),
        environment={"warning": clipped(str(top["warning"]))} if "warning" in top else {},
    )


class CaseEntry(NamedTuple):
    """One test case as a file reports it."""

    name: str
    matrix: Matrix | None
    """None if it has no figures."""
    reason: str
    """Why it has none."""
    unit: str = ""
    """``GB/s`` or ``ns``, or what else stands there; empty if the file does not say."""
    note: str = ""
    """What its file contradicts."""


class FoundCases:
    """The cases of one run, by name."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}
        self.reasons: dict[str, str] = {}
        self.damaged: dict[str, Unsupported] = {}
        """Parts of cases whose other figures are good."""

    def enter(self, entry: CaseEntry) -> None:
        """Keeps figures over a reason, and the last of several reasons: an error adds a second
        entry to that of a running case."""
        expected = unit_of(entry.name)
        if entry.matrix is None:
            self.reasons[entry.name] = entry.reason
        elif entry.unit not in ("", expected):
            self.reasons[entry.name] = f"its figures are in {entry.unit}, not in {expected}"
        elif entry.name in self.cases:
            again = f"{entry.name}, again"
            self._skip(again, "the file has this case twice: the first is imported")
        else:
            self._skip_zeros(entry.name, entry.matrix)
            matrix = [[cell or None for cell in cells] for cells in entry.matrix]
            self.cases[entry.name] = Case(entry.name, matrix, bool(entry.unit), entry.note)

    def _skip_zeros(self, name: str, matrix: Matrix) -> None:
        """A zero is no figure. From a GPU to itself it is no loss: versions differ in what they
        write there."""
        for row, cells in enumerate(matrix):
            for column, cell in enumerate(cells):
                is_diagonal = len(matrix) > 1 and row % len(cells) == column
                if cell == 0 and not is_diagonal:
                    self._skip(f"{name}, row {row}, column {column}", "its figure is 0")

    def _skip(self, what: str, reason: str) -> None:
        self.damaged[what] = Unsupported(what, reason)


def file_of(
    found: FoundCases,
    damaged: Sequence[Unsupported],
    error: str,
    **stated: Any,
) -> ForeignFile:
    """What the cases of one run mean here, with what else the file states."""
    unsupported = {
        name: Unsupported(name, reason)
        for name, reason in found.reasons.items()
        if name not in found.cases
    } | {each.path: each for each in damaged}
    unsupported |= found.damaged
    gpus = len(stated["gpus"])
    unsupported |= (partial := _of_some_gpus(found.cases, gpus))
    cases = {name: case for name, case in found.cases.items() if name not in partial}
    measured = tuple(_noted(each, cases, gpus) for each in measured_of(cases, unsupported))
    if error and not measured:
        unsupported.setdefault("nvbandwidth", Unsupported("nvbandwidth", f"it failed: {error}"))
    if not stated.get("hostname"):
        stated["hostname"] = next(iter(hosts_of(stated["gpus"])), "")
    return ForeignFile(
        format="nvbandwidth",
        tool="nvbandwidth",
        measured=measured,
        unsupported_paths=tuple(unsupported.values()),
        halves=tuple(halves_of(cases)),
        **stated,
    )


def _of_some_gpus(cases: Mapping[str, Case], gpus: int) -> dict[str, Unsupported]:
    """Cases of fewer GPUs than the file lists: nothing says whose figures they are."""
    found: dict[str, Unsupported] = {}
    for name, case in cases.items():
        columns = len(case.matrix[0]) if case.matrix else 0
        if 0 < columns < gpus and rows_of(name, columns):
            reason = f"it has {columns} columns, and the file lists {count(gpus, 'GPU')}"
            found[name] = Unsupported(name, reason)
    return found


def _noted(each: ForeignSeries, cases: Mapping[str, Case], gpus: int) -> ForeignSeries:
    """The series with a note if its case has more columns than the file lists GPUs: of several
    hosts, the tool lists those of the first one."""
    case = cases.get(each.family)
    if case and case.note:
        each = each.noted(case.note)
    if case and not case.states_unit:
        note = f"the file states no unit: its figures are read as {unit_of(case.name)}"
        each = each.noted(note)
    columns = len(case.matrix[0]) if case and case.matrix else 0
    if not gpus or columns <= gpus:
        return each
    note = (
        f"the case has {columns} columns and the file lists {count(gpus, 'GPU')}: gpu:{gpus} and "
        "above may be of another host"
    )
    return each.noted(note)


def cuda_version(version: Any) -> str:
    """``12080`` as ``12.8``: the driver's, although its key says runtime."""
    if isinstance(version, str) and version.isdigit():
        version = int(version[:7])
    if isinstance(version, int) and 1000 <= version < 10**6:
        return f"{version // 1000}.{version % 1000 // 10}"
    return ""


def _gpus(top: dict[str, Any], where: str) -> Iterator[ForeignGpu]:
    seen: set[int] = set()
    for n, each in enumerate(list_of(top.get("GPU Device list", []), where)):
        text = text_of(each, f"{where}[{n}]")
        match = _GPU.match(text)
        if match is None or int(match["index"]) in seen or int(match["index"]) >= MOST_GPUS:
            raise Malformed(f"{clipped(text, 60)!r} names no GPU", where=f"{where}[{n}]")
        seen.add(int(match["index"]))
        yield ForeignGpu(
            int(match["index"]), match["name"], address_of(match["pci"] or ""), match["host"] or ""
        )


def address_of(pci: str) -> str:
    """``00000000:1b:00`` as the kernel writes it, ``0000:1b:00.0``."""
    parts = pci.lower().split(":")
    if len(parts) != 3 or not all(parts):
        return ""
    return f"{parts[0][-4:]}:{parts[1]}:{parts[2] if '.' in parts[2] else parts[2] + '.0'}"


def _entry(value: Any, where: str) -> CaseEntry:
    entry = object_of(value, where)
    name = text_of(entry.get("name"), f"{where}.name")
    status = text_of(entry.get("status", "Passed"), f"{where}.status")
    key = next((key for key in entry if key.endswith("_matrix")), "")
    if key:
        description = text_of(entry.get(f"{key.removesuffix('_matrix')}_description", ""), where)
        unit = _UNIT.search(description)
        matrix = _matrix(entry[key], f"{where}.{key}")
        if reason := why_no_matrix(name, matrix):
            remedy = "run the benchmark again"
            raise Malformed(reason, where=f"{where}.{key}", remedy=remedy)
        stated = unit[1] if unit else "" if description else unit_of(name)
        return CaseEntry(name, matrix, "", stated)
    said = _said(entry)
    match status.lower():
        case "waived":
            return CaseEntry(name, None, f"nvbandwidth waived it: {said or NO_MEANS}")
        case "error":
            return CaseEntry(name, None, f"it failed: {said or 'it does not give the reason'}")
        case "running":  # an error adds a second entry; without one, it never ended
            return CaseEntry(name, None, "it failed: it did not end")
        case "not found":
            return CaseEntry(name, None, "nvbandwidth does not have it")
        case "passed":
            return CaseEntry(name, None, "it passed and the file has no figure of it")
    raise Malformed(f"{clipped(status, 40)!r} is not a status", where=f"{where}.status")


_UNIT = re.compile(r"\s\(([^()\s]{1,12})\)\s*$")
NO_MEANS = "the machine does not have what it needs"
_REASON_KEYS = ("error", "waived_reason", "waiver_reason", "reason", "message", "msg", "details")


def _said(entry: dict[str, Any]) -> str:
    """The reason that an entry gives under any of the keys of several versions."""
    keys = (*_REASON_KEYS, *(key for key in entry if "reason" in key.lower()))
    return next((clipped(text) for key in keys
                 if isinstance(text := entry.get(key), str) and text.strip()), "")  # fmt: skip


def _matrix(value: Any, where: str) -> Matrix:
    """Raises `Malformed` for rows of different lengths."""
    matrix = [_row(row, f"{where}[{n}]") for n, row in enumerate(list_of(value, where))]
    for n, row in enumerate(matrix):
        if len(row) != len(matrix[0]):
            raise Malformed(
                f"row {n} has {len(row)} figures and row 0 has {len(matrix[0])}",
                where=f"{where}[{n}]",
                remedy="run the benchmark again",
            )
    return matrix


def _row(value: Any, where: str) -> list[float | None]:
    return [cell_of(each, f"{where}[{n}]") for n, each in enumerate(list_of(value, where))]


def cell_of(value: Any, where: str) -> float | None:
    """A figure, or zero; None for one that was not measured. Raises `Malformed`."""
    if value == "N/A":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or isinstance(value, bool):
        raise Malformed(f"{clipped(repr(value), 40)} is neither a figure nor N/A", where=where)
    return number
