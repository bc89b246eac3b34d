"""Names of what is not finished, and the removal of what killed processes have left.

The name states the process that writes, from the first moment on. It may hold a lock too. What is
left is removed only if it is known that its process has ended: never that of another host, and on
a file system without locks only by what the name states.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from waywiser.files.file_locks import is_of_one_kernel, take_lock
from waywiser.files.file_owner import OWNER_PATTERN, Owner

_NAME_BYTES = 120
"""Bytes of the name of a file in that of its unfinished one: a name has at most 255 bytes."""


def unfinished_name(prefix: str, suffix: str = "") -> str:
    """A new name between ``prefix`` and ``suffix``, which states the calling process."""
    return f"{prefix}{Owner.of_this_process()}-{secrets.token_hex(4)}{suffix}"


def shortened(name: str) -> str:
    """The beginning of a name, with room for what `unfinished_name` adds to it."""
    while len(os.fsencode(name)) > _NAME_BYTES:
        name = name[:-1]
    return name


def remove_leftovers(
    folder: Path,
    prefix: str,
    suffix: str = "",
    *,
    remove: Callable[[Path], None],
    is_locked: bool = True,
    user: int | None = None,
    kept: Container[str] = frozenset(),
) -> None:
    """Removes what killed processes have left in a folder under names of `unfinished_name`.

    Files whose names continue such a name after ``-`` belong to it and go first. ``is_locked``:
    whether each process locks what it makes. ``user``: the only one whose files are removed.
    ``kept``: names that stay, with all that belongs to them. Raises nothing.
    """
    form = re.compile(f"{re.escape(prefix)}({OWNER_PATTERN})-[0-9a-f]{{8}}{re.escape(suffix)}")
    with suppress(OSError):
        names = os.listdir(folder)
        for name in names:
            found = form.fullmatch(name)
            owner = Owner.parse(found[1]) if found else None
            parts = [each for each in names if each.startswith(f"{name}-")]
            if owner is None or name in kept or any(part in kept for part in parts):
                continue
            with _abandoned(folder / name, owner, is_locked, user) as is_so:
                # If a part stays, the next one goes on.
                if is_so and all(remove_one(folder / part) for part in parts):
                    with suppress(OSError):
                        remove(folder / name)


def remove_one(path: Path) -> bool:
    """Removes a file or an empty folder; returns whether it is gone."""
    try:
        os.unlink(path)
    except IsADirectoryError:
        with suppress(OSError):
            os.rmdir(path)
    except OSError:
        pass
    return not os.path.lexists(path)


def sync_folder(folder: Path) -> None:
    """Puts the names in a folder on the disk. A folder that this user may write to and not read
    cannot be opened for that: the system does it later. Raises other kinds of `OSError`."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync folders
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _abandoned(path: Path, owner: Owner, is_locked: bool, user: int | None) -> Iterator[bool]:
    """Whether a file or folder is of no process any more. Its lock is held until the block ends:
    the process that has just made it may not have it yet."""
    with ExitStack() as stack:
        yield _is_abandoned(path, owner, is_locked, user, stack)


def _is_abandoned(
    path: Path, owner: Owner, is_locked: bool, user: int | None, stack: ExitStack
) -> bool:
    has_ended = owner.has_ended()
    if has_ended is False or (has_ended is None and not is_locked):
        return False
    try:
        found = os.lstat(path)
        if user not in (None, found.st_uid):
            return False
        if stat.S_ISDIR(found.st_mode):
            flags = os.O_RDONLY | os.O_DIRECTORY
        elif stat.S_ISREG(found.st_mode):
            flags = os.O_RDWR  # a lock on NFS needs it
        else:
            return False
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return has_ended is True
    except OSError:
        return False
    stack.callback(os.close, descriptor)
    taken = take_lock(descriptor) if is_locked else None
    if taken is False:
        return False
    return has_ended is True or (taken is True and is_of_one_kernel(descriptor))
