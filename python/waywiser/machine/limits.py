"""What the system lets this process have: cgroup quotas and resource limits.

A limit counts wherever it is set on the way up, since a container rarely sees its own as the
innermost. Source of the names: the kernel's Documentation/admin-guide/cgroup-v2.rst and
cgroup-v1/memory.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from waywiser.machine.system_files import SystemFiles

_MOUNT = "/sys/fs/cgroup"
_NO_LIMIT = 1 << 60
"""Version 1 of cgroups writes "no limit" as a number near 2^63."""

_SYSTEM = SystemFiles()
_VERSIONS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
_EVENTS = ("memory.events", "memory.oom_control")


def cgroup_folders(files: SystemFiles, controller: str) -> list[str]:
    """The folders whose limits hold for this process: its own cgroup and all above it.

    Versions 1 and 2 of cgroups. In a container the path is often the host's and does not exist
    below the mount, whose top is then the container's own.
    """
    folders: list[str] = []
    for line in (files.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        own = PurePosixPath(path or "/")
        for mount in (
            (f"{_MOUNT}/{controllers}", f"{_MOUNT}/{controller}") if controllers else (_MOUNT,)
        ):
            folders += [f"{mount}/{part.relative_to('/')}" for part in (own, *own.parents)]
    return list(dict.fromkeys(folder.removesuffix("/.") for folder in folders))


def cpu_quota(files: SystemFiles) -> float | None:
    """How many CPUs' worth of time the cgroups allow; None without a limit."""
    quotas = []
    for folder in cgroup_folders(files, "cpu"):
        limit, _, period = (files.text(f"{folder}/cpu.max") or "").partition(" ")
        if limit.isdigit() and period.isdigit():
            quotas.append(int(limit) / int(period))
        quota = files.integer(f"{folder}/cpu.cfs_quota_us")
        each = files.integer(f"{folder}/cpu.cfs_period_us")
        if quota is not None and quota > 0 and each:
            quotas.append(quota / each)
    return min(quotas, default=None)


def memory_limit(files: SystemFiles) -> int | None:
    """Bytes that the cgroups allow; None without a limit."""
    return min((limit for limit, _ in _memory_limits(files)), default=None)


def memlock(files: SystemFiles) -> int | str | None:
    """Bytes that this process may lock in memory, or ``unlimited``; None if unknown."""
    for line in (files.text("/proc/self/limits") or "").splitlines():
        if line.startswith("Max locked memory"):
            soft = line.removeprefix("Max locked memory").split()[0]
            return int(soft) if soft.isdigit() else soft
    return None


def available_bytes(files: SystemFiles = _SYSTEM) -> int | None:
    """Bytes that may still be used under the tightest limit, page cache that can be dropped
    counted as free; None if there is no limit."""
    return min((left for _, left in _memory_limits(files)), default=None)


class MemoryKills(NamedTuple):
    """Counts of what the kernel's out-of-memory killer did by now."""

    in_group: int = 0
    """Processes of this control group that it killed."""
    at_limit: int = 0
    """Times that a control group reached its limit."""
    on_machine: int = 0
    """Processes of the whole machine that it killed."""

    def why(self, files: SystemFiles = _SYSTEM, *, of_group: bool = False) -> str:
        """Why the kernel has killed a process since then; empty if it has killed none.
        ``of_group``: kills of other control groups do not count."""
        now = killed_for_memory(files)
        grown = now.in_group > self.in_group
        if grown and now.at_limit > self.at_limit:
            return "the control group's memory limit was reached"
        if grown or (not of_group and now.on_machine > self.on_machine):
            return (
                "the memory of the machine, or of a NUMA node that buffers are bound to, was full"
            )
        return ""


def killed_for_memory(files: SystemFiles = _SYSTEM) -> MemoryKills:
    """What the kernel has killed for want of memory, as the control groups and the system count."""
    paths = [f"{folder}/{name}" for folder in cgroup_folders(files, "memory") for name in _EVENTS]
    kills = [n for path in paths if (n := _counter(files, path, "oom_kill")) is not None]
    reached = [n for path in paths if (n := _counter(files, path, "oom")) is not None]
    in_group = kills[0] if kills else 0
    # Version 1 counts no reached limits: there, a kill in the group counts as one.
    at_limit = sum(reached) if reached else in_group
    return MemoryKills(in_group, at_limit, _counter(files, "/proc/vmstat", "oom_kill") or 0)


def _memory_limits(files: SystemFiles) -> Iterator[tuple[int, int]]:
    """Each limit that holds for this process, and the bytes that are left of it."""
    for folder in cgroup_folders(files, "memory"):
        for limit_file, used_file, inactive in _VERSIONS:
            limit = files.integer(f"{folder}/{limit_file}")
            if limit is not None and limit < _NO_LIMIT:
                used = files.integer(f"{folder}/{used_file}") or 0
                droppable = _counter(files, f"{folder}/memory.stat", inactive) or 0
                yield limit, max(0, limit - max(0, used - droppable))


def _counter(files: SystemFiles, path: str, name: str) -> int | None:
    match = re.search(rf"^{name} ([0-9]+)$", files.text(path) or "", re.MULTILINE)
    return int(match[1]) if match else None
