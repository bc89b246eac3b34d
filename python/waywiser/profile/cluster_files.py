"""The files of a cluster's folder: lines of JSON that are appended and synced, and the plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from waywiser.profile.cluster_validation import (
    require_valid_node,
    require_valid_plan,
    require_valid_test,
)
from waywiser.profile.errors import DamagedProfile, MissingProfile, NotAProfile, NotWritable
from waywiser.profile.validation import InvalidRecord
from waywiser.profile.write_probe import OBSTACLES, obstacle_of
from waywiser.words import (
    ClusterNode,
    ClusterPlan,
    FinishedTest,
    open_regular,
    read_regular,
    replaced_file,
    single_line_json,
    why_not_read,
    with_short_quotes,
)

_MOST_PLAN_BYTES = 64 << 20
_MOST_LINE_BYTES = 16 << 20
"""A line of the collective of 100,000 nodes is shorter."""

_READ_BYTES = 1 << 20

_MOST_SKIPPED_KEPT = 100

_IMPOSSIBLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidRecord)

_Line = TypeVar("_Line", ClusterNode, FinishedTest)


def open_to_append(path: Path, stack: ExitStack) -> int:
    """A descriptor that appends to a file, after a line without its end is removed from it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    stack.callback(os.close, descriptor)
    end = os.fstat(descriptor).st_size
    while end:
        start = max(end - _READ_BYTES, 0)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end != os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
        os.fsync(descriptor)
    return descriptor


class SkippedLines:
    """The lines of files that are no results; the others are read."""

    def __init__(self) -> None:
        self.first: list[str] = []
        """The first ones, with file, number and reason: a file may have millions."""
        self.count = 0

    def add(self, where: str, why: str) -> None:
        """Counts a line."""
        self.count += 1
        if len(self.first) < _MOST_SKIPPED_KEPT:
            what = f"this line is skipped, it is no result of a cluster: {why}"
            self.first.append(str(DamagedProfile(what, where=where)))


def append_line(file: int, path: Path, value: ClusterNode | FinishedTest) -> None:
    """Appends a value to an opened file, and syncs it. Raises `NotWritable`."""
    line = memoryview(msgspec.json.encode(value) + b"\n")
    with explained(path):
        size = os.fstat(file).st_size
        try:
            while line:
                line = line[os.write(file, line) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)  # a full disk: no half of a line stays
            raise


def read_plan(file: Path) -> ClusterPlan:
    """Raises `ProfileError`: there is no such file, or it is no plan."""
    path = file.parent
    try:
        content = read_regular(file, _MOST_PLAN_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not path.exists():
            raise MissingProfile("there is no such folder", where=str(path)) from error
        raise NotAProfile(
            f"is no folder of a cluster: it has no {file.name}",
            where=str(path),
            remedy="name the folder that waywiser cluster survey -o made",
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    try:
        plan = msgspec.json.decode(single_line_json(content.decode()), type=ClusterPlan)
        require_valid_plan(plan)
    except _IMPOSSIBLE as error:
        why = with_short_quotes(str(error))
        raise DamagedProfile(f"is no plan of a cluster: {why}", where=str(file)) from error
    return plan


def write_plan(file: Path, plan: ClusterPlan) -> None:
    """Replaces the plan at once. Raises `OSError`."""
    with replaced_file(file) as part:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")


def read_lines(path: Path, kind: type[_Line], skipped: SkippedLines) -> Iterator[_Line]:
    """The values of a file; nothing if there is no such file. A line that is no result is skipped,
    and counted if it is not blank. Raises `ProfileError` for a file that cannot be read, or that
    has lines of which none is a result."""
    decoder = msgspec.json.Decoder(kind)
    first_reason = ""
    is_empty = True
    for number, line in enumerate(_whole_lines(path), 1):
        try:
            if line is None:
                raise InvalidRecord(f"it has more than {_MOST_LINE_BYTES >> 20} MiB")
            if not line.strip():
                continue
            value = decoder.decode(single_line_json(line.decode()))
            _require_valid(value)
        except _IMPOSSIBLE as error:
            why = with_short_quotes(str(error))
            first_reason = first_reason or f"line {number}: {why}"
            skipped.add(f"{path}:{number}", why)
        else:
            is_empty = False
            yield value
    if first_reason and is_empty:
        what = f"no line of this file can be read; {first_reason}"
        raise DamagedProfile(what, where=str(path))


def _require_valid(value: ClusterNode | FinishedTest) -> None:
    """Raises `InvalidRecord`."""
    if isinstance(value, ClusterNode):
        require_valid_node(value)
    else:
        require_valid_test(value)


def _whole_lines(path: Path) -> Iterator[bytes | None]:
    """The lines that have their end; None for one that is too long."""
    try:
        with open_regular(path) as descriptor:
            pieces: list[bytes] = []
            length = 0
            while data := os.read(descriptor, _READ_BYTES):
                *lines, last = data.split(b"\n")
                piece = lines[0] if lines else last
                length += len(piece)
                pieces = [*pieces, piece] if length <= _MOST_LINE_BYTES else []
                if lines:
                    yield b"".join(pieces) if length <= _MOST_LINE_BYTES else None
                    yield from lines[1:]
                    pieces, length = [last], len(last)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> NotAProfile:
    reason = why_not_read(error) if isinstance(error, OSError) else str(error)
    return NotAProfile(reason, where=str(path))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """The system's reasons for not writing there as errors of outputs."""
    try:
        yield
    except OSError as error:
        if error.errno in OBSTACLES:
            obstacle = obstacle_of(error, path)
            raise NotWritable(obstacle.what, where=str(path), remedy=obstacle.remedy) from error
        raise NotWritable(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="name a folder that is yours and has space",
        ) from error
