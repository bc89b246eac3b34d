"""What follows from a profile, kept in the user's cache: blocks in short, estimates, fitted models.

Nothing needs what is kept: where it is missing, cannot be read or cannot be written, the same
is made in memory. It is never in the profile. A file is named by what the profile holds, to the
byte, and by the rules, which are the sources of this program: what is found follows from both.
The files that were used the longest time ago go when all have more than `MOST_BYTES`.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

from waywiser.profile.profile import Profile
from waywiser.words import CacheError
from waywiser.words.user_cache import user_cache

T = TypeVar("T")

MOST_BYTES = 2**30
"""Bytes of all files together; 0 keeps none."""

RULED = ("words", "machine", "stats", "profile", "curves", "model", "analysis")
"""The packages by whose sources rows are made."""

_LEVEL = 1
"""The level of zlib: it leaves a fifth of the bytes, and takes little time."""


def derived(profile: Profile, part: str, type: type[T], make: Callable[[], T]) -> T:
    """What ``make`` returns, or what an earlier process kept of the same. ``part`` names it: of
    one profile all that has this name has this type. It depends on nothing but what the profile
    holds, so not on its name. Raises what ``make`` raises."""
    before = profile.data_version

    def is_unchanged() -> bool:
        """Whether no survey has added to it meanwhile."""
        return profile.data_version == before

    return _once(_name(profile.content, part), type, make, is_unchanged)


def found(profile: Profile, part: str, type: type[T]) -> T | None:
    """What `derived` kept of a profile; None if nothing is."""
    return _read(_name(profile.content, part), type)


def kept(of: object, part: str, type: type[T], make: Callable[[], T]) -> T:
    """The same of values in memory, on which alone it depends."""
    return _once(_name(digest([msgspec.msgpack.encode(of)]), part), type, make)


def _once(
    name: str, type: type[T], make: Callable[[], T], may_keep: Callable[[], bool] = lambda: True
) -> T:
    """What is kept by a name; else what ``make`` returns, which is kept then if it may be."""
    known = _read(name, type)
    if known is not None:
        return known
    made = make()
    if may_keep():
        _keep(name, made)
    return made


def _name(content: str, part: str) -> str:
    return f"{content}-{rules()}.{part}"


def _read(name: str, type: type[T]) -> T | None:
    """What is kept by this name; None if nothing that can be read is."""
    if not MOST_BYTES:
        return None
    try:
        path = _folder() / name
        data = zlib.decompress(path.read_bytes())
        known = msgspec.msgpack.decode(data, type=type)
    except (CacheError, OSError, zlib.error, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    with suppress(OSError):
        os.utime(path)
    return known


def _keep(name: str, value: object) -> None:
    if not MOST_BYTES:
        return
    with suppress(CacheError, OSError):
        folder = _folder()
        data = zlib.compress(msgspec.msgpack.encode(value), _LEVEL)
        descriptor, part = tempfile.mkstemp(dir=folder, prefix=_PART)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(part, folder / name)
        except BaseException:
            os.unlink(part)
            raise
        _trim(folder)


_PART = "part-"
"""How the name of a file that is being written begins: of one that a kill left too."""


def digest(data: Iterable[bytes]) -> str:
    """A digest of pieces, with the length of each."""
    whole = blake2b(digest_size=16)
    for each in data:
        whole.update(len(each).to_bytes(8, "little"))
        whole.update(each)
    return whole.hexdigest()


@cache
def rules() -> str:
    """The version of the rules: that of the sources of this program."""
    return sources_version(Path(__file__).resolve().parents[1])


def sources_version(root: Path) -> str:
    """A digest of all files of the packages of `RULED` in a folder, but for compiled ones."""
    files = (path for name in RULED for path in (root / name).rglob("*") if path.is_file())
    return digest(path.read_bytes() for path in sorted(files) if path.suffix != ".pyc")


def _folder() -> Path:
    return user_cache("derived", "the folder of what follows from profiles", "")


def _trim(folder: Path) -> None:
    """Removes what was used the longest time ago, down to half of `MOST_BYTES`, if all have
    more."""
    with os.scandir(folder) as entries:
        files = [(each.stat(follow_symlinks=False), each.path) for each in entries]
    total = sum(state.st_size for state, _ in files)
    if total <= MOST_BYTES:
        return
    for state, path in sorted(files, key=lambda each: each[0].st_mtime):
        if total <= MOST_BYTES // 2:
            return
        with suppress(OSError):
            os.unlink(path)
            total -= state.st_size
