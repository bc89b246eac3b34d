"""Which format a file has, by its content, and not by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waywiser.exchange.imports import (
    benchpress,
    google_benchmark,
    gpu_copy,
    nccl,
    nvbandwidth,
    osu,
    transferbench,
)
from waywiser.exchange.imports.errors import ImportFailed, UnknownFormat
from waywiser.exchange.imports.foreign_file import ForeignFile
from waywiser.exchange.imports.reading import parse_json, read_text

FORMATS = {
    "nvbandwidth": "nvbandwidth -j",
    "google-benchmark": "Google Benchmark's JSON, of Comm|Scope and its ancestors",
    "google-benchmark-csv": "Google Benchmark's CSV, of the same tools",
    "osu": "text of the OSU micro-benchmarks",
    "nccl": "nccl-tests -J",
    "benchpress": "text of BenchPress, between the ranks of two nodes",
    "transferbench": "text or CSV of TransferBench",
    "gpu-copy": "text of SuperBench's gpu_copy",
}
"""What can be imported, by the name that ``--format`` takes."""

_JSON: dict[str, Callable[[Any, str], ForeignFile]] = {
    "nvbandwidth": nvbandwidth.read,
    "google-benchmark": google_benchmark.read_json,
    "nccl": nccl.read,
}
_TEXT: dict[str, Callable[[str, str], ForeignFile]] = {
    "google-benchmark-csv": google_benchmark.read_csv,
    "osu": osu.read,
    "benchpress": benchpress.read,
    "transferbench": transferbench.read,
    "gpu-copy": gpu_copy.read,
}

_CSV_HEADER = re.compile(r"^name,iterations,", re.MULTILINE)
_OSU_TITLE = re.compile(r"^[ \t]{0,20}# OSU ", re.MULTILINE)


def require_format(name: str) -> None:
    """Raises `ImportFailed` for a name that is not a format."""
    if name not in FORMATS:
        raise ImportFailed(f"{name!r} is not a format", remedy=f"write {', '.join(FORMATS)}")


def read(path: Path, format: str | None = None) -> ForeignFile:
    """What the file says, in the format that it shows or that is named.

    Raises `EmptyFile`, `Malformed` with line or key, `UnknownFormat`, and `ImportFailed` for a
    file that is too large or cannot be read.
    """
    where = str(path)
    text = read_text(path)
    format = format or _shown(text)
    if format in _TEXT:
        return _TEXT[format](text, where)
    if format is not None:
        return _JSON[format](parse_json(text, where), where)
    if text.lstrip()[:1] not in ("{", "["):
        raise _unknown(where)
    value = parse_json(text, where)
    return _JSON[_json_format(value, where)](value, where)


def _shown(text: str) -> str | None:
    """The format of a text that is not JSON."""
    if text.lstrip()[:1] in ("{", "["):
        return None
    if _CSV_HEADER.search(text):
        return "google-benchmark-csv"
    if _OSU_TITLE.search(text):
        return "osu"
    titles = {
        "benchpress": benchpress.TITLE,
        "transferbench": transferbench.TITLE,
        "gpu-copy": gpu_copy.TITLE,
    }
    return next((name for name, title in titles.items() if title.search(text)), None)


def _json_format(value: Any, where: str) -> str:
    if isinstance(value, dict):
        if "nvbandwidth" in value:
            return "nvbandwidth"
        if "benchmarks" in value:
            return "google-benchmark"
        if "nccl_version" in value or "results" in value:
            return "nccl"
    raise _unknown(where)


def _unknown(where: str) -> UnknownFormat:
    return UnknownFormat(
        "has no format that can be imported", where=where, remedy=f"known: {', '.join(FORMATS)}"
    )
