"""Files from which code is loaded: only those that no other user can have written.

The rule is that of ``StrictModes`` of OpenSSH: the file and every folder above it belong to this
user or to root, and neither group nor others may write to them; a group that has this user alone
may, as Debian has it (a umask of 002 is usual there). A folder in which everybody may
write but only remove what is theirs, as ``/tmp``, may be above. Files are opened without following
a link, and what is checked is the open file.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waywiser.errors import WaywiserError
from waywiser.files.attributes import ACCESS_LIST
from waywiser.words.atomic_write import private_file
from waywiser.words.regular_file import NotRegular, TooLarge

_OVERFLOW = "/proc/sys/kernel/overflowuid"
_IDS = "/proc/self/uid_map"
_ALL_IDS = 2**32 - 1


class UntrustedPath(WaywiserError):
    """Another user owns a file or a folder from which code would be loaded, or may write to it."""


def require_trusted_folder(folder: Path) -> Path:
    """The folder without links in its path, and checked up to the root. Raises `UntrustedPath`, and
    `OSError` for a folder that cannot be found."""
    real = Path(os.path.realpath(folder, strict=True))
    for each in (real, *real.parents):
        status = each.stat()
        is_above = each != real
        if status.st_uid not in _owners(is_above):
            raise UntrustedPath(
                f"belongs to user {status.st_uid} and not to user {os.geteuid()}, so that no code "
                "is loaded from it",
                where=str(each),
            )
        is_sticky = is_above and status.st_mode & stat.S_ISVTX
        if _others_may_write(status, each) and not is_sticky:
            raise UntrustedPath(
                f"other users may write to it (mode {stat.S_IMODE(status.st_mode):04o}), so that "
                "no code is loaded from it",
                where=str(each),
                remedy=f"chmod go-w {each}",
            )
    return real


@contextmanager
def open_trusted(path: str | os.PathLike[str]) -> Iterator[int]:
    """A descriptor that reads the file ``path``, which is as its folders are. While it is open,
    ``/proc/self/fd/N`` is this very file. Raises `UntrustedPath`, `NotRegular`, and `OSError`."""
    folder = require_trusted_folder(Path(path).parent)
    options = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(folder / Path(path).name, options)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular(0, "is not a regular file", os.fspath(path))
        if status.st_uid not in _owners(is_above=False) or _others_may_write(status, descriptor):
            raise UntrustedPath(
                f"other users may write to it (owner {status.st_uid}, mode "
                f"{stat.S_IMODE(status.st_mode):04o}), so that no code is loaded from it",
                where=os.fspath(path),
                remedy="remove it",
            )
        yield descriptor
    finally:
        os.close(descriptor)


def read_trusted(path: str | os.PathLike[str], limit: int) -> bytes:
    """The bytes of a file, at most ``limit``. Raises what `open_trusted` raises, and `TooLarge`."""
    with open_trusted(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise TooLarge(0, f"has more than {limit} bytes", os.fspath(path))
    return content


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only this user can read and write, whole or not at all; takes the place of
    what has its name. Raises `OSError`."""
    with private_file(path) as part:
        part.write_bytes(content)


def _others_may_write(status: os.stat_result, found: Path | int) -> bool:
    """With an access list the bits of the group are the most that any of its entries allows."""
    if not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    if status.st_mode & stat.S_IWOTH or not _is_own_group(status.st_gid):
        return True
    with suppress(OSError):
        return ACCESS_LIST in os.listxattr(found)
    return False


def _is_own_group(number: int) -> bool:
    """Whether a group has the name of this user and no other member. That of root has, where
    containers run as any user of group 0."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    if number == 0 or user.pw_gid != number or user.pw_name != group.gr_name:
        return False
    primary = {each.pw_name for each in pwd.getpwall() if each.pw_gid == number}
    return primary | set(group.gr_mem) <= {user.pw_name}


def _owners(is_above: bool) -> set[int]:
    """The users whose files are trusted. In a user namespace without the root of the host, the
    owner of folders that are root's is not known: such folders may be above."""
    owners = {0, os.geteuid()}
    return owners | _unknown_owner() if is_above else owners


def _unknown_owner() -> set[int]:
    """The number of all users that this user namespace does not know; empty if it knows all."""
    with suppress(OSError, ValueError):
        lines = Path(_IDS).read_text().split("\n")
        counts = [int(line.split()[2]) for line in lines if line.strip()]
        if sum(counts) < _ALL_IDS:
            return {int(Path(_OVERFLOW).read_text())}
    return set()
