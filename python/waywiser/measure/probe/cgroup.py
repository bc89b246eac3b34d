"""The memory limit of the control group that this process lives in, and what it has killed.

Both hierarchies are read: the unified one (v2) and the memory controller's own (v1). A limit
counts wherever it is set on the way up, since a container rarely sees its own as the innermost.
Source of the names: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_NO_LIMIT_BYTES = 1 << 60
"""v1 writes "no limit" as a number near 2^63; nobody owns an exbibyte."""

_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def available_bytes(root: Path = Path("/")) -> int | None:
    """Bytes that may still be used under the tightest limit, page cache that can be dropped
    counted as free; None if there is no limit. ``root`` is where ``/proc`` and ``/sys`` are."""
    room = [_room(folder, names) for folder, names in _groups(root)]
    return min((bytes_ for bytes_ in room if bytes_ is not None), default=None)


def killed_for_memory(root: Path = Path("/")) -> int:
    """How many processes of this control group the kernel has killed for want of memory."""
    for folder, names in _groups(root):
        file = "memory.events" if names is _V2 else "memory.oom_control"
        count = _keyed(folder / file, "oom_kill")
        if count is not None:
            return count
    return 0


def _groups(root: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """The memory groups of this process, innermost first, with the names of their files."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        names = _V1 if controllers else _V2
        inner = PurePosixPath(path.lstrip("/"))
        for level in (inner, *inner.parents):
            yield mount / level, names


def _room(folder: Path, names: tuple[str, str, str]) -> int | None:
    limit = _number(_text(folder / names[0]))
    if limit is None or limit >= _NO_LIMIT_BYTES:
        return None
    used = _number(_text(folder / names[1])) or 0
    droppable = _keyed(folder / "memory.stat", names[2]) or 0
    return max(0, limit - max(0, used - droppable))


def _keyed(file: Path, key: str) -> int | None:
    for line in _text(file).splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return _number(value)
    return None


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii", "replace")
    except OSError:
        return ""
