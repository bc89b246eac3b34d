"""Which format a file has, by its content, and not by its name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports import (
    benchmark_console,
    benchpress,
    google_benchmark,
    gpu_copy,
    nccl,
    nccl_text,
    nvbandwidth,
    nvbandwidth_command,
    nvbandwidth_text,
    osu,
    rccl_csv,
    transferbench,
)
from waywiser.exchange.imports.command_parts import Read, read_by_commands
from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignSeries,
    ImportFailed,
    Malformed,
    NoTable,
    UnknownFormat,
    clipped,
    hosts_of,
    read_text,
    without_mixed_operations,
)
from waywiser.exchange.imports.json_objects import json_objects
from waywiser.exchange.imports.known_tools import known_tool
from waywiser.exchange.imports.line_prefixes import CapturedText, without_prefixes
from waywiser.exchange.imports.result_titles import TRANSFERBENCH
from waywiser.exchange.imports.run_commands import Titled
from waywiser.exchange.imports.text_runs import TextRun, of_format, runs_at
from waywiser.exchange.imports.visible_gpus import with_settings
from waywiser.words import Unsupported

FORMATS = {
    "nvbandwidth": "nvbandwidth, as it prints it or with -j",
    "google-benchmark": "Google Benchmark's JSON or console text, of Comm|Scope and its ancestors",
    "google-benchmark-csv": "Google Benchmark's CSV, of the same tools",
    "osu": "text of the OSU micro-benchmarks",
    "nccl": "nccl-tests and rccl-tests, as they print it or with -J",
    "rccl-csv": "CSV of rccl-tests (-Z csv -x FILE)",
    "benchpress": "text of BenchPress, between the ranks of two nodes",
    "transferbench": "text or CSV of TransferBench",
    "gpu-copy": "text of SuperBench's gpu_copy",
}
"""What can be imported, by the name that ``--format`` takes."""


class _JsonFormat(NamedTuple):
    keys: tuple[str, ...]
    """An object with one of these at its top is of this format."""
    read: Callable[[Any, str], ForeignFile]


class _TextFormat(NamedTuple):
    shown: re.Pattern[str]
    """What occurs in every text of it, and in no other."""
    read: Callable[[str, str], Sequence[ForeignFile]]
    """Each run in a text; raises `Malformed`."""


def _one_run(read: Callable[[str, str], ForeignFile]) -> Read:
    """A reader of texts whose runs it puts into one file by itself."""
    return lambda text, where: [read(text, where)]


def _by_commands(read: Read, title: re.Pattern[str], format: str) -> Read:
    """A reader of texts whose runs have no title of their own."""
    return lambda text, where: read_by_commands(read, title, format, text, where)


def _transferbench(text: str, where: str) -> Sequence[ForeignFile]:
    """Both forms: with a title of each run, and without."""
    own = _one_run(transferbench.read)
    if TRANSFERBENCH.search(text):
        return own(text, where)
    return read_by_commands(own, transferbench.TITLE, "transferbench", text, where)


_JSON = {
    "nvbandwidth": _JsonFormat(("nvbandwidth",), nvbandwidth.read),
    "google-benchmark": _JsonFormat(("benchmarks",), google_benchmark.read_json),
    "nccl": _JsonFormat(("nccl_version", "results"), nccl.read),
}
_TEXT = {
    "nvbandwidth": _TextFormat(nvbandwidth_text.TITLE, nvbandwidth_text.read),
    "google-benchmark": _TextFormat(
        benchmark_console.TITLE,
        _by_commands(benchmark_console.read, benchmark_console.TITLE, "google-benchmark"),
    ),
    "google-benchmark-csv": _TextFormat(
        google_benchmark.CSV_TITLE,
        _by_commands(google_benchmark.read_csv, google_benchmark.CSV_TITLE, "google-benchmark"),
    ),
    "osu": _TextFormat(osu.TITLE, osu.read),
    "nccl": _TextFormat(nccl_text.TITLE, nccl_text.read),
    "rccl-csv": _TextFormat(rccl_csv.TITLE, _one_run(rccl_csv.read)),
    "benchpress": _TextFormat(
        benchpress.TITLE, _by_commands(benchpress.read, benchpress.TITLE, "benchpress")
    ),
    "transferbench": _TextFormat(transferbench.TITLE, _transferbench),
    "gpu-copy": _TextFormat(
        gpu_copy.TITLE, _by_commands(_one_run(gpu_copy.read), gpu_copy.TITLE, "gpu-copy")
    ),
}


def require_format(name: str) -> None:
    """Raises `ImportFailed` for a name that is not a format."""
    if name not in FORMATS:
        raise ImportFailed(f"{name!r} is not a format", remedy=f"write {', '.join(FORMATS)}")


def read(path: Path, format: str | None = None) -> list[ForeignFile]:
    """What each run in the file says, in the format that it shows or that is named.

    A damaged run is listed among the paths without a counterpart of the first good one. Raises
    `EmptyFile`, `Malformed` with line or key if no run is good, `UnknownFormat`, and
    `ImportFailed` for a file that is too large or cannot be read.
    """
    where = str(path)
    text = read_text(path)
    found: list[ForeignFile] = []
    errors: list[Malformed] = []
    parts = list(without_prefixes(text))
    for captured in parts:
        for reader in _readers(captured.text, where, format, errors):
            try:
                found += (_captured(each, captured) for each in reader())
            except Malformed as error:
                errors.append(error)
    if not found:
        raise _nothing("\n".join(part.text for part in parts), where, errors)
    found = with_hosts(found)
    damaged = tuple(_damaged(error, where) for error in errors)
    unsupported = (*found[0].unsupported_paths, *damaged)
    return [replace(found[0], unsupported_paths=unsupported), *found[1:]]


def with_hosts(found: Sequence[ForeignFile]) -> list[ForeignFile]:
    """The same runs. If they are of several hosts, the host is a setting of each: they
    are not blocks of each other, whatever name the machine is given."""
    hosts = {_hosts(each) for each in found} - {""}
    if len(hosts) < 2:
        return list(found)
    return [_with_setting(each, f"host={host}") if (host := _hosts(each)) else each
            for each in found]  # fmt: skip


def _hosts(found: ForeignFile) -> str:
    """The hosts that a run of one format names; empty for none."""
    hosts = hosts_of(found.gpus) or [found.hostname]
    return f"{'+'.join(hosts)}" if any(hosts) else ""


def _with_setting(found: ForeignFile, setting: str) -> ForeignFile:
    """The file with one more setting of each series."""

    def changed(series: ForeignSeries) -> ForeignSeries:
        return replace(series, settings=tuple(sorted({*(series.settings or ()), setting})))

    return replace(
        found,
        measured=tuple(map(changed, found.measured)),
        halves=tuple(replace(each, series=changed(each.series)) for each in found.halves),
    )


def _captured(found: ForeignFile, captured: CapturedText) -> ForeignFile:
    """What a text says, with what was taken away from it; sources that ran at once are not blocks
    of each other."""
    found = without_mixed_operations(found)
    notes = (*found.notes, *captured.notes)
    if not captured.source:
        return replace(found, notes=notes)
    source = f"source={captured.source}" + (f"@{found.hostname}" if found.hostname else "")
    return _with_setting(replace(found, notes=notes, hostname=""), source)


Reader = Callable[[], Sequence[ForeignFile]]


def _readers(
    text: str, where: str, format: str | None, errors: list[Malformed]
) -> Iterator[Reader]:
    """A reader of everything in the text that shows a format: its JSON objects, then its tables.

    A JSON object that is damaged is added to ``errors``.
    """
    objects = json_objects(text, where)
    known = [
        (line, name, value)
        for line, value in objects.values
        if (name := _json_format(value)) and format in (None, name)
    ]
    above = 0
    titles: dict[str, list[Titled]] = defaultdict(list)
    for line, name, _ in known:
        titles[name].append(Titled(above, line - 1))
        above = line
    runs = {name: iter(runs_at(text, each, of_format(name))) for name, each in titles.items()}
    for line, name, value in known:
        place = f"{where}:{line}" if len(objects.values) > 1 else where
        yield partial(_read_object, name, value, place, next(runs[name]))
    is_json = text.lstrip().startswith("{")
    if known and is_json:
        errors += objects.errors
        return
    shown = [name for name, each in _TEXT.items() if each.shown.search(text)]
    if known or is_json or not shown:
        errors += objects.errors
    named = [format] if format in _TEXT and not (known or errors) else []
    for name in [each for each in shown if format in (None, each)] or named:
        yield partial(_TEXT[name].read, text, where)


def _json_format(value: Mapping[str, Any]) -> str:
    """The format of an object; empty for one of another program."""
    return next((n for n, each in _JSON.items() if any(key in value for key in each.keys)), "")


def _read_object(format: str, value: Any, where: str, run: TextRun) -> list[ForeignFile]:
    add = nvbandwidth_command.with_command if format == "nvbandwidth" else with_settings
    return [add(_JSON[format].read(value, where), run.command, run.said)]


def _damaged(error: Malformed, where: str) -> Unsupported:
    place = error.where.removeprefix(where).lstrip(": ") or "the file"
    return Unsupported(clipped(f"line {place}" if place[0].isdigit() else place), error.what)


def _nothing(text: str, where: str, errors: Sequence[Malformed]) -> ImportFailed:
    """Why nothing was found. A text without a row of figures only mentions a tool."""
    if errors and isinstance(errors[0], NoTable) and not any(map(_has_figures, text.splitlines())):
        remedy = "name the file that the benchmark wrote"
        return UnknownFormat("has no row of figures, and no result", where=where, remedy=remedy)
    return errors[0] if errors else _unknown(text, where)


def _has_figures(line: str) -> bool:
    """Whether it has two numbers, as each row of a table."""
    return sum(_NUMBER.fullmatch(word) is not None for word in line.split()) > 1


_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")


def _unknown(text: str, where: str) -> ImportFailed:
    """Says what the file is, if it is of a program that is known and not read."""
    if tool := known_tool(text):
        return UnknownFormat(tool.said, where=where, remedy=tool.remedy)
    return UnknownFormat(
        "has no format that can be imported", where=where, remedy=f"known: {', '.join(FORMATS)}"
    )
