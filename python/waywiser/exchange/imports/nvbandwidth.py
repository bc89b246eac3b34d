"""The JSON of nvbandwidth (``-j``, 0.5 and later).

Figures are medians or means without their samples, so each is a summary; the buffer's size is
not stored either: the tool's default is assumed, on which a bandwidth does not depend. Host
memory is page-locked, on the node near the GPU. The meaning of the cases is in
`waywiser.exchange.imports.nvbandwidth_cases`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu
from waywiser.exchange.imports.nvbandwidth_cases import (
    MOST_GPUS,
    Case,
    Matrix,
    measured_of,
    rows_of,
)
from waywiser.exchange.imports.reading import clipped, list_of, object_of, text_of
from waywiser.words.records import Unsupported

_GPU = re.compile(r"^\s*(?P<index>[0-9]{1,4}): (?P<name>.*?)(?: \((?P<pci>[0-9a-fA-F:.]+)\))?"
                  r"(?:: \((?P<host>[^()]*)\))?\s*$")  # fmt: skip


def read(value: Any, where: str) -> ForeignFile:
    """Raises `Malformed` if a key or a cell is not as the format has it."""
    top = object_of(object_of(value, where).get("nvbandwidth"), f"{where}: nvbandwidth")
    gpus = tuple(_gpus(top, f"{where}: nvbandwidth.GPU Device list"))
    cases: dict[str, Case] = {}
    unsupported_paths: dict[str, Unsupported] = {}
    failures: dict[str, str] = {}
    entries = list_of(top.get("testcases", []), f"{where}: nvbandwidth.testcases")
    for n, each in enumerate(entries):
        _enter(object_of(each, f"{where}: testcases[{n}]"), f"{where}: testcases[{n}]",
               cases, unsupported_paths, failures)  # fmt: skip
    measured = list(measured_of(cases, unsupported_paths))
    for name, reason in failures.items():
        unsupported_paths.setdefault(name, Unsupported(name, f"it failed: {reason}"))
    said = text_of(top.get("error", ""), f"{where}: nvbandwidth.error")
    if said and not measured:
        unsupported_paths.setdefault(
            "nvbandwidth", Unsupported("nvbandwidth", f"it failed: {said}")
        )
    return ForeignFile(
        format="nvbandwidth",
        tool="nvbandwidth",
        version=text_of(top.get("version", ""), f"{where}: nvbandwidth.version"),
        hostname=next((gpu.host for gpu in gpus if gpu.host), ""),
        driver=text_of(top.get("Driver Version", ""), f"{where}: nvbandwidth.Driver Version"),
        cuda_driver=_cuda(top.get("CUDA Runtime Version")),
        gpus=gpus,
        environment={"warning": clipped(str(top["warning"]))} if "warning" in top else {},
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported_paths.values()),
    )


def _cuda(version: Any) -> str:
    """``12080`` as ``12.8``: the driver's, although its key says runtime."""
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
            int(match["index"]), match["name"], _address(match["pci"] or ""), match["host"] or ""
        )


def _address(pci: str) -> str:
    """``00000000:1b:00`` as the kernel writes it, ``0000:1b:00.0``."""
    parts = pci.lower().split(":")
    if len(parts) != 3 or not all(parts):
        return ""
    return f"{parts[0][-4:]}:{parts[1]}:{parts[2] if '.' in parts[2] else parts[2] + '.0'}"


def _enter(
    entry: dict[str, Any],
    where: str,
    cases: dict[str, Case],
    unsupported_paths: dict[str, Unsupported],
    failures: dict[str, str],
) -> None:
    name = text_of(entry.get("name"), f"{where}.name")
    status = text_of(entry.get("status", "Passed"), f"{where}.status")
    if status == "Passed" or "bandwidth_matrix" in entry:
        cases[name] = Case(
            name, _matrix(name, entry.get("bandwidth_matrix"), f"{where}.bandwidth_matrix")
        )
    elif status == "Waived":
        reason = "nvbandwidth waived it: the machine does not have what it needs"
        unsupported_paths[name] = Unsupported(name, reason)
    elif status in ("Error", "ERROR"):
        failures[name] = text_of(entry.get("error", ""), f"{where}.error") or (
            "it does not give the reason"
        )
    elif status == "Running":  # an error adds a second entry; without one, it never ended
        failures.setdefault(name, "it did not end")
    else:
        raise Malformed(f"{clipped(status, 40)!r} is not a status", where=f"{where}.status")


def _matrix(name: str, value: Any, where: str) -> Matrix:
    """Raises `Malformed` for rows of different lengths, and for more or fewer rows than the case
    has."""
    matrix = [_row(row, f"{where}[{n}]") for n, row in enumerate(list_of(value, where))]
    columns = len(matrix[0]) if matrix else 0
    for n, row in enumerate(matrix):
        if len(row) != columns:
            raise Malformed(
                f"row {n} has {len(row)} figures and row 0 has {columns}",
                where=f"{where}[{n}]",
                remedy="run the benchmark again",
            )
    expected = rows_of(name, columns)
    if matrix and expected and len(matrix) != expected:
        raise Malformed(
            f"the matrix is {len(matrix)} × {columns} (rows × columns), and {clipped(name, 60)} "
            f"has {expected} × {columns}",
            where=where,
            remedy="run the benchmark again",
        )
    return matrix


def _row(value: Any, where: str) -> list[float | None]:
    return [_cell(each, f"{where}[{n}]") for n, each in enumerate(list_of(value, where))]


def _cell(value: Any, where: str) -> float | None:
    if value == "N/A":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or isinstance(value, bool):
        raise Malformed(f"{clipped(repr(value), 40)} is neither a figure nor N/A", where=where)
    return number or None
