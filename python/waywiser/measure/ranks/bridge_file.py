"""The file of a compiled bridge: where it is kept, and how it is opened to be loaded.

The folder is in the user's cache, which nodes may share. What is loaded is code: only files are
opened that no other user can have written (`waywiser.words.trusted_file`).
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

from waywiser.words import CacheError, UntrustedPath, read_trusted, why_not_read
from waywiser.words.trusted_file import open_trusted, write_private
from waywiser.words.user_cache import VARIABLE as CACHE_VARIABLE
from waywiser.words.user_cache import user_cache

MOST_BYTES = 64 << 20
"""A bridge has some 30 kB."""

_WHAT = "the folder of compiled bridges"
_REMEDY = f"name another folder with {CACHE_VARIABLE}"

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def bridge_folder() -> Path:
    """The folder of compiled bridges, made if need be. Raises `CacheError`, also if no code can be
    loaded from its file system."""
    folder = user_cache("mpi", _WHAT, f"name a folder with {CACHE_VARIABLE}", for_code=True)
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise CacheError(
            f"{_WHAT} is on a file system that is mounted noexec: a bridge there cannot be loaded",
            where=str(folder),
            remedy=_REMEDY,
        )
    return folder


def store_bridge(path: Path, content: bytes) -> None:
    """Writes a file into the folder of bridges. Raises `CacheError`."""
    try:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        write_private(path, content)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        if error.errno in _NO_ROOM:
            free = os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_frsize
            reason = f"is full ({error.strerror}: {len(content):,} bytes are needed, {free:,} free)"
        raise CacheError(f"{_WHAT} {reason}", where=str(path), remedy=_REMEDY) from error


def sha256_of(path: str) -> str:
    """The hash of a bridge; empty if there is no such file, or it is not to be trusted."""
    try:
        return hashlib.sha256(read_trusted(path, MOST_BYTES)).hexdigest()
    except (OSError, ValueError, UntrustedPath):
        return ""


def received_bridge(sha256: str) -> Path:
    """Where the bridge with this hash is, if another node has sent it. Raises `CacheError`."""
    return bridge_folder() / f"received-{sha256}.so"


def bridge_here(path: str, sha256: str = "") -> str:
    """The path of the bridge on this node: the same as on that which compiled it, if there is such
    a file with this hash; else that of the one received. Raises `CacheError`."""
    if not sha256 or sha256_of(path) == sha256:
        return path
    received = str(received_bridge(sha256))
    return received if os.path.exists(received) else path


def loaded_bridge(library: Any, path: str) -> Any:
    """The bridge, loaded by the native library from the file that was checked, and from no other
    one that has its path by then. Raises `CacheError` for a file that cannot be opened or trusted,
    and the library's ``MessengerError``."""
    try:
        with open_trusted(path) as descriptor:
            opened = f"/proc/self/fd/{descriptor}"
            try:
                return library.Bridge(opened)
            except library.MessengerError as error:
                raise library.MessengerError(str(error).replace(opened, path)) from error
    except OSError as error:
        raise CacheError(f"the bridge to MPI {why_not_read(error)}", where=path) from error
    except UntrustedPath as error:
        what = f"the bridge to MPI is not loaded: {error.where}: {error.what}"
        raise CacheError(what, where=path, remedy=error.remedy or _REMEDY) from error
