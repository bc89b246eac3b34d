"""What ranks of MPI need of the system besides CPUs and memory: shared memory and processes.

A rank that meets such a limit ends by SIGBUS, or with an error that does not name it. So it is
looked for before ranks start.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from typing import NamedTuple

from waywiser.machine.limits import cgroup_folders
from waywiser.machine.system_files import SystemFiles
from waywiser.words import count, format_bytes, size_text

SHARED_MEMORY = "/dev/shm"

SHARED_BYTES = 3 << 19
"""The least shared memory of a rank, in bytes: two ranks of MPICH 5.0.2 with UCX end by SIGBUS
with 2 MiB, and work with 3 MiB."""

_SYSTEM = SystemFiles()

RANK_TASKS = 4
"""Processes and threads of a rank at least; the libraries start more."""

LAUNCHER_TASKS = 3
"""Processes that start the ranks."""

SHARED_REMEDY = (
    "make it larger: docker run --shm-size=4g, a volume of Kubernetes at /dev/shm with medium: "
    "Memory, or mount -o remount,size=4g /dev/shm"
)
TASKS_REMEDY = "raise the limit: docker run --pids-limit, podPidsLimit of Kubernetes, ulimit -u"


class RankLimit(NamedTuple):
    """A limit that ranks would meet."""

    kind: str
    """``shared-memory`` or ``processes``."""
    what: str
    evidence: str
    remedy: str


class TasksLeft(NamedTuple):
    """How many processes and threads may be started under a limit."""

    left: int
    limit: int
    where: str


def rank_limits(
    ranks: int, files: SystemFiles = _SYSTEM, *, needs_shared_memory: bool = True
) -> Iterator[RankLimit]:
    """The limits that so many ranks on this machine meet. ``needs_shared_memory``: their library
    has no other way between them (`waywiser.measure.ranks.mpi_library`)."""
    if needs_shared_memory and (found := shared_memory_limit(ranks)):
        yield found
    needed = ranks * RANK_TASKS + LAUNCHER_TASKS
    tightest = min(tasks_left(files), default=None)
    if tightest is not None and tightest.left < needed:
        yield RankLimit(
            "processes",
            f"{count(ranks, 'rank')} of MPI and their launcher need {needed} processes and threads "
            f"at least, and {tightest.left} more may be started (limit {tightest.limit})",
            tightest.where,
            TASKS_REMEDY,
        )


def shared_memory_limit(ranks: int, folder: str = SHARED_MEMORY) -> RankLimit | None:
    """Why so many ranks cannot have shared memory; None if they can, or there is no folder."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    needed = ranks * SHARED_BYTES
    free = status.f_bavail * status.f_frsize
    evidence = (
        f"{folder}: {format_bytes(free)} of {format_bytes(status.f_blocks * status.f_frsize)} free"
    )
    if status.f_flag & os.ST_RDONLY or not os.access(folder, os.W_OK):
        what = f"{folder} cannot be written to, where ranks of MPI have shared memory"
        return RankLimit("shared-memory", what, evidence, "mount it so that it can be written to")
    if free < needed or (status.f_files and status.f_favail < ranks):
        what = (
            f"{folder} has {size_text(free)} free, and the shared memory of "
            f"{count(ranks, 'rank')} of MPI takes {format_bytes(needed)}: ranks end by SIGBUS"
        )
        if free >= needed:
            what = f"{folder} has room for {count(status.f_favail, 'file')} more, too few for ranks"
        return RankLimit("shared-memory", what, evidence, SHARED_REMEDY)
    return None


def tasks_left(files: SystemFiles = _SYSTEM) -> Iterator[TasksLeft]:
    """What is left of each limit of processes and threads: of the control groups, and of the user,
    which does not apply to root."""
    for folder in cgroup_folders(files, "pids"):
        most = files.integer(f"{folder}/pids.max")
        used = files.integer(f"{folder}/pids.current")
        if most is not None and used is not None:
            yield TasksLeft(max(most - used, 0), most, f"{folder}/pids.max")
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0 and files.root == _SYSTEM.root:
        yield TasksLeft(max(soft - _tasks_of_user(), 0), soft, "ulimit -u")


def is_no_task(error: OSError) -> bool:
    """Whether the error is that no process or thread more can be started."""
    return error.errno == errno.EAGAIN


def _tasks_of_user() -> int:
    """The threads of this user's processes."""
    own, found = os.geteuid(), 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == own:
                found += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            continue
    return found
