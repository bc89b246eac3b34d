"""The numbers of many samples as one value of a row: zlib of little-endian 8-byte numbers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Literal

NUMBER_BYTES = 8

MOST_NUMBERS = 2**22
"""The most numbers that one value holds: 32 MiB when it is unpacked."""

Kind = Literal["d", "q"]
"""The types of numbers, as the module `struct` names them: 8-byte floats and 8-byte integers."""


class BadColumn(ValueError):
    """A value that is not a column of so many numbers."""


def packed(
    values: Sequence[float] | Sequence[int], kind: Kind, *, in_memory: bool = False
) -> bytes:
    """The numbers, compressed. A column that stays ``in_memory`` has the same form and is not
    compressed, which takes a fiftieth of the time: zlib needs 256 KiB of memory to compress. Raises
    `BadColumn` for too many numbers and for one that does not fit."""
    if len(values) > MOST_NUMBERS:
        raise BadColumn(f"{len(values)} numbers are more than {MOST_NUMBERS}")
    try:
        data = struct.pack(f"<{len(values)}{kind}", *values)
    except struct.error as error:
        raise BadColumn(str(error)) from error
    if not in_memory:
        return zlib.compress(data)
    stream = zlib.compressobj(zlib.Z_NO_COMPRESSION, zlib.DEFLATED, wbits=9, memLevel=1)
    return stream.compress(data) + stream.flush()


def unpacked_bytes(blob: object, count: int) -> bytes:
    """The bytes of ``count`` numbers. Raises `BadColumn` for anything else.

    At most one byte more is unpacked than ``count`` numbers have, whatever the blob expands to.
    """
    if not isinstance(blob, bytes):
        raise BadColumn("a column is not a blob")
    if not 0 < count <= MOST_NUMBERS:
        raise BadColumn(f"a column of {count} numbers")
    size = count * NUMBER_BYTES
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(blob, size + 1)
    except zlib.error as error:
        raise BadColumn(f"a column cannot be unpacked: {error}") from error
    if len(data) != size or not stream.eof or stream.unused_data:
        raise BadColumn(f"a column is not of {count} numbers")
    return data


def unpacked(blob: object, count: int, kind: Kind) -> tuple[float, ...]:
    """The numbers. Raises `BadColumn`."""
    return struct.unpack(f"<{count}{kind}", unpacked_bytes(blob, count))
