"""A checksum for each row of a profile, so that a changed byte is found when the row is read."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

_ENCODER = msgspec.msgpack.Encoder()


def checksum(values: Sequence[Any]) -> int:
    """CRC-32 of the values of a row as a MessagePack array, in the order of the columns."""
    return zlib.crc32(_ENCODER.encode(values))


def sealed(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values with their checksum as the last one.

    SQLite stores the float -0.0 as 0, so it becomes 0.0 before the checksum is made.
    """
    stored = tuple(value + 0.0 if isinstance(value, float) else value for value in values)
    return (*stored, checksum(stored))


def first_changed(
    rows: Sequence[tuple[Any, ...]], data: Sequence[tuple[Any, ...]]
) -> tuple[Any, ...] | None:
    """The first row whose last value is not the checksum of the others, which are its ``data``;
    None if there is none."""
    encode, crc = _ENCODER.encode, zlib.crc32
    for row, own in zip(rows, data, strict=True):
        stored = row[-1]
        if stored != crc(encode(own)) or type(stored) is not int:
            return row
    return None
