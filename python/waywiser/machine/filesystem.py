"""Which file system a path is on, and on which disk that is, if the system shows it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from waywiser.machine.system_files import SystemFiles
from waywiser.words import Value

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
"""File systems whose files are in memory and nowhere else."""

_ESCAPED = re.compile(r"\\([0-7]{3})")
"""How the kernel writes blanks and the like in the list of mounts."""


class FileSystem(Value, frozen=True):
    """A mounted file system; fields are empty or None if the system does not say."""

    filesystem: str = ""
    """Its type."""
    mount: str = ""
    device: str = ""
    """The disk, as the kernel names it (``nvme0n1``), or where a network file system comes from."""
    model: str = ""
    rotational: bool | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What is known, by name."""
        known = msgspec.structs.asdict(self).items()
        return {name: value for name, value in known if value not in ("", None)}


class _Mount(Value, frozen=True):
    point: str
    number: str
    """The number of the device: ``259:1``."""
    type: str
    source: str


def filesystem_of(path: str, files: SystemFiles | None = None) -> FileSystem:
    """The file system that ``path`` is on. Reads /proc/self/mountinfo and /sys/dev/block."""
    files = files or SystemFiles()
    real = os.path.realpath(path)
    holding = [mount for mount in _mounts(files) if _is_below(real, mount.point)]
    if not holding:
        return FileSystem()
    # Of two at one point the later hides the earlier.
    mount = max(enumerate(holding), key=lambda found: (len(found[1].point), found[0]))[1]
    folder = _disk_folder(files, mount)
    rotational = files.integer(f"{folder}/queue/rotational") if folder else None
    return FileSystem(
        mount.type,
        mount.point,
        folder.rpartition("/")[2] if folder else mount.source.removeprefix("/dev/"),
        (files.text(f"{folder}/device/model") or "") if folder else "",
        None if rotational is None else bool(rotational),
    )


def _mounts(files: SystemFiles) -> Iterator[_Mount]:
    for line in (files.text("/proc/self/mountinfo") or "").splitlines():
        before, separator, after = line.partition(" - ")
        fields, behind = before.split(), after.split()
        if separator and len(fields) >= 5 and len(behind) >= 2:
            yield _Mount(_plain(fields[4]), fields[2], behind[0], _plain(behind[1]))


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _is_below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")


def _disk_folder(files: SystemFiles, mount: _Mount) -> str:
    """The folder of the whole disk in /sys/class/block; empty for a file system that is on none."""
    for key in (mount.number, ""):
        uevent = files.fields(f"/sys/dev/block/{key}/uevent") if key else {}
        name = uevent.get("DEVNAME", "") if key else mount.source.removeprefix("/dev/")
        if name and files.text(f"/sys/class/block/{name}/size") is not None:
            return f"/sys/class/block/{_whole(files, name)}"
    return ""


def _whole(files: SystemFiles, name: str) -> str:
    """The disk that a partition is of."""
    if files.integer(f"/sys/class/block/{name}/partition") is None:
        return name
    for disk in files.find(f"/sys/block/*/{name}"):
        return disk.split("/")[3]
    return name
