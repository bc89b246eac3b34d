"""Files that somebody names and folders for scratch files: what is an error, and what remains."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from waywiser.machine import file_places
from waywiser.machine.file_places import (
    LEAST_FILE,
    FileError,
    existing_file,
    same_places,
    scratch_folder,
)
from waywiser.machine.machine import FilePlace


def test_a_file_is_a_place_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(b"x" * 5000)
    monkeypatch.chdir(tmp_path)
    place = existing_file("data")
    assert place.name == place.path == str(tmp_path / "data")
    assert place.bytes == 5000 and not place.scratch and place.filesystem


def test_what_is_no_readable_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # paths of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    (tmp_path / "loop").symlink_to("loop")
    for name, says in {
        "missing": "No such file",
        "empty": "is empty",
        "pipe": "not an ordinary file",
        "socket": "not an ordinary file",
        "loop": "cannot be read",
        ".": "is a folder",
        "/dev/null": "not an ordinary file",
        "a\0b": "cannot be",
    }.items():
        with pytest.raises(FileError, match=says) as unsupported_paths:
            existing_file(name)
        assert "\n" not in str(unsupported_paths.value)


@pytest.mark.parametrize("name", ["a by b", "a -> b", "a; b", "a\nb"])
def test_a_path_that_would_break_the_grammar_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(FileError, match="cannot be written into the name of a series"):
        existing_file(str(tmp_path / name))


def test_a_path_with_blanks_brackets_and_signs_is_fine(tmp_path: Path) -> None:
    file = tmp_path / "my data [1] of 8 as x @home,x=y"
    file.write_bytes(b"x" * LEAST_FILE)
    assert existing_file(str(file)).name == str(file)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"x")
    file.chmod(0)
    with pytest.raises(FileError, match="Permission denied"):
        existing_file(str(file))


def test_trying_a_scratch_folder_leaves_nothing(tmp_path: Path) -> None:
    place = scratch_folder(str(tmp_path))
    assert place.scratch and place.name == "scratch" and place.path == str(tmp_path)
    assert 0 < place.bytes <= file_places.MOST_SCRATCH
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_nameless_files_is_tried_with_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def fail(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", fail)
    (tmp_path / "theirs").write_bytes(b"x")
    assert scratch_folder(str(tmp_path)).scratch
    assert [entry.name for entry in tmp_path.iterdir()] == ["theirs"]


def test_a_file_system_without_direct_io_is_known_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def fail(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", fail)
    (tmp_path / "file").write_bytes(b"x" * 9000)
    assert not scratch_folder(str(tmp_path)).direct
    assert not existing_file(str(tmp_path / "file")).direct


@pytest.mark.parametrize("folder", ["/proc", "/nowhere/at/all", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_one_line(folder: str) -> None:
    with pytest.raises(FileError, match="no scratch file can be made there"):
        scratch_folder(folder)


def test_a_full_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        f_bavail, f_frsize = 1 << 18, 4096  # a GiB

    monkeypatch.setattr(os, "statvfs", lambda path: Full)
    with pytest.raises(FileError, match="1 GiB are free, and 1280 MiB are needed"):
        scratch_folder(str(tmp_path))


@pytest.mark.parametrize("mebibytes", [0, 1, 64, 512, 1023, 1024, 1152, 1279])
@pytest.mark.parametrize(("name", "says"), [("tmpfs", "--shm-size"), ("scratch", "--scratch")])
def test_room_that_is_too_little_has_the_remedy_of_its_place(
    mebibytes: int, name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's /dev/shm has 64 MiB, and no option names another one."""

    class Small:
        f_bavail, f_frsize = mebibytes << 8, 4096

    monkeypatch.setattr(os, "statvfs", lambda path: Small)
    with pytest.raises(FileError, match="and 1280 MiB are needed") as caught:
        scratch_folder(str(tmp_path), name)
    assert says in str(caught.value)
    assert ("name another folder" in str(caught.value)) == (name == "scratch")
    Small.f_bavail = 1281 << 8
    assert scratch_folder(str(tmp_path), name).bytes == 128 << 20


def test_places_are_the_same_where_files_are_and_room_may_differ() -> None:
    scratch = FilePlace("scratch", "/data", True, 1 << 30, "ext4")
    theirs = FilePlace("/data/x", "/data/x", False, 4096, "ext4")
    more = FilePlace("scratch", "/data", True, 2 << 30, "ext4")
    assert same_places((scratch, theirs), (theirs, more)) == ""
    assert "cannot be measured now" in same_places((scratch, theirs), (theirs,))
    longer = FilePlace("/data/x", "/data/x", False, 8192, "ext4")
    assert "has 8192 bytes now, it had 4096" in same_places((theirs,), (longer,))
    elsewhere = FilePlace("scratch", "/data", True, 1 << 30, "nfs4")
    assert "on nfs4 now" in same_places((scratch,), (elsewhere,))
