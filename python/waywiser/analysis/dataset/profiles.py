"""The profiles of files and folders as nights, from the data sets that have them, and how a data
set is brought up to date. Many profiles are read in as many processes as there are CPUs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec

from waywiser.analysis.dataset.engines import has_engines, require_engines
from waywiser.analysis.dataset.files import Packed, is_dataset, pack, write_day, write_run
from waywiser.analysis.dataset.rows import read_all_rows, read_rows, run_of, state_of
from waywiser.analysis.dataset.scan import RecordedRun, Scan
from waywiser.analysis.dataset.workers import WorkerProcesses, usable_processes
from waywiser.analysis.history.night import FollowedPath, Night, PathColumns, read_night
from waywiser.profile import NotWritable, ProfileError, profiles_in, why_no_profile
from waywiser.words import Value, grouped

FEW = 64
"""Profiles up to which one process reads them: to start others takes half a second."""

AT_ONCE = 2048
"""Profiles whose rows are in the memory of a process at once."""


class ReadProfile(Value, frozen=True, array_like=True):
    """What one profile says."""

    file: str
    night: Night | None = None
    error: str = ""
    """Why it could not be read."""


class ReadNights(NamedTuple):
    """What is in some profiles and data sets."""

    nights: tuple[Night, ...]
    unreadable: dict[str, str]
    """File -> why it was not read."""
    read: int
    """Profiles that were read now, and not taken from a data set."""
    scans: dict[str, Scan]
    """The data sets, by their folders."""
    runs: dict[str, tuple[Scan, RecordedRun]]
    """The runs that a data set has, by the file of the profile."""
    earlier: set[str]
    """Profiles in folders whose surveys are before the first day that is looked at."""

    @property
    def files(self) -> list[str]:
        """Everything that was read."""
        return [night.file for night in self.nights]

    def without_paths(self) -> ReadNights:
        """Returns the nights without the columns of those that a data set has."""
        nights = tuple(
            msgspec.structs.replace(night, paths=PathColumns())
            if night.file in self.runs
            else night
            for night in self.nights
        )
        return self._replace(nights=nights)


def read_nights(
    files: Sequence[str], scans: Mapping[str, Scan] = {}, first_day: str = ""
) -> ReadNights:
    """The nights of files, and of all profiles and data sets in folders, there from ``first_day``
    on alone; what cannot be read is listed. ``scans`` are data sets that were opened before, by
    their folders. Raises `NoEngine` for a data set without profiles, if nothing can read it."""
    found = ReadNights((), {}, 0, {}, {}, set())
    nights: dict[str, Night] = {}
    missing: list[str] = []
    named = {name for name in files if not os.path.isdir(name)}
    for name in dict.fromkeys(files):
        if name in named:
            missing.append(name)
        else:
            missing += _of_folder(name, scans, first_day, found, nights)
    missing = [file for file in dict.fromkeys(missing) if file not in nights]
    former = {run.run: file for file, (_, run) in found.runs.items()}
    for entry in _entries(missing):
        if (night := entry.night) is None:
            found.unreadable[entry.file] = entry.error
            continue
        if entry.file not in named and night.moment.date().isoformat() < first_day:
            found.earlier.add(entry.file)
            continue
        if old := former.pop(run_of(night.host, night.created, night.file), ""):
            # the profile as it is now supersedes its rows
            nights.pop(old, None), found.runs.pop(old)
        nights[entry.file] = night
    return found._replace(nights=tuple(nights.values()), read=len(missing))


def _of_folder(
    name: str,
    scans: Mapping[str, Scan],
    first_day: str,
    found: ReadNights,
    nights: dict[str, Night],
) -> list[str]:
    """Adds the nights of the data set of a folder, and returns the profiles that it does not
    have."""
    profiles = profiles_in(Path(name))
    has_dataset = is_dataset(Path(name))
    if has_dataset and not profiles:
        require_engines()
    if has_dataset and has_engines():
        known = _of_dataset(scans.get(name) or Scan(name, first_day), found)
        nights |= known
        others = [file for file in profiles if file not in known]
        if others and first_day:  # most are of earlier days, which the data set has too
            found.earlier.update({*others} & {run.profile for run in Scan(name).runs})
        return [file for file in others if file not in found.earlier]
    if not profiles:
        found.unreadable[name] = why_no_profile(name)
    return profiles


def _of_dataset(scan: Scan, found: ReadNights) -> dict[str, Night]:
    """The nights of a data set."""
    nights = scan.nights(scan.runs)
    found.unreadable.update(scan.unreadable)
    found.scans[str(scan.folder)] = scan
    for run, night in zip(scan.runs, nights, strict=True):
        found.runs[night.file] = scan, run
    return {night.file: night for night in nights}


def _entries(files: Sequence[str]) -> Iterator[ReadProfile]:
    """Reads profiles, many of them in several processes."""
    read = {entry.file: entry for entry in _by_workers(_read_entries, files)}
    for file in files:
        yield read[file]


def _by_workers(
    read: Callable[..., list[ReadProfile]], files: Sequence[str], *more: str
) -> Iterator[ReadProfile]:
    """What several processes read of files; one if they are few."""
    processes = usable_processes(len(files) // FEW)
    with WorkerProcesses(processes) as workers:
        parts = [(files[n::processes], *more) for n in range(processes)]
        for own in workers.each(read, parts):
            yield from own


def _read_entries(files: Sequence[str]) -> list[ReadProfile]:
    return [_lean(_entry(file)) for file in files]


def _entry(file: str) -> ReadProfile:
    try:
        return ReadProfile(file, read_night(file))
    except ProfileError as error:
        return ReadProfile(file, error=error.what)


def _lean(entry: ReadProfile) -> ReadProfile:
    """The entry with each of its texts once in memory: thousands have the same."""
    if (night := entry.night) is None:
        return entry
    once = sys.intern
    paths = msgspec.structs.replace(night.paths, paths=_once(night.paths.paths))
    facts = {once(name): once(value) for name, value in night.facts.items()}
    lean = msgspec.structs.replace(night, paths=paths, facts=facts, hardware=once(night.hardware))
    return msgspec.structs.replace(entry, night=lean)


@lru_cache(maxsize=16384)
def _once(paths: tuple[FollowedPath, ...]) -> tuple[FollowedPath, ...]:
    """The first of equal paths."""
    return paths


def require_recordable(dataset: Path) -> None:
    """Makes the folder of a data set if need be, and tries to write to it, before a survey. Raises
    `NoEngine`, `NotWritable`."""
    require_engines()
    try:
        dataset.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=dataset):
            pass
    except OSError as error:
        raise NotWritable(
            f"cannot be written: {error.strerror or error}",
            where=str(dataset),
            remedy="name a folder that is yours and has space",
        ) from error


def record(file: str, dataset: Path) -> Path:
    """Writes the rows of a profile into a data set, and returns their file. Raises `ProfileError`,
    `NoEngine`, `NotWritable`."""
    return write_run(dataset, read_rows(file))


class Exported(NamedTuple):
    """What `export_profiles` did."""

    added: int
    """Profiles whose rows were written."""
    known: int
    """Profiles whose rows were there."""
    unreadable: dict[str, str]
    packed: Packed


def export_profiles(folder: Path, dataset: Path, now: datetime | None = None) -> Exported:
    """Brings the data set of a folder of profiles up to date, and packs past days. What profiles
    that are gone have left in it stays. It can be killed at any moment. Raises `NoEngine`,
    `NotWritable`."""
    profiles = profiles_in(folder)
    missing: list[str] = profiles
    unreadable: dict[str, str] = {}
    if is_dataset(dataset):
        scan = Scan(dataset)
        states = {(run.file, run.file_bytes, run.file_modified) for run in scan.runs}
        missing = [
            file for file in profiles if (os.path.basename(file), *state_of(file)) not in states
        ]
        unreadable |= scan.unreadable
    today = (now or datetime.now(UTC)).date().isoformat()
    failed = {
        entry.file: entry.error for entry in _by_workers(_export, missing, str(dataset), today)
    }
    packed = pack(dataset, now)
    unreadable |= failed | packed.left
    return Exported(len(missing) - len(failed), len(profiles) - len(missing), unreadable, packed)


def _export(files: Sequence[str], folder: str, today: str) -> list[ReadProfile]:
    """Writes the rows of profiles, those of a past day into one file, and returns what cannot be
    read."""
    failed: dict[str, ProfileError] = {}
    dataset = Path(folder)
    for first in range(0, len(files), AT_ONCE):
        read = read_all_rows(files[first : first + AT_ONCE], failed)
        for day, own in grouped((rows.day, rows) for rows in read).items():
            if day < today and len(own) > 1:
                write_day(dataset, day, own)
                continue
            for rows in own:
                write_run(dataset, rows)
    return [ReadProfile(file, error=error.what) for file, error in failed.items()]
