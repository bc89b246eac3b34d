"""The nights of a folder of profiles that were read already, in one file beside the folder.

The index saves time and is never needed. An entry counts only if its profile has the same size and
the same times of change as when it was read; a profile that changed within seconds of being read is
read again. An index that is lost, damaged, or of another version is made anew. Profiles are read in
as many processes as there are CPUs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from waywiser.analysis.history.night import Night, NightGpu, PathNight, read_night
from waywiser.profile import ProfileError
from waywiser.profile.file_name import profiles_in, why_no_profile
from waywiser.version import __version__
from waywiser.words import Value
from waywiser.words.atomic_write import replaced_file
from waywiser.words.regular_file import open_regular, read_regular

INDEX_SUFFIX = ".history"
"""What the name of an index has after that of its folder."""

MARK = "waywiser history index"

VERSION = f"4 {__version__}"

LARGEST = 2**30
"""Bytes of an index that is read."""

SETTLED_NS = 2 * 10**9
"""Nanoseconds after its last change from which on a profile is remembered: file systems state times
in steps, and a change within a step cannot be seen."""

FEW = 64
"""Profiles up to which one process reads them: to start others takes half a second."""

MOST_PROCESSES = 8

COMMAND = (sys.executable, "-m", "waywiser.analysis.history.entry_process")
"""Reads the entries of the files that it is given: see `print_entries`."""


class _Head(Value, frozen=True):
    """The first line."""

    kind: str
    version: str


class _Entry(Value, frozen=True, array_like=True):
    """A further line: one profile."""

    file: str
    bytes: int
    modified_ns: int
    changed_ns: int
    night: Night | None
    error: str = ""
    """Why it could not be read."""


class ReadNights(Value, frozen=True):
    """What is in some profiles."""

    nights: tuple[Night, ...]
    unreadable: dict[str, str]
    """File -> why it was not read."""
    read: int
    """Profiles that were read now, and not taken from the index."""


def read_nights(files: Sequence[str]) -> ReadNights:
    """The nights of files, and of all profiles in folders; what cannot be read is listed."""
    entries: dict[str, _Entry] = {}
    unreadable: dict[str, str] = {}
    singles: list[str] = []
    read = 0
    for name in dict.fromkeys(files):
        if not os.path.isdir(name):
            singles.append(name)
            continue
        found, number = _read_folder(Path(name))
        read += number
        entries |= found
        if not found:
            unreadable[name] = why_no_profile(name)
    missing = [name for name in singles if name not in entries]
    entries |= {entry.file: entry for entry in _read(missing)}
    unreadable |= {e.file: e.error for e in entries.values() if e.night is None}
    nights = tuple(entry.night for entry in entries.values() if entry.night is not None)
    return ReadNights(nights, unreadable, read + len(missing))


def index_of(folder: Path) -> Path:
    """The index of a folder, beside it."""
    whole = Path(os.path.abspath(folder))
    return whole.with_name(f"{whole.name}{INDEX_SUFFIX}")


def _read_folder(folder: Path) -> tuple[dict[str, _Entry], int]:
    """The entries of all profiles of a folder by file, and how many of them were read now."""
    files = profiles_in(folder)
    index = index_of(folder)
    known = {str(folder / name): entry for name, entry in _known(index).items()}
    fresh = {
        file: _named(entry, file)
        for file in files
        if (entry := known.get(file)) and _is_current(file, entry)
    }
    missing = [file for file in files if file not in fresh]
    read = {entry.file: entry for entry in _read(missing)}
    if missing or known.keys() - fresh.keys():
        _write(index, [fresh.get(file) or read[file] for file in files])
    return {file: fresh.get(file) or read[file] for file in files}, len(missing)


def _named(entry: _Entry, file: str) -> _Entry:
    """The entry with another name of its file: an index has names without their folder."""
    night = entry.night and msgspec.structs.replace(entry.night, file=file)
    return msgspec.structs.replace(entry, file=file, night=night)


def _known(index: Path) -> dict[str, _Entry]:
    """The entries of an index by file; none if there is no index that can be used."""
    try:
        lines = read_regular(index, LARGEST).splitlines()
        head = msgspec.json.decode(lines[0], type=_Head) if lines else None
        if head != _Head(MARK, VERSION):
            return {}
        decode = msgspec.json.Decoder(_Entry).decode
        return {entry.file: _lean(entry) for entry in map(decode, lines[1:])}
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def _write(index: Path, entries: Iterable[_Entry]) -> None:
    """Replaces an index, or makes one; a file that is none stays, and so does what was there if the
    folder cannot be written to."""
    if index.exists() and not _is_index(index):
        return
    encode = msgspec.json.Encoder().encode
    with suppress(OSError), replaced_file(index) as part, part.open("wb") as stream:
        stream.write(encode(_Head(MARK, VERSION)) + b"\n")
        now = time.time_ns()
        for entry in entries:
            if max(entry.modified_ns, entry.changed_ns) + SETTLED_NS < now:
                stream.write(encode(_named(entry, os.path.basename(entry.file))) + b"\n")


def _is_index(path: Path) -> bool:
    try:
        with open_regular(path) as descriptor:
            first = os.read(descriptor, 256).partition(b"\n")[0]
        return not first or MARK.encode() in first
    except OSError:
        return False


def _is_current(file: str, entry: _Entry) -> bool:
    return _state(file) == (entry.bytes, entry.modified_ns, entry.changed_ns)


def _state(file: str) -> tuple[int, int, int]:
    """Size and times of a file; zeros if it cannot be seen."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return 0, 0, 0
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(files: Sequence[str]) -> Iterator[_Entry]:
    """Reads profiles, many of them in several processes."""
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)), len(files) // FEW)
    if processes < 2:
        yield from map(_entry, files)
        return
    parts = [files[n::processes] for n in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        read = [{each.file: each for each in part} for part in pool.map(_read_elsewhere, parts)]
    for number, file in enumerate(files):
        # If a process was killed, its files are read here.
        yield read[number % processes].get(file) or _entry(file)


def _read_elsewhere(files: Sequence[str]) -> list[_Entry]:
    """The entries of files as another process reads them; none if it fails."""
    names = b"\0".join(map(os.fsencode, files))
    try:
        done = subprocess.run(COMMAND, input=names, stdout=subprocess.PIPE, check=True)
        decode = msgspec.msgpack.Decoder(list[_Entry]).decode
        return [_lean(entry) for entry in decode(done.stdout)]
    except (OSError, subprocess.CalledProcessError, msgspec.MsgspecError):
        return []


def print_entries() -> None:
    """Reads names of files from standard input, with a zero byte between two, and writes their
    entries to standard output. A library must not start processes by `multiprocessing`: each would
    run the caller's script again."""
    files = [os.fsdecode(name) for name in sys.stdin.buffer.read().split(b"\0")]
    sys.stdout.buffer.write(msgspec.msgpack.encode([_entry(file) for file in files]))


def _entry(file: str) -> _Entry:
    state = _state(file)  # before it is read: a change meanwhile is seen the next time
    try:
        return _lean(_Entry(file, *state, read_night(file)))
    except ProfileError as error:
        return _Entry(file, *state, None, error.what)


def _lean(entry: _Entry) -> _Entry:
    """The entry with each of its texts once in memory: thousands have the same."""
    if (night := entry.night) is None:
        return entry
    once = sys.intern
    paths = tuple(
        PathNight(
            once(p.curve),
            once(p.path),
            once(p.group),
            p.bytes,
            p.seconds,
            p.processes,
            p.fastest_seconds,
        )
        for p in night.paths
    )
    gpus = tuple(NightGpu(gpu.index, once(gpu.uuid), once(gpu.pci)) for gpu in night.gpus)
    facts = {once(name): once(value) for name, value in night.facts.items()}
    lean = msgspec.structs.replace(
        night, paths=paths, gpus=gpus, facts=facts, hardware=once(night.hardware)
    )
    return msgspec.structs.replace(entry, night=lean)
