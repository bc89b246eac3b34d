"""The limit of the system that an error has met, with its number and what raises it: open files,
memory, processes and threads.

A limit of files and disks is named where the file is known (`waywiser.profile.write_probe`).
"""

from __future__ import annotations

import errno
import os
import resource
import traceback
from collections.abc import Iterator
from typing import NamedTuple

from waywiser.machine.limits import cgroup_folders
from waywiser.machine.system_files import SystemFiles
from waywiser.words import format_bytes

_NO_PROCESS = ("can't start new thread", os.strerror(errno.EAGAIN))
_NO_FILE = (os.strerror(errno.EMFILE),)
_NO_FILE_OF_ALL = (os.strerror(errno.ENFILE),)
_NO_MEMORY = (
    os.strerror(errno.ENOMEM),
    "cannot allocate memory",
    "std::bad_alloc",
    "MemoryError",
)
"""What libraries and Python say of each limit."""

_CLOSE_BYTES = 64 * 2**20
"""The address space below which memory is what a thread lacks: its stack has 8 MiB, and libraries
take 32 MiB at once."""

_STARTERS = ("subprocess.py", "popen_fork.py", "popen_spawn_posix.py")
"""Files of Python whose EAGAIN means that no process can be started."""

_SYSTEM = SystemFiles()


class MetLimit(NamedTuple):
    """A limit that the system has set, and what raises it."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} ({self.remedy})"


def met_limit(error: BaseException) -> MetLimit | None:
    """The limit that an error has met, or one that it came from; None if it is of another kind."""
    for each in _origins(error):
        if isinstance(each, MemoryError):
            return _memory()
        if isinstance(each, OSError) and (found := _of_number(each)):
            return found
        if isinstance(each, RuntimeError | ImportError) and (found := limit_in(str(each))):
            return found
    return None


def limit_in(text: str) -> MetLimit | None:
    """The limit that a text of a library or of the system names; None if it names none."""
    for said, limit in (
        (_NO_FILE, _files),
        (_NO_FILE_OF_ALL, _files_of_all),
        (_NO_MEMORY, _memory),
        (_NO_PROCESS, _processes),
    ):
        if any(each in text for each in said):
            return limit()
    return None


def how_to_raise(option: str, number: int, *, unit: int = 1, most: str = "unlimited") -> str:
    """What raises a limit of this process: up to its hard limit the user, beyond it another.
    ``unit``: bytes that ``ulimit`` counts in; ``most``: what it takes without a hard limit."""
    soft, hard = resource.getrlimit(number)
    if hard == resource.RLIM_INFINITY:
        return f"raise it, as by ulimit {option} {most}"
    if hard > soft:
        return f"raise it, as by ulimit {option} {hard // unit}, its hard limit"
    return (
        f"its hard limit is the same: start a shell without it, or have root raise it, as in "
        f"/etc/security/limits.conf; ulimit -H{option[1:]} shows it"
    )


def address_space_left() -> int | None:
    """Bytes that this process may still map under ``ulimit -v`` and ``ulimit -d``; None without a
    limit."""
    sizes = (_SYSTEM.text("/proc/self/statm") or "").split()
    page = resource.getpagesize()
    left = []
    for number, field in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        soft, _ = resource.getrlimit(number)
        if soft != resource.RLIM_INFINITY and len(sizes) > field:
            left.append(soft - int(sizes[field]) * page)
    return min(left, default=None)


def _origins(error: BaseException) -> Iterator[BaseException]:
    """The error, and those from which it was raised."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)


def _of_number(error: OSError) -> MetLimit | None:
    if error.errno == errno.EMFILE:
        return _files()
    if error.errno == errno.ENFILE:
        return _files_of_all()
    if error.errno == errno.ENOMEM:
        return _memory()
    if error.errno == errno.EAGAIN and _starts_process(error):
        return _processes()
    return None


def _starts_process(error: OSError) -> bool:
    """Whether it was raised where Python starts one, and not by a full pipe."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return False
    return os.path.basename(frames[-1].filename) in _STARTERS or "fork" in (frames[-1].line or "")


def _files() -> MetLimit:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MetLimit(
        f"too many open files: ulimit -n allows {soft}",
        how_to_raise("-n", resource.RLIMIT_NOFILE, most="1048576"),
    )


def _files_of_all() -> MetLimit:
    most = _SYSTEM.text("/proc/sys/fs/file-max") or "no more"
    return MetLimit(
        f"too many open files on this system: fs.file-max allows {most}",
        "raise it with sysctl, or end programs that have many files open",
    )


def _memory() -> MetLimit:
    for number, option in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        soft, _ = resource.getrlimit(number)
        if soft != resource.RLIM_INFINITY:
            return MetLimit(
                f"memory is used up: ulimit {option} allows {format_bytes(soft >> 10 << 10)}",
                how_to_raise(option, number, unit=1024),
            )
    if _SYSTEM.text("/proc/sys/vm/overcommit_memory") == "2":
        return MetLimit(
            "memory is used up: the system grants no more (vm.overcommit_memory is 2)",
            "end other programs, or raise vm.overcommit_ratio",
        )
    return MetLimit(
        "memory is used up",
        "end other programs, or give the job or the container more memory",
    )


def _processes() -> MetLimit:
    left = address_space_left()
    if left is not None and left < _CLOSE_BYTES:
        return _memory()
    bounds = list(_process_bounds())
    number, where = min(bounds, default=(0, ""))
    bound = f"; {where} allows {number}" if where else ""
    return MetLimit(
        f"a thread or process cannot be started: {os.strerror(errno.EAGAIN)}{bound}",
        "raise the limit of processes: docker --pids-limit, podPidsLimit of Kubernetes, TasksMax "
        "of systemd, ulimit -u",
    )


def _process_bounds() -> Iterator[tuple[int, str]]:
    for folder in cgroup_folders(_SYSTEM, "pids"):
        if (limit := _SYSTEM.integer(f"{folder}/pids.max")) is not None:
            yield limit, "pids.max of the control group"
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        yield soft, "ulimit -u"
    if (most := _SYSTEM.integer("/proc/sys/kernel/threads-max")) is not None:
        yield most, "kernel.threads-max"
