"""Profiles on file systems without locks: read from a copy, and not written to."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from test_opening import leave_hot_journal

import profiles
from waywiser.profile import (
    NotReadable,
    NotWritable,
    Profile,
    WritableProfile,
    lock,
    opening,
    quiet_copy,
    sqlite_errors,
)

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
static int locks(int c) {
    return c == F_SETLK || c == F_SETLKW || c == F_GETLK || c == F_OFD_SETLK || c == F_OFD_SETLKW;
}
#define CALL(name) int name(int fd, int c, ...) { \
    static int (*real)(int, int, ...); if (!real) real = dlsym(RTLD_NEXT, #name); \
    va_list l; va_start(l, c); void *a = va_arg(l, void *); va_end(l); \
    if (locks(c)) { errno = atoi(getenv("LOCK_ERRNO")); return -1; } \
    return real(fd, c, a); }
CALL(fcntl)
CALL(fcntl64)
"""
"""A library that answers every lock of a process with the error of a file system without them."""

PROGRAM = """
import sys
from pathlib import Path
from waywiser.profile import Profile, ProfileError, WritableProfile, opening
opening.BUSY_SECONDS = 600.0
path = Path(sys.argv[1])
with Profile.open(path) as profile:
    print(len(list(profile.visits())))
    machine = profile.machine
for make in (lambda: WritableProfile.resume(path, {}),
             lambda: WritableProfile.create(path.with_name("new.wwp"), machine, {})):
    try:
        make()
    except ProfileError as error:
        print(error.what)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler of C for a file system without locks")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "locks.c").write_text(SHIM)
    library = folder / "locks.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "locks.c"), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EBADF, errno.EIO])
def test_whatever_locks_answer_a_profile_is_read_at_once_and_not_written(
    shim: Path, tmp_path: Path, number: int
) -> None:
    path = profiles.write(tmp_path / "a.wwp")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LD_PRELOAD": str(shim),
            "LOCK_ERRNO": str(number),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, *whys = done.stdout.splitlines()
    assert int(count) == len(list(profiles.visits()))
    assert whys == ["cannot be written: the file system has no locks"] * 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("valid") / "a.wwp")


@pytest.fixture
def tried(valid: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each test of locks; the file system has none. ``valid`` is made before."""
    found: list[int] = []

    def none(descriptor: int) -> bool:
        found.append(descriptor)
        return False

    for module in (opening, lock, sqlite_errors):
        monkeypatch.setattr(module, "has_range_locks", none)
    monkeypatch.setattr(opening, "_locks", {})
    monkeypatch.setattr(quiet_copy, "FIRST_SECONDS", 0.0)
    return found


def copied(valid: Path, path: Path) -> Path:
    shutil.copyfile(valid, path)
    return path


def test_locks_are_tried_once_for_many_profiles(
    valid: Path, tried: list[int], tmp_path: Path
) -> None:
    for number in range(5):
        with Profile.open_snapshot(copied(valid, tmp_path / f"{number}.wwp")) as profile:
            assert list(profile.visits()) == list(profiles.visits())
    assert len(tried) == 1


@pytest.mark.usefixtures("tried")
def test_a_commit_that_was_cut_short_is_taken_back_in_the_copy(tmp_path: Path, valid: Path) -> None:
    path = tmp_path / "b.wwp"
    leave_hot_journal(copied(valid, tmp_path / "a.wwp"), path)
    before = path.read_bytes()
    with Profile.open(path) as profile:
        assert list(profile.visits()) == list(profiles.visits())
    assert path.read_bytes() == before and b"never committed" in before


@pytest.mark.usefixtures("tried")
def test_a_profile_that_changes_all_the_time_is_said(
    valid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(valid, tmp_path / "a.wwp")
    copy = quiet_copy._copy

    def changed(*arguments: object) -> None:
        copy(*arguments)  # type: ignore[arg-type]
        with path.open("r+b") as file:
            file.seek(24)  # SQLite's counter of commits
            file.write(os.urandom(4))

    monkeypatch.setattr(quiet_copy, "_copy", changed)
    with pytest.raises(NotReadable, match="changes while it is read"):
        Profile.open(path)


def test_nothing_is_written_and_nothing_is_left(
    valid: Path, tried: list[int], tmp_path: Path
) -> None:
    path = copied(valid, tmp_path / "a.wwp")
    for make in (
        lambda: WritableProfile.resume(path, {}),
        lambda: profiles.new(tmp_path / "new.wwp"),
    ):
        with pytest.raises(NotWritable, match="has no locks"):
            make()
    assert tried and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_a_fifo_in_the_place_of_a_journal_is_not_waited_for(
    valid: Path, tmp_path: Path, suffix: str
) -> None:
    path = copied(valid, tmp_path / "a.wwp")
    os.mkfifo(tmp_path / f"a.wwp{suffix}")
    for opening_one in (Profile.open, Profile.open_snapshot):
        with pytest.raises(NotReadable, match="FIFO and not a regular file"):
            opening_one(path)


def test_locks_that_end_after_the_first_profile_are_tried_again(
    valid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (copied(valid, tmp_path / name) for name in ("a.wwp", "b.wwp"))
    answers = iter([True, False])
    monkeypatch.setattr(opening, "has_range_locks", lambda _: next(answers))
    monkeypatch.setattr(opening, "_locks", {})
    monkeypatch.setattr(opening, "_FIRST_BUSY_SECONDS", 0.01)
    Profile.open(first).close()
    holder = sqlite3.connect(second, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")  # as SQLite hears of a file system without a lock service
    try:
        with Profile.open(second) as profile:
            assert list(profile.visits()) == list(profiles.visits())
    finally:
        holder.close()
