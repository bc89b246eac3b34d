"""From which files code is loaded: from those alone that no other user can have written."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from waywiser.words import trusted_file
from waywiser.words.regular_file import NotRegular, TooLarge
from waywiser.words.trusted_file import (
    UntrustedPath,
    open_trusted,
    read_trusted,
    require_trusted_folder,
    write_private,
)
from waywiser.words.user_cache import CacheError, user_cache

LIMIT = 100
ANOTHER = 4711


@pytest.fixture(autouse=True)
def group_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group has several members, also where each user has one alone."""
    monkeypatch.setattr(trusted_file, "_is_own_group", lambda number: False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "above" / "folder" / "file"
    path.parent.mkdir(parents=True, mode=0o755)
    path.parent.parent.chmod(0o755)
    path.parent.chmod(0o755)
    path.write_bytes(b"content")
    path.chmod(0o644)
    return path


def test_a_file_of_this_user_alone_is_read(file: Path) -> None:
    assert read_trusted(file, LIMIT) == b"content"
    with open_trusted(file) as descriptor:
        file.unlink()
        file.write_bytes(b"of somebody else")
        assert Path(f"/proc/self/fd/{descriptor}").read_bytes() == b"content"


@pytest.mark.parametrize("level", range(3), ids=["file", "folder", "above"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(mode=st.integers(0, 0o777))
def test_what_others_may_write_to_is_not_read(file: Path, level: int, mode: int) -> None:
    changed = (file, *file.parents)[level]
    needed = 0o400 if level == 0 else 0o500
    changed.chmod(mode | needed)
    try:
        if mode & 0o022:
            with pytest.raises(UntrustedPath, match=rf"{changed}: other users may write to it"):
                read_trusted(file, LIMIT)
        else:
            assert read_trusted(file, LIMIT) == b"content"
    finally:
        changed.chmod(0o700)


def test_a_group_of_this_user_alone_may_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.stat(file).st_gid
    for each in (file, file.parent, file.parent.parent):
        each.chmod(0o775)
    with pytest.raises(UntrustedPath):
        read_trusted(file, LIMIT)
    monkeypatch.setattr(trusted_file, "_is_own_group", lambda number: number == own)
    assert read_trusted(file, LIMIT) == b"content"
    file.parent.chmod(0o777)
    with pytest.raises(UntrustedPath):
        read_trusted(file, LIMIT)


@pytest.mark.parametrize(
    ("name", "members", "primary", "expected"),
    [
        ("ann", [], 7, True),
        ("ann", ["ann"], 7, True),
        ("ann", ["ann", "bob"], 7, False),
        ("staff", [], 7, False),
        ("ann", [], 8, False),
    ],
)
def test_a_group_is_of_one_user_by_its_name_and_members(
    monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], primary: int, expected: bool
) -> None:
    monkeypatch.undo()
    group = grp.struct_group((name, "x", 7, members))
    user = pwd.struct_passwd(("ann", "x", os.geteuid(), primary, "", "/", "/bin/sh"))
    monkeypatch.setattr(grp, "getgrgid", lambda number: group)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: user)
    monkeypatch.setattr(pwd, "getpwall", lambda: [user])
    assert trusted_file._is_own_group(7) == expected
    other = pwd.struct_passwd(("eve", "x", 99, 7, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [user, other])
    assert not trusted_file._is_own_group(7), "it is the first group of another user"


def test_a_folder_for_everybody_may_be_above_if_nobody_can_remove_what_is_anothers(
    file: Path,
) -> None:
    file.parent.parent.chmod(0o1777)
    assert read_trusted(file, LIMIT) == b"content"
    file.parent.chmod(0o1777)
    with pytest.raises(UntrustedPath, match=r"mode 1777"):
        read_trusted(file, LIMIT)


def test_what_belongs_to_another_user_is_not_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
        with pytest.raises(UntrustedPath, match=f"and not to user {ANOTHER}"):
            read_trusted(file, LIMIT)
        return
    for changed in (file, file.parent, file.parent.parent):
        os.chown(changed, ANOTHER, -1)
        with pytest.raises(UntrustedPath, match=str(ANOTHER)):
            read_trusted(file, LIMIT)
        os.chown(changed, 0, -1)
    assert read_trusted(file, LIMIT) == b"content"


def test_the_owner_that_a_user_namespace_does_not_know_may_have_what_is_above(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    ids = tmp_path / "uid_map"
    monkeypatch.setattr(trusted_file, "_IDS", str(ids))
    unknown = int(Path("/proc/sys/kernel/overflowuid").read_text())
    os.chown(file.parent.parent, unknown, -1)
    ids.write_text("         0          0 4294967295\n")
    with pytest.raises(UntrustedPath):
        read_trusted(file, LIMIT)
    ids.write_text("      0    1000       1\n")
    assert read_trusted(file, LIMIT) == b"content"
    os.chown(file, unknown, -1)
    with pytest.raises(UntrustedPath):
        read_trusted(file, LIMIT)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _link_to_own(path: Path) -> None:
    path.with_name("own").write_bytes(b"own")
    path.symlink_to(path.with_name("own"))


@pytest.mark.parametrize("make", [_fifo, _link, _link_to_own, Path.mkdir])
def test_what_is_no_regular_file_is_an_error_at_once(
    file: Path, make: Callable[[Path], None]
) -> None:
    file.unlink()
    make(file)
    with pytest.raises((NotRegular, OSError)):
        read_trusted(file, LIMIT)


def test_a_link_above_is_followed_to_where_it_leads(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file.parent)
    assert read_trusted(tmp_path / "link" / "file", LIMIT) == b"content"
    assert require_trusted_folder(tmp_path / "link") == file.parent.resolve()
    file.parent.parent.chmod(0o777)
    with pytest.raises(UntrustedPath):
        read_trusted(tmp_path / "link" / "file", LIMIT)


def test_no_more_is_read_than_the_limit(file: Path) -> None:
    file.write_bytes(bytes(LIMIT + 1))
    with pytest.raises(TooLarge):
        read_trusted(file, LIMIT)


def test_a_private_file_is_for_this_user_whatever_the_umask(file: Path) -> None:
    before = os.umask(0)
    try:
        write_private(file, b"new")
    finally:
        os.umask(before)
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(file.parent) == ["file"]


def test_the_cache_for_code_is_for_this_user_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        folder = user_cache("part", "the folder", "do this", for_code=True)
    finally:
        os.umask(before)
    assert folder == tmp_path.resolve() / "a" / "b" / "waywiser" / "part"
    assert {each.stat().st_mode & 0o777 for each in (folder, *folder.parents[:3])} == {0o700}
    folder.parent.chmod(0o770)
    with pytest.raises(
        CacheError, match=r"waywiser: the folder is .*: other .*\(chmod go-w \S+, or do this"
    ):
        user_cache("part", "the folder", "do this", for_code=True)
    assert user_cache("part", "the folder", "do this") == tmp_path / "a/b/waywiser/part"
