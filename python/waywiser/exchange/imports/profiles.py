"""Several result files as one profile.

The n-th file that has a workload is its block n: files are runs of their own, and replicates are
blocks. Where every number came from is kept: files with tool, version and date in the environment
of the run, and of each visit its file and the benchmark's own name in the plan.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import (
    EmptyFile,
    ForeignFile,
    ForeignSeries,
    ImportFailed,
    UnknownFormat,
    clipped,
)
from waywiser.exchange.imports.half_series import joined
from waywiser.exchange.imports.machine import machine_of, require_name
from waywiser.exchange.imports.nearby import placed_local
from waywiser.exchange.imports.plausible import with_warning
from waywiser.exchange.imports.run_labels import with_labels
from waywiser.exchange.imports.topology_check import BY_RANK, CONTRADICTS, UNCHECKED
from waywiser.machine import Machine, load_capture, machine_from
from waywiser.profile.writable import write_profile
from waywiser.words import Unsupported, Value, Visit

EMPTY = "the file is empty: nothing was imported from it"

RUN = ", run "
"""Between the name of a file and the number of its second and later runs."""

MOST_FILES = 100_000

IN_FOLDERS = (".json", ".csv", ".txt", ".log", ".out")
"""Endings of the files that are read where a folder is named."""


class ReadFile(Value, frozen=True):
    """One file that was imported, or left out with a reason."""

    name: str
    """The name without its folder."""
    found: ForeignFile | None
    """None if the file was skipped."""
    modified: str
    """When it was written last: UTC, ISO 8601; empty if not known."""
    skipped: str = ""
    """Why nothing was imported from it."""


class Imported(Value, frozen=True):
    """What came of an import, for people."""

    machine: Machine
    files: tuple[ReadFile, ...]
    visits: int
    failed: int
    """Visits that have no samples, since the other tool failed there."""
    series: int
    unsupported_paths: tuple[Unsupported, ...]
    notes: tuple[tuple[str, int], ...] = ()
    """(what was assumed or converted, for how many series), the most frequent first."""
    topology_notes: tuple[str, ...] = ()
    """What could not be checked of the topology, or contradicts the files."""


def _imported(
    described: Machine,
    files: list[ReadFile],
    blocks: Sequence[tuple[ReadFile, ForeignSeries, int]],
    unsupported_paths: tuple[Unsupported, ...],
) -> Imported:
    """Counts what was written."""
    identities = {measured.workload.identity for _, measured, _ in blocks}
    failed = sum(measured.failure is not None for _, measured, _ in blocks)
    return Imported(
        described,
        tuple(files),
        len(blocks),
        failed,
        len(identities),
        unsupported_paths,
        _notes(blocks),
        tuple(
            note for note in described.notes if note.startswith((UNCHECKED, BY_RANK, CONTRADICTS))
        ),
    )


def import_files(
    paths: Sequence[Path],
    output: Path,
    *,
    format: str | None = None,
    machine: str | None = None,
    topology: Path | None = None,
    topology_anyway: bool = False,
    command: Sequence[str] = (),
) -> Imported:
    """Reads every file, a folder's with it, and writes the profile ``output`` whole.

    Some files are skipped and listed with the reason: an empty file among others, a file with the
    same results as another, and a file of a folder that cannot be read or is of no known format.
    Raises `ImportFailed` for anything that is wrong with a file of ``paths`` or with the name
    ``machine``, for files without one result that has a counterpart here, for files of several
    machines, and for a ``topology`` that contradicts them without ``topology_anyway``;
    `ExistingFile`, `NotWritable` of the output. Then no profile is left.
    """
    if format is not None:
        detect.require_format(format)
    if machine is not None:
        require_name(machine)
    files = _read_all(paths, format, topology)
    found = [each.found for each in files if each.found]
    described = machine_of(found, machine, topology, topology_anyway)
    unsupported_paths = tuple(_unsupported_paths(files))
    blocks = list(_blocks(files))
    write_profile(
        output,
        described,
        {"imported": [_provenance(each) for each in files]},
        (_visit(each, measured, block) for each, measured, block in blocks),
        plan_json=msgspec.json.encode(_plan(blocks)),
        unsupported_paths=unsupported_paths,
        command=command,
    )
    return _imported(described, files, blocks, unsupported_paths)


def _notes(
    blocks: Sequence[tuple[ReadFile, ForeignSeries, int]],
) -> tuple[tuple[str, int], ...]:
    """Each note, and of how many series it is; the most frequent first."""
    noted = {
        (note, each.workload.identity)
        for file, each, _ in blocks
        for note in (*each.notes, *(file.found.notes if file.found else ()))
    }
    return tuple(Counter(note for note, _ in sorted(noted)).most_common())


def _read_all(paths: Sequence[Path], format: str | None, topology: Path | None) -> list[ReadFile]:
    """All files, with the GPUs of the ``topology`` if there is one. Raises as `import_files`."""
    named = set(paths)
    files = _each_once([_read(path, format, path in named) for path in files_of(paths)])
    files = _with_found(files, detect.with_hosts([each.found for each in files if each.found]))
    files = _with_found(files, joined([each.found for each in files if each.found]))
    _require_results(files)
    if topology is not None:
        known = machine_from(load_capture(topology))
        files = [_local(each, known) for each in files]
    return _with_found(files, with_labels([each.found for each in files if each.found]))


def _with_found(files: Sequence[ReadFile], found: Sequence[ForeignFile]) -> list[ReadFile]:
    """The files with what is found in those that were read, in their order."""
    each_found = iter(found)
    return [replace(each, found=next(each_found)) if each.found else each for each in files]


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files named, and of a folder those that may be results, by name.

    Raises `ImportFailed` for nothing to read, and for more than `MOST_FILES`.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = _results_in(path)
            if not inside:
                raise ImportFailed(
                    f"has no file that ends in {', '.join(IN_FOLDERS)}",
                    where=str(path),
                    remedy="name the files",
                )
            files += inside
        else:
            files.append(path)
    if not files or len(files) > MOST_FILES:
        raise ImportFailed(f"{len(files)} files", remedy=f"name 1 to {MOST_FILES:,}")
    return files


def _results_in(folder: Path) -> list[Path]:
    """Raises `ImportFailed` if the folder cannot be read."""
    try:
        return sorted(
            each
            for each in folder.iterdir()
            if each.suffix.lower() in IN_FOLDERS and not each.name.startswith(".")
        )
    except OSError as error:
        raise ImportFailed(
            f"cannot be read: {error.strerror or error}", where=str(folder), remedy="ask its owner"
        ) from error


def _read(path: Path, format: str | None, named: bool) -> list[ReadFile]:
    """Each run of a file. Raises `ImportFailed` for a bad file that is ``named``; one of a folder
    is skipped with the reason."""
    name, modified = clipped(path.name), _modified(path)
    try:
        runs = detect.read(path, format)
    except EmptyFile:
        return [ReadFile(name, None, modified, EMPTY)]
    except ImportFailed as error:
        if named:
            raise
        return [ReadFile(name, None, modified, _reason(error, path))]
    return [ReadFile(name if n == 1 else f"{name}{RUN}{n}", found, modified)
            for n, found in enumerate(runs, 1)]  # fmt: skip


def _reason(error: ImportFailed, path: Path) -> str:
    """Why a file of a folder is skipped, with the place in the file if the error has one."""
    if isinstance(error, UnknownFormat):
        return f"a file of the folder: {error.what}"
    place = error.where.removeprefix(str(path)).lstrip(": ")
    if not place:
        return error.what
    return f"{error.what}, at {'line ' if place[0].isdigit() else ''}{place}"


def _modified(path: Path) -> str:
    """When the file was written last; empty if its file system does not say."""
    try:
        modified = path.stat().st_mtime
    except OSError:
        return ""
    return datetime.fromtimestamp(modified, UTC).isoformat(timespec="seconds")


def _each_once(files: Sequence[Sequence[ReadFile]]) -> list[ReadFile]:
    """The runs of all files. A file that was copied, or named twice, is no second run: its blocks
    would agree with themselves. Runs of one file may agree to the digit, and files without a
    result may have other figures."""
    seen: dict[bytes, str] = {}
    kept: list[ReadFile] = []
    for runs in files:
        found = [run.found for run in runs if run.found and run.found.measured]
        digest = hashlib.sha256(msgspec.json.encode(found)).digest()
        if found and digest in seen:
            skipped = f"it has the same content as {seen[digest]}"
            kept.append(replace(runs[0], found=None, skipped=skipped))
        else:
            seen.setdefault(digest, runs[0].name)
            kept += runs
    return kept


def _local(file: ReadFile, machine: Machine) -> ReadFile:
    if file.found is None:
        return file
    return replace(file, found=placed_local(file.found, machine))


def _require_results(files: Sequence[ReadFile]) -> None:
    """Raises `ImportFailed`, with the reason of each file, if none has a result to import."""
    if any(each.found and each.found.measured for each in files):
        return
    reasons = {each.name: _why_nothing(each) for each in files}
    first, *others = reasons
    if not others:
        remedy = "" if files[0].found else "name result files"
        raise ImportFailed(reasons[first], where=first, remedy=remedy)
    listed = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:MOST_NAMED])
    more = f"; and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    raise ImportFailed(
        clipped(f"none of {len(reasons)} files has a result to import: {listed}{more}", 900),
        remedy="name result files",
    )


def _why_nothing(file: ReadFile) -> str:
    if file.found is None:
        return file.skipped
    reasons = [each.reason for each in file.found.unsupported_paths]
    if not reasons:
        return "it has no result"
    return f"nothing in it is imported: {reasons[0]}"


MOST_NAMED = 8
"""Files whose reasons an error gives."""


def _unsupported_paths(files: Sequence[ReadFile]) -> Iterator[Unsupported]:
    """Each path once; those of a file without any result beside others have its name."""
    seen: dict[str, Unsupported] = {}
    for each in files:
        if each.found is None:
            yield Unsupported(each.name, each.skipped)
            continue
        is_lost = len(files) > 1 and not each.found.measured
        for unsupported in each.found.unsupported_paths:
            path = f"{each.name}: {unsupported.path}" if is_lost else unsupported.path
            seen.setdefault(path, replace(unsupported, path=path))
    yield from seen.values()


def _blocks(files: Sequence[ReadFile]) -> Iterator[tuple[ReadFile, ForeignSeries, int]]:
    """Each set of repetitions with its number among those of the same workload."""
    count: dict[str, int] = {}
    for each in files:
        for measured in map(with_warning, each.found.measured if each.found else ()):
            identity = measured.workload.identity
            block = count.get(identity, 0)
            count[identity] = block + 1
            yield each, measured, block


def _visit(file: ReadFile, measured: ForeignSeries, block: int) -> Visit:
    found, samples = file.found, measured.samples
    assert found is not None
    batches = samples.repetitions or (1,) * len(samples)
    sampling = sum(span * count for span, count in zip(samples.span, batches, strict=True))
    origin = f"imported from {measured.family} of {found.tool} {found.version}".rstrip()
    return Visit(
        workload=measured.workload,
        block=block,
        stop="failed" if measured.failure else "limit",
        started=found.started or file.modified,
        mode=measured.mode,
        samples=samples,
        failure=measured.failure,
        notes=(origin, *measured.notes),
        worker=1,
        sampling_seconds=sampling,
        elapsed_seconds=sampling,
    )


def _provenance(file: ReadFile) -> dict[str, Any]:
    known: dict[str, Any] = {"file": file.name, "modified": file.modified}
    if file.found is None:
        return known | {"left_out": file.skipped}
    found = file.found
    stated = {
        "format": found.format,
        "tool": found.tool,
        "version": found.version,
        "date": found.date,
        "hostname": found.hostname,
        "driver": found.driver,
        "environment": found.environment,
    }
    return known | {key: value for key, value in stated.items() if value}


def _plan(blocks: Sequence[tuple[ReadFile, ForeignSeries, int]]) -> dict[str, Any]:
    """Per series, in block order: which file, what the benchmark is called there, and how its
    repetitions scatter, where they are not there themselves."""
    series: dict[str, list[dict[str, str | float]]] = {}
    for file, measured, _ in blocks:
        origin: dict[str, str | float] = {"file": file.name, "name": measured.name}
        if measured.deviation:
            origin["deviation"] = measured.deviation
        series.setdefault(measured.workload.identity, []).append(origin)
    return {"imported": series}
