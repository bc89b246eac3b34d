"""Shared memory that killed processes of MPI leave, and that of others that stays."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from waywiser.measure.ranks import leftovers
from waywiser.measure.ranks.leftovers import (
    abandoned_files,
    enter_folders,
    folders,
    mapped_files,
    remove,
    remove_folders,
    shared_folder,
)


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Shared memory with a name that MPICH could give it, apart from that of launches."""
    with tempfile.TemporaryDirectory(prefix="waywiser-test-", dir="/dev/shm") as folder:
        monkeypatch.setattr(leftovers, "SHARED_MEMORY", f"{folder}/")
        path = Path(folder, "mpich_shm_1a2b_0")
        path.write_bytes(bytes(4096))
        yield path


def test_a_file_that_nobody_has_mapped_or_open_is_abandoned(file: Path) -> None:
    since = file.stat().st_ctime
    assert str(file) in abandoned_files(since)
    assert str(file) not in abandoned_files(since + 1), "it is of an earlier launch"
    with file.open("r+b") as opened:
        assert str(file) not in abandoned_files(since), "it is open"
        mapped = mmap.mmap(opened.fileno(), 0)
    assert str(file) not in abandoned_files(since), "it is mapped"
    assert str(file) in mapped_files()
    mapped.close()
    assert str(file) in abandoned_files(since)
    assert str(file) not in mapped_files()


def test_files_of_other_names_are_nobodys_business(file: Path) -> None:
    other = file.rename(file.with_name("another"))
    assert str(other) not in abandoned_files(0)


def test_files_are_removed_if_they_are_the_users(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: 4711)
        remove([str(file)])
        assert file.exists()
    remove([str(file), str(file)])
    assert not file.exists()


def test_the_folders_of_a_launch_are_gone_in_the_end() -> None:
    with folders("a secret") as temporary:
        shared = shared_folder(temporary)
        for folder in (temporary, shared):
            Path(folder, "left").write_text("behind")
    assert not os.path.exists(temporary)
    assert not os.path.exists(shared)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.ENOMEM])
def test_a_folder_that_cannot_be_held_is_an_error_and_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    def unable(path: Path) -> int | None:
        assert path.exists()
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(leftovers, "hold", unable)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(OSError, match=os.strerror(number)), folders("one more secret"):
        pass
    assert not enter_folders(str(tmp_path / "waywiser-ranks-of-another-launch"))
    assert list(tmp_path.iterdir()) == []
    assert not leftovers._in_use


def test_a_folder_that_another_launch_removes_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold = leftovers.hold
    removed: list[Path] = []

    def held(path: Path) -> int | None:
        if len(removed) < 2:
            removed.append(path)
            return None
        return hold(path)

    monkeypatch.setattr(leftovers, "hold", held)
    with folders("one more secret") as temporary:
        assert removed == [Path(temporary)] * 2
        assert Path(temporary).is_dir()


def test_no_other_folder_is_removed(tmp_path: Path) -> None:
    remove_folders(str(tmp_path))
    remove_folders("")
    assert tmp_path.exists()
