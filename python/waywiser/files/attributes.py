"""Who may read a file or a folder: what a new one takes over from the one that it replaces."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

ACCESS_LIST = "system.posix_acl_access"
DEFAULT_LIST = "system.posix_acl_default"

_OF_CONTENT = frozenset({"security.ima", "security.evm"})
"""Attributes that are hashes of the bytes of a file."""

_ENTRY = struct.Struct("<HHI")
_HEADER_BYTES = 4
_GROUP, _MASK = 0x04, 0x10
"""Entries of an access list, as the kernel has them: for the group of the file, and the most that
all entries but those of the owner and of others allow."""


class Attributes(NamedTuple):
    """Mode, owner, group, access lists and other extended attributes."""

    mode: int
    user: int
    group: int
    extended: Mapping[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """Those of a file or folder; None if there is none at the path. Raises `OSError`."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        extended = {}
        with suppress(OSError):  # a file system without them
            for name in os.listxattr(path):
                with suppress(OSError):
                    extended[name] = os.getxattr(path, name)
        return cls(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, extended)

    def apply(self, descriptor: int, *, more: int = 0) -> None:
        """Gives them to a new file or folder, which only its owner may use so far. ``more``: bits
        of the mode that it has too, while a folder is filled.

        At no moment may anybody use it who may not use the replaced one. What the system does not
        allow is not taken over; without the group, what the group may do is not either.
        """
        has_group = self._give_to_owner(descriptor)
        self._take_inherited(descriptor)
        group_bits = self.mode & 0o070
        for name, value in self.extended.items():
            if name in _OF_CONTENT or name == ACCESS_LIST:
                continue
            with suppress(OSError):
                os.setxattr(descriptor, name, value)
        if (listed := self.extended.get(ACCESS_LIST)) is not None:
            try:
                os.setxattr(descriptor, ACCESS_LIST, listed if has_group else _closed(listed))
            except OSError:
                group_bits &= _group_bits(listed) if has_group else 0
        elif not has_group:
            group_bits = 0
        mode = (self.mode & ~0o070) | group_bits
        found = os.fstat(descriptor)
        if not has_group:
            mode &= ~stat.S_ISGID
        if found.st_uid != self.user:
            mode &= ~stat.S_ISUID
        with suppress(PermissionError):  # some file systems have one mode for all
            os.fchmod(descriptor, mode | more)

    def _give_to_owner(self, descriptor: int) -> bool:
        """Sets owner and group, if that is allowed; returns whether the group is the same."""
        for user in (self.user, -1):
            with suppress(OSError):
                os.fchown(descriptor, user, self.group)
                break
        return os.fstat(descriptor).st_gid == self.group

    def _take_inherited(self, descriptor: int) -> None:
        """Removes access lists that the new one has from its folder, and the replaced has not."""
        for name in (ACCESS_LIST, DEFAULT_LIST):
            if name not in self.extended:
                with suppress(OSError):
                    os.removexattr(descriptor, name)


def _entries(listed: bytes) -> list[tuple[int, int, int]]:
    whole = len(listed) - (len(listed) - _HEADER_BYTES) % _ENTRY.size
    return list(_ENTRY.iter_unpack(listed[_HEADER_BYTES:whole]))


def _closed(listed: bytes) -> bytes:
    """An access list whose file's group may do nothing."""
    closed = b"".join(
        _ENTRY.pack(tag, 0 if tag == _GROUP else allowed, who)
        for tag, allowed, who in _entries(listed)
    )
    return listed[:_HEADER_BYTES] + closed


def _group_bits(listed: bytes) -> int:
    """What the group of the file may do by an access list, as bits of a mode."""
    allowed = {tag: bits for tag, bits, _ in _entries(listed) if tag in (_GROUP, _MASK)}
    return (allowed.get(_GROUP, 0) & allowed.get(_MASK, 7)) << 3
