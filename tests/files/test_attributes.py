"""What a new file takes over from the one that it replaces."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.files import attributes
from waywiser.files.attributes import ACCESS_LIST, DEFAULT_LIST, Attributes

OWNER, USER, GROUP, OTHER_GROUP, MASK, OTHERS = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NO_ONE = 0xFFFFFFFF


def access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)


def with_a_user(user: int, group: int, mask: int) -> bytes:
    """A list by which a user by number may do what ``user`` says."""
    return access_list(
        (OWNER, 6, NO_ONE),
        (USER, user, os.geteuid()),  # any: a user namespace may have no other one
        (GROUP, group, NO_ONE),
        (MASK, mask, NO_ONE),
        (OTHERS, 0, NO_ONE),
    )


def set_list(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EPERM):
            raise
        pytest.skip("the file system for temporary files has no access lists")


def lists_of(path: Path) -> dict[str, bytes]:
    return {n: os.getxattr(path, n) for n in os.listxattr(path) if n.startswith("system.")}


def new_like(former: Path, path: Path, *, folder: bool = False) -> Path:
    found = Attributes.of(former)
    assert found is not None
    if folder:
        path.mkdir(0o700)
        descriptor = os.open(path, os.O_RDONLY)
    else:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        found.apply(descriptor)
    finally:
        os.close(descriptor)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o664, 0o640, 0o604, 0o777, 0o000, 0o2755, 0o4711])
def test_the_mode_of_a_file(tmp_path: Path, mode: int) -> None:
    former = tmp_path / "former"
    former.touch()
    former.chmod(mode)
    new = new_like(former, tmp_path / "new")
    assert stat.S_IMODE(new.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o700, 0o770, 0o2770, 0o1777, 0o3775, 0o555])
def test_the_mode_of_a_folder(tmp_path: Path, mode: int) -> None:
    former = tmp_path / "former"
    former.mkdir()
    former.chmod(mode)
    new = new_like(former, tmp_path / "new", folder=True)
    assert stat.S_IMODE(new.stat().st_mode) == mode


def test_no_attributes_of_what_is_not_there(tmp_path: Path) -> None:
    assert Attributes.of(tmp_path / "none") is None
    (tmp_path / "link").symlink_to("none")
    assert Attributes.of(tmp_path / "link") is None


def test_attributes_of_users(tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.touch()
    for name, value in (("user.run", b"7"), ("user.empty", b"")):
        try:
            os.setxattr(former, name, value)
        except OSError:
            pytest.skip("the file system for temporary files has no extended attributes")
    new = new_like(former, tmp_path / "new")
    assert os.getxattr(new, "user.run") == b"7" and os.getxattr(new, "user.empty") == b""


def test_hashes_of_the_content_stay_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Attributes(0o600, os.geteuid(), os.getegid(), {"security.ima": b"1", "user.a": b"2"})
    given: list[str] = []
    monkeypatch.setattr(os, "setxattr", lambda path, name, value: given.append(name))
    with (tmp_path / "new").open("wb") as file:
        found.apply(file.fileno())
    assert given == ["user.a"]


def test_access_lists_of_a_file(tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.touch()
    set_list(former, ACCESS_LIST, with_a_user(6, 0, 4))
    new = new_like(former, tmp_path / "new")
    assert lists_of(new) == lists_of(former) != {}
    assert new.stat().st_mode == former.stat().st_mode


def test_access_lists_of_a_folder(tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.mkdir()
    set_list(former, ACCESS_LIST, with_a_user(7, 5, 7))
    set_list(former, DEFAULT_LIST, with_a_user(4, 4, 4))
    new = new_like(former, tmp_path / "new", folder=True)
    assert lists_of(new) == lists_of(former)
    assert len(lists_of(new)) == 2


def test_a_list_that_the_folder_gives_is_not_added(tmp_path: Path) -> None:
    """The folder got its list after the former file was made: another user may read new files."""
    former = tmp_path / "former"
    former.touch()
    former.chmod(0o640)
    (tmp_path / "inner").mkdir()
    set_list(tmp_path, DEFAULT_LIST, with_a_user(6, 6, 6))
    new = new_like(former, tmp_path / "new")
    assert lists_of(new) == {}
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    inner = new_like(tmp_path / "inner", tmp_path / "other", folder=True)
    assert lists_of(inner) == {}


def rejecting_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", reject)


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o664, 0o604), (0o2770, 0o700), (0o4750, 0o700), (0o600, 0o600)]
)
def test_without_the_group_its_bits_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, expected: int
) -> None:
    rejecting_owners(monkeypatch)
    found = Attributes(mode, os.geteuid() + 1, os.getegid() + 1, {})
    new = tmp_path / "new"
    with new.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        found.apply(file.fileno())
    assert stat.S_IMODE(new.stat().st_mode) == expected


def test_without_the_group_a_list_keeps_its_other_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = tmp_path / "former"
    former.touch()
    set_list(former, ACCESS_LIST, with_a_user(4, 6, 6))
    found = Attributes.of(former)
    assert found is not None
    rejecting_owners(monkeypatch)
    new = tmp_path / "new"
    with new.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        found._replace(group=os.getegid() + 1).apply(file.fileno())
    assert os.getxattr(new, ACCESS_LIST) == with_a_user(4, 0, 6)


@pytest.mark.parametrize("same_group", [True, False])
def test_without_the_list_nobody_may_do_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_group: bool
) -> None:
    """The bits of the group in the mode are the mask of the list, which allows more."""

    def reject(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    group = os.getegid() + (0 if same_group else 1)
    found = Attributes(0o670, os.geteuid(), group, {ACCESS_LIST: with_a_user(7, 4, 7)})
    monkeypatch.setattr(os, "setxattr", reject)
    rejecting_owners(monkeypatch)
    new = tmp_path / "new"
    with new.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        found.apply(file.fileno())
    assert stat.S_IMODE(new.stat().st_mode) == (0o640 if same_group else 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_owner_and_group(tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.touch()
    os.chown(former, 4711, 4712)
    former.chmod(0o2754)
    new = new_like(former, tmp_path / "new")
    found = new.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (4711, 4712, 0o2754)


@given(
    mode=st.integers(0, 0o7777),
    has_group=st.booleans(),
    has_owner=st.booleans(),
    lists=st.booleans(),
    entries=st.lists(st.tuples(st.sampled_from([1, 2, 4, 16, 32]), st.integers(0, 7)), max_size=6),
)
def test_nothing_is_allowed_that_was_not(
    mode: int, has_group: bool, has_owner: bool, lists: bool, entries: Iterable[tuple[int, int]]
) -> None:
    """At each call, whatever of it the system allows."""
    listed = access_list(*((tag, bits, NO_ONE) for tag, bits in entries))
    extended = {ACCESS_LIST: listed} if lists else {}
    found = Attributes(mode, 5, 6, extended)
    state = {"uid": 1, "gid": 2, "mode": 0o600}

    class System:
        """A system whose file has no list: what is set is not supported."""

        @staticmethod
        def fchown(_: int, user: int, group: int) -> None:
            if (user not in (-1, 1) and not has_owner) or not has_group:
                raise PermissionError(errno.EPERM, "Operation not permitted")
            state.update(uid=1 if user == -1 else user, gid=group)

        @staticmethod
        def fstat(_: int) -> os.stat_result:
            return os.stat_result((state["mode"], 0, 0, 1, state["uid"], state["gid"], 0, 0, 0, 0))

        @staticmethod
        def fchmod(_: int, mode: int) -> None:
            state["mode"] = mode

        @staticmethod
        def setxattr(*_: object) -> None:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

        removexattr = setxattr

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attributes, "os", System)
        found.apply(3)
    assert state["mode"] & ~mode & 0o7777 == 0
    if not has_group:
        assert state["mode"] & 0o2070 == 0
