"""Temporary folders: gone when they are closed, and after a kill with the next one."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from waywiser.files.file_owner import Owner
from waywiser.words import temporary_folder
from waywiser.words.temporary_folder import TemporaryFolder

KILLED = """
import os, sys, tempfile
from waywiser.words.temporary_folder import TemporaryFolder
tempfile.tempdir = sys.argv[1]
made = TemporaryFolder("one-")
(made.path / "file").write_text("text")
print(made.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_when_it_is_closed(place: Path) -> None:
    with TemporaryFolder("one-") as folder:
        assert folder.path.parent == place and folder.path.name.startswith("one-")
        (folder.path / "inside").mkdir()
        (folder.path / "inside" / "file").write_text("text")
    assert list(place.iterdir()) == []
    folder.close()


def test_the_next_one_removes_that_of_a_killed_process_and_no_other(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        killed = Path(process.stdout.readline().strip())
        others = {place / "two-other", place / "one-file", place / "one-link"}
        (place / "two-other").mkdir()
        (place / "one-file").touch()
        (place / "one-link").symlink_to(place / "two-other")
        with TemporaryFolder("one-") as beside:
            assert set(place.iterdir()) == {killed, beside.path, *others}, "it is used"
        process.kill()
    with TemporaryFolder("two-other-"):
        assert killed.exists(), "it has another prefix"
    with TemporaryFolder("one-") as following, TemporaryFolder("one-") as second:
        assert set(place.iterdir()) == {following.path, second.path, *others}


def test_a_folder_of_another_user_is_left(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = place / f"one-{Owner.of_this_process()._replace(started=1)}-00000000"
    theirs.mkdir()
    with monkeypatch.context() as other_user:
        other_user.setattr(os, "geteuid", lambda: 4711)
        with TemporaryFolder("one-"):
            assert theirs.exists()
    with TemporaryFolder("one-"):
        assert not theirs.exists()


def test_a_folder_that_another_start_removes_before_it_is_locked_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = temporary_folder.hold
    removed: list[Path] = []

    def held(path: Path) -> int | None:
        if not removed:
            removed.append(path)
            shutil.rmtree(path)
        return hold(path)

    monkeypatch.setattr(temporary_folder, "hold", held)
    with TemporaryFolder("one-") as folder:
        assert list(place.iterdir()) == [folder.path] != removed


def test_nothing_is_left_if_no_file_can_be_opened(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_file(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as full:
        full.setattr(os, "open", no_file)
        with pytest.raises(OSError, match="Too many open files"):
            TemporaryFolder("one-")
    assert list(place.iterdir()) == []
