"""Profiles that are compressed: unpacked in memory, as many bytes as their header states.

Nothing is written, so that nothing is left behind. What unpacks to more or fewer bytes than the
header of the database in it states is an error, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.profile.errors import DamagedProfile, NotAProfile
from waywiser.words import open_regular

MOST_BYTES = 2**30
"""Bytes that are unpacked at most: the largest profile that was seen has less than a tenth."""

MOST_DICTIONARY_BYTES = 2**28
"""Memory that unpacking xz takes at most; of a file that ``xz -9`` made it is a quarter."""

_CHUNK_BYTES = 2**18

_LIBRARY_ERRORS = ("LZMAError", "ZstdError")
"""Errors of modules that not every Python has."""


class _Zlib:
    """The decompressor of gzip, with the interface of that of xz."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data


class _Packing(NamedTuple):
    magic: bytes
    """What a file begins with."""
    command: str
    """Unpacks a file."""
    decompressor: Callable[[], Any] | None = None
    """None if Waywiser does not unpack it."""


def _of_library(
    module: str, name: str, *arguments: Any, **options: Any
) -> Callable[[], Any] | None:
    """A decompressor of the standard library; None if this Python was built without it."""
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except ImportError:
        return None
    return partial(found, *arguments, **options)


_PACKINGS = (
    _Packing(
        b"\xfd7zXZ\0",
        "xz -dk",
        _of_library("lzma", "LZMADecompressor", memlimit=MOST_DICTIONARY_BYTES),
    ),
    _Packing(b"\x1f\x8b", "gunzip -k", _Zlib),
    _Packing(b"BZh", "bunzip2 -k", _of_library("bz2", "BZ2Decompressor")),
    _Packing(b"\x28\xb5\x2f\xfd", "zstd -dk", _of_library("compression.zstd", "ZstdDecompressor")),
    _Packing(b"\x04\x22\x4d\x18", "lz4 -d"),
    _Packing(b"PK\x03\x04", "unzip"),
    _Packing(b"7z\xbc\xaf\x27\x1c", "7z x"),
)


def packing_of(start: bytes) -> _Packing | None:
    """How a file with these first bytes is compressed; None if it is not."""
    return next((each for each in _PACKINGS if start.startswith(each.magic)), None)


def is_compressed(path: Path) -> bool:
    """Raises `OSError`."""
    with open_regular(path) as descriptor:
        return packing_of(os.read(descriptor, 16)) is not None


def unpacked_start(path: Path, count: int) -> bytes:
    """The first bytes of what a compressed file holds. Raises `NotAProfile`, `DamagedProfile` and
    `OSError`."""
    return bytes(_unpacked(path, count))


def unpacked(path: Path, stated: int) -> bytearray:
    """The database in a compressed file, of which its header states so many bytes. Raises
    `NotAProfile` for a larger one than is unpacked, `DamagedProfile` for one of another size, and
    `OSError`."""
    remedy = f"unpack it with {_required(path).command}"
    if stated > MOST_BYTES:
        raise NotAProfile(
            f"is compressed, and unpacks to {stated:,} bytes; at most {MOST_BYTES:,} are unpacked",
            where=str(path),
            remedy=remedy,
        )
    data = _unpacked(path, stated + 1)
    if len(data) != stated:
        more = "more" if len(data) > stated else f"{len(data):,}"
        raise _damaged(path, f"it unpacks to {more} bytes, and its header states {stated:,}")
    return data


def _required(path: Path) -> _Packing:
    with open_regular(path) as descriptor:
        packing = packing_of(os.read(descriptor, 16))
    if packing is None:
        raise NotAProfile("is not compressed", where=str(path))
    return packing


def _unpacked(path: Path, most: int) -> bytearray:
    """What the file holds, up to ``most`` bytes. A file may have several streams."""
    packing, found = _required(path), bytearray()
    if packing.decompressor is None:
        command = f"unpack it with {packing.command}"
        raise NotAProfile("is compressed", where=str(path), remedy=command)
    with open_regular(path) as descriptor:
        decompressor, data = packing.decompressor(), b""
        try:
            while len(found) < most:
                if decompressor.eof:
                    data = decompressor.unused_data or os.read(descriptor, _CHUNK_BYTES)
                    if packing_of(data) is not packing:  # padding, or another file after it
                        break
                    decompressor = packing.decompressor()
                elif decompressor.needs_input:
                    data = os.read(descriptor, _CHUNK_BYTES)
                    if not data:
                        raise _damaged(path, "it is truncated")
                found += decompressor.decompress(data, most - len(found))
                data = b""
        except (zlib.error, ValueError, EOFError) as error:
            raise _damaged(path, str(error)) from error
        except OSError as error:
            if error.errno is not None:
                raise
            raise _damaged(path, str(error)) from error  # of bz2
        except Exception as error:
            if type(error).__name__ not in _LIBRARY_ERRORS:
                raise
            raise _damaged(path, str(error)) from error
    return found


def _damaged(path: Path, detail: str) -> DamagedProfile:
    return DamagedProfile(
        f"the compressed profile is damaged ({detail})",
        where=str(path),
        remedy="copy it again, or survey again",
    )
