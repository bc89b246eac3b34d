"""What keeps a profile from being written is named, and is never called damage."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import profiles
from waywiser.profile import DamagedProfile, NotReadable, NotWritable, ProfileError, write_probe
from waywiser.profile.sqlite_errors import explained
from waywiser.profile.write_probe import obstacle_of, write_obstacle

FILLED = """
import resource, sys
from pathlib import Path
import profiles
from waywiser.profile import NotWritable, Profile
path = Path(sys.argv[1])
profile = profiles.new(path)
profile.commit_visit(profiles.good(0))
limit = path.stat().st_size + 50_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
stored = 1
try:
    while True:
        profile.commit_visit(profiles.good(stored))
        stored += 1
except NotWritable as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
profile.close()
with Profile.open(path) as profile:
    assert len(list(profile.visits())) == stored
"""


def test_a_limit_of_file_sizes_is_named_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    done = subprocess.run(
        [sys.executable, "-c", FILLED, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"a\.wwp: ulimit -f bounds files to \d+ \w+ \(\w+", done.stdout)
    assert "damaged" not in done.stdout
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EDQUOT, "the quota is used up"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EIO, "cannot be written: Input/output error"),
        (errno.ESTALE, "cannot be written: Stale file handle"),
        (errno.EFBIG, "the file system takes no larger file"),
        (errno.EACCES, "cannot be written: Permission denied"),
    ],
)
def test_the_system_names_what_sqlite_calls_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    def fails(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    path = profiles.write(tmp_path / "a.wwp")
    monkeypatch.setattr(write_probe.os, "pwrite", fails)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR | 3 << 8
    with pytest.raises(NotWritable, match=says) as caught, explained(path):
        raise error
    assert caught.value.where == str(path) and caught.value.remedy
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_limit_of_the_process_is_left_to_the_command(tmp_path: Path, number: int) -> None:
    with pytest.raises(OSError, match=os.strerror(number)):
        obstacle_of(OSError(number, os.strerror(number)), tmp_path / "a.wwp")


def test_without_an_obstacle_nothing_is_left_and_the_error_is_no_damage(tmp_path: Path) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    assert write_obstacle(path) is None
    error = sqlite3.OperationalError("disk I/O error")
    with pytest.raises(NotWritable, match="could not be written"), explained(path):
        raise error
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_CORRUPT, DamagedProfile),
        (sqlite3.SQLITE_NOTADB, DamagedProfile),
        (sqlite3.SQLITE_IOERR | 1 << 8, NotReadable),
        (sqlite3.SQLITE_IOERR | 15 << 8, NotWritable),
        (sqlite3.SQLITE_BUSY, ProfileError),
    ],
)
def test_damage_is_only_what_sqlite_calls_so(
    tmp_path: Path, code: int, kind: type[ProfileError]
) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    error = sqlite3.OperationalError("some text")
    error.sqlite_errorcode = code
    with pytest.raises(ProfileError) as caught, explained(path):
        raise error
    assert type(caught.value) is kind
