"""File systems and disks from what the kernel reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.machine.filesystem import FileSystem, filesystem_of
from waywiser.machine.system_files import SystemFiles

MOUNTS = """\
21 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
22 21 0:25 / /dev/shm rw - tmpfs tmpfs rw
23 21 0:40 / /data rw - nfs4 server:/export rw
24 21 0:41 / /data/my\\040disk rw shared:3 - btrfs /dev/sdb rw
25 21 0:26 / /dev/shm rw - ramfs none rw
"""


@pytest.fixture
def system(tmp_path: Path) -> SystemFiles:
    def put(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    put("proc/self/mountinfo", MOUNTS)
    put("sys/dev/block/259:2/uevent", "MAJOR=259\nMINOR=2\nDEVNAME=nvme0n1p2\nDEVTYPE=partition")
    put("sys/class/block/nvme0n1p2/size", "1000")
    put("sys/class/block/nvme0n1p2/partition", "2")
    put("sys/block/nvme0n1/nvme0n1p2/size", "1000")
    put("sys/class/block/nvme0n1/queue/rotational", "0")
    put("sys/class/block/nvme0n1/device/model", "A Fast Disk")
    put("sys/class/block/sdb/size", "9")
    put("sys/class/block/sdb/queue/rotational", "1")
    return SystemFiles(tmp_path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/nowhere/x", FileSystem("ext4", "/", "nvme0n1", "A Fast Disk", False)),
        ("/dev/shm", FileSystem("ramfs", "/dev/shm", "none")),
        ("/data/set", FileSystem("nfs4", "/data", "server:/export")),
        ("/data/my disk/a", FileSystem("btrfs", "/data/my disk", "sdb", "", True)),
        ("/database", FileSystem("ext4", "/", "nvme0n1", "A Fast Disk", False)),
    ],
)
def test_the_innermost_and_latest_mount_counts(
    system: SystemFiles, path: str, expected: FileSystem
) -> None:
    assert filesystem_of(path, system) == expected


def test_a_system_that_shows_nothing_is_known_by_nothing(tmp_path: Path) -> None:
    found = filesystem_of("/x", SystemFiles(tmp_path))
    assert found == FileSystem() and found.facts == {}


def test_facts_leave_out_what_is_unknown(system: SystemFiles) -> None:
    assert filesystem_of("/data/my disk", system).facts == {
        "filesystem": "btrfs",
        "mount": "/data/my disk",
        "device": "sdb",
        "rotational": True,
    }
