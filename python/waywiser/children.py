"""Work that is divided among copies of this process, so that several CPUs do it side by side.

A copy is made by ``fork``, which starts in no time and shares all that was read so far. That is
safe only in a process of a single thread (POSIX allows a copy of others next to nothing), so a
program with threads of its own does its work alone; so does one with a single CPU.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

MOST = 8
"""Beyond so many, putting their work together takes longer than what more of them would save."""


def useful() -> int:
    """How many copies may work side by side here; 1 where this process has to work alone."""
    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError:
        return 1
    return 1 if threads > 1 else min(MOST, len(os.sched_getaffinity(0)))


def side_by_side(jobs: Sequence[Callable[[], bytes]]) -> list[bytes | None]:
    """What each job gives, in order, each done by a copy of this process; None of one whose copy
    failed, or could not be made: whoever does it again finds out why.

    Jobs must not use what can be had only once, as an open database: they open their own.
    """
    children: list[_Child | None] = []
    try:
        for job in jobs:
            children.append(_begin(job))
        return [None if child is None else _result(child) for child in children]
    finally:
        for child in children:
            if child is not None:
                _end(child)


class _Child(NamedTuple):
    process: int
    output: int


def _begin(job: Callable[[], bytes]) -> _Child | None:
    reader, writer = os.pipe()
    try:
        process = os.fork()
    except OSError:  # no more processes, or no memory for one
        os.close(reader)
        os.close(writer)
        return None
    if process:
        os.close(writer)
        return _Child(process, reader)
    try:
        os.close(reader)
        # one that is not complete is nothing: the last byte says that it is
        with open(writer, "wb") as output:
            output.write(job() + b"\1")
    finally:
        os._exit(0)  # nothing of the parent's is ended, flushed or removed, whatever happened


def _result(child: _Child) -> bytes | None:
    with open(child.output, "rb", closefd=False) as output:
        found = output.read()
    return found[:-1] if found.endswith(b"\1") else None


def _end(child: _Child) -> None:
    os.close(child.output)
    with suppress(ProcessLookupError):
        os.kill(child.process, signal.SIGKILL)  # of one that is done already, nothing
    with suppress(ChildProcessError):
        os.waitpid(child.process, 0)
