"""What the control group that this process lives in leaves of memory, and what it has killed.

Both hierarchies are read: the unified one (v2) and the memory controller's own (v1). A limit
counts wherever it is set on the way up, since a container rarely sees its own as the innermost.
Source of the names: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from waywiser.machine.limits import NO_LIMIT, cgroup_folders
from waywiser.machine.system_files import SystemFiles

_SYSTEM = SystemFiles()
_VERSIONS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
_EVENTS = ("memory.events", "memory.oom_control")


def available_bytes(files: SystemFiles = _SYSTEM) -> int | None:
    """Bytes that may still be used under the tightest limit, page cache that can be dropped
    counted as free; None if there is no limit."""
    return min(_room(files), default=None)


def killed_for_memory(files: SystemFiles = _SYSTEM) -> int:
    """How many processes of this control group the kernel has killed for want of memory."""
    paths = (f"{folder}/{name}" for folder in cgroup_folders(files, "memory") for name in _EVENTS)
    counts = (_counter(files, path, "oom_kill") for path in paths)
    return next((count for count in counts if count is not None), 0)


def _room(files: SystemFiles) -> Iterator[int]:
    for folder in cgroup_folders(files, "memory"):
        for limit_file, used_file, inactive in _VERSIONS:
            limit = files.integer(f"{folder}/{limit_file}")
            if limit is not None and limit < NO_LIMIT:
                used = files.integer(f"{folder}/{used_file}") or 0
                droppable = _counter(files, f"{folder}/memory.stat", inactive) or 0
                yield max(0, limit - max(0, used - droppable))


def _counter(files: SystemFiles, path: str, name: str) -> int | None:
    match = re.search(rf"^{name} ([0-9]+)$", files.text(path) or "", re.MULTILINE)
    return int(match[1]) if match else None
