"""The first bytes of a profile: what they say without SQLite, and what is wrong with a file that is
none, in one line."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from waywiser.profile.compressed import is_compressed, packing_of, unpacked_start
from waywiser.profile.errors import (
    MissingProfile,
    NewerProfile,
    NotAProfile,
    OlderProfile,
    ProfileError,
)
from waywiser.profile.schema import APPLICATION_ID, SCHEMA_VERSION
from waywiser.words import NotRegular, open_regular, why_not_read

_MAGIC = b"SQLite format 3\0"
_POLICY = b'"waywiser-policy"'
"""A text in the first line of a policy file (docs/policy.md)."""
_HEADER_BYTES = 100
_REMEDY = "name a file that waywiser survey made"


def is_profile(path: Path) -> bool:
    """Whether the file begins as profiles do; no, if it cannot be read."""
    try:
        with open_regular(path) as descriptor:
            start = os.read(descriptor, len(_MAGIC))
        if packing_of(start) is not None:
            start = unpacked_start(path, len(_MAGIC))
        return start == _MAGIC
    except (OSError, ProfileError):
        return False


def stated_bytes(path: Path) -> int:
    """The size that the first 100 bytes of the file state: page size times page count (SQLite's
    file format, section 1.3). Raises `MissingProfile`, `NotAProfile`, `OlderProfile`, or
    `NewerProfile`."""
    where, data = str(path), _first_bytes(path)
    page_size, pages, version, application_id = struct.unpack_from(">H10xI28xI4xI", data, 16)
    if application_id != APPLICATION_ID:
        raise NotAProfile("is another program's database", where=where, remedy=_REMEDY)
    if version != SCHEMA_VERSION:
        what = f"is a profile of version {version}; this program reads version {SCHEMA_VERSION}"
        if version > SCHEMA_VERSION:
            raise NewerProfile(what, where=where, remedy="update Waywiser")
        remedy = "survey the machine again, or read it with the Waywiser that made it"
        raise OlderProfile(what, where=where, remedy=remedy)
    return int((65536 if page_size == 1 else page_size) * pages)


def database_bytes(path: Path) -> int:
    """The size of a file; of a compressed one that of the database in it. Raises like
    `stated_bytes`, and `OSError`."""
    return stated_bytes(path) if is_compressed(path) else path.stat().st_size


def _first_bytes(path: Path) -> bytes:
    """The header of a database, unread. Raises `MissingProfile` and `NotAProfile`."""
    where = str(path)
    try:
        with open_regular(path) as descriptor:
            data = os.read(descriptor, _HEADER_BYTES)
        if is_packed := packing_of(data) is not None:
            data = unpacked_start(path, _HEADER_BYTES)
    except FileNotFoundError:
        if where == "-":
            raise MissingProfile(
                "a profile cannot be read from standard input", remedy="name a file"
            ) from None
        raise MissingProfile(
            "there is no such file", where=where, remedy="waywiser survey -o FILE makes one"
        ) from None
    except OSError as error:
        raise NotAProfile(
            why_not_read(error),
            where=where,
            remedy=_REMEDY if isinstance(error, NotRegular) else "ask its owner",
        ) from error
    if not data:
        raise NotAProfile("the file is empty", where=where, remedy=_REMEDY)
    if len(data) < _HEADER_BYTES or not data.startswith(_MAGIC):
        if is_packed:
            what = "is compressed, and what is in it is not a profile"
            raise NotAProfile(what, where=where, remedy=_REMEDY)
        if _POLICY in data:
            raise NotAProfile("is a policy, and no profile", where=where, remedy=_REMEDY)
        from waywiser.profile.trace_file import is_trace

        if is_trace(path):
            what = "is a trace, and no profile"
            raise NotAProfile(what, where=where, remedy="waywiser show, or report, has it")
        raise NotAProfile("is not a profile", where=where, remedy=_REMEDY)
    return data
