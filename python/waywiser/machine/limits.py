"""What the system lets this process have: cgroup quotas and resource limits."""

from __future__ import annotations

from pathlib import PurePosixPath

from waywiser.machine.system_files import SystemFiles

_MOUNT = "/sys/fs/cgroup"
NO_LIMIT = 1 << 60
"""Version 1 of cgroups writes "no limit" as a number near 2^63."""


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
    limits = (
        files.integer(f"{folder}/{name}")
        for folder in cgroup_folders(files, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    )
    return min((limit for limit in limits if limit is not None and limit < NO_LIMIT), default=None)


def memlock(files: SystemFiles) -> int | str | None:
    """Bytes that this process may lock in memory, or ``unlimited``; None if unknown."""
    for line in (files.text("/proc/self/limits") or "").splitlines():
        if line.startswith("Max locked memory"):
            soft = line.removeprefix("Max locked memory").split()[0]
            return int(soft) if soft.isdigit() else soft
    return None
