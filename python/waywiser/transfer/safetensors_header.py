"""The header of a safetensors file, checked as hostile input.

A file is an 8-byte little-endian length, a JSON object of that length, and the bytes of the tensors
(https://github.com/huggingface/safetensors#format). Nothing of a header is used before it is
checked: every tensor lies within the file, has the bytes that its type and shape need, and shares
none with another; together they cover the file.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from waywiser.errors import WaywiserError
from waywiser.transfer.strict_json import StrictJsonError, clipped, parse_object

LENGTH_BYTES = 8
HEADER_BYTES_LIMIT = 100_000_000
"""The limit of the format."""
RANK_LIMIT = 64
"""The most dimensions of one tensor: as many as PyTorch and NumPy compute with."""
TENSOR_BYTES_LIMIT = 2**63 - 1
METADATA = "__metadata__"
FIELDS = frozenset({"dtype", "shape", "data_offsets"})

_TYPES_OF_BITS = {
    4: "F4",
    6: "F6_E2M3 F6_E3M2",
    8: "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ",
    16: "I16 U16 F16 BF16",
    32: "I32 U32 F32",
    64: "I64 U64 F64 C64",
}
DTYPE_BITS = {name: bits for bits, names in _TYPES_OF_BITS.items() for name in names.split()}
"""Bits of one element of each type of the format."""

_INTEGERS = frozenset({int})
COPY_AGAIN = "download or copy the file again"
CHECK_KIND = "check that it is a safetensors file"
GIT_POINTER = b"version "
"""How the file begins that Git keeps instead of a large one."""


class SafetensorsError(WaywiserError, ValueError):
    """A file that is not a valid safetensors file, or an index that is not a valid index."""


class TensorEntry(NamedTuple):
    """One tensor of a file: its type as the format writes it, its shape, where its bytes are."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    """The first byte, from the start of the file."""
    nbytes: int


class Header(NamedTuple):
    """What a valid header says: all tensors in the order of their bytes, and the free text."""

    tensors: dict[str, TensorEntry]
    metadata: dict[str, str]


def read_header(descriptor: int, file_bytes: int, where: str) -> Header:
    """Reads and checks the header of an open file of ``file_bytes`` bytes; ``where`` names it.

    Raises `SafetensorsError` if the header is not valid or the file ends early.
    """
    if file_bytes == 0:
        raise SafetensorsError("the file is empty", where=where, remedy=COPY_AGAIN)
    start = _read(descriptor, 0, LENGTH_BYTES, where)
    if start == GIT_POINTER:
        raise SafetensorsError(
            "it is no safetensors file, and begins like a pointer of Git LFS",
            where=where,
            remedy="get the file itself with git lfs pull",
        )
    length = int.from_bytes(start, "little")
    if length > HEADER_BYTES_LIMIT:
        raise SafetensorsError(
            "it is no safetensors file: its header would have "
            f"{length:,} bytes and the format allows {HEADER_BYTES_LIMIT:,}",
            where=where,
            remedy=CHECK_KIND,
        )
    if length > file_bytes - LENGTH_BYTES:
        raise SafetensorsError(
            f"its header would have {length:,} bytes and the file has {file_bytes:,}",
            where=where,
            remedy=COPY_AGAIN,
        )
    raw = _read(descriptor, LENGTH_BYTES, length, where)
    return parse_header(raw, file_bytes - LENGTH_BYTES - length, where)


def parse_header(raw: bytes, data_bytes: int, where: str) -> Header:
    """Checks the JSON text of a header that ``data_bytes`` bytes of tensors follow.

    Raises `SafetensorsError`, and nothing else, for any bytes.
    """
    try:
        parsed = parse_object(raw, counts_only=True)
        metadata = _metadata(parsed.pop(METADATA, None))
        data_start = LENGTH_BYTES + len(raw)
        entries = [_entry(name, value, data_start) for name, value in parsed.items()]
        entries.sort(key=lambda entry: (entry.offset, entry.nbytes))
        _check_cover(entries, data_start, data_bytes)
    except StrictJsonError as error:
        raise SafetensorsError(
            f"its header is not valid: {error}", where=where, remedy=COPY_AGAIN
        ) from None
    return Header({entry.name: entry for entry in entries}, metadata)


def _read(descriptor: int, offset: int, nbytes: int, where: str) -> bytes:
    parts = bytearray()
    while len(parts) < nbytes:
        part = os.pread(descriptor, nbytes - len(parts), offset + len(parts))
        if not part:
            raise SafetensorsError(
                f"the file ends at byte {offset + len(parts):,}, within its header",
                where=where,
                remedy=f"{CHECK_KIND}, or {COPY_AGAIN}",
            )
        parts += part
    return bytes(parts)


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise StrictJsonError(f"{METADATA} is not an object of texts")
    return value


def _entry(name: str, value: Any, data_start: int) -> TensorEntry:
    if not isinstance(value, dict) or value.keys() != FIELDS:
        raise StrictJsonError(
            f"tensor {clipped(name)} does not have exactly {', '.join(sorted(FIELDS))}"
        )
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    bits = DTYPE_BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise StrictJsonError(f"tensor {clipped(name)} has a type that the format does not know")
    if not _counts(shape) or len(shape) > RANK_LIMIT:
        raise StrictJsonError(
            f"the shape of tensor {clipped(name)} is not a list of at most {RANK_LIMIT} sizes"
        )
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise StrictJsonError(f"the data_offsets of tensor {clipped(name)} are not [begin, end]")
    elements, extent = 1, 1
    for size in shape:
        elements *= size
        extent *= size or 1  # The strides of an empty tensor must not overflow either.
        if extent * bits > 8 * TENSOR_BYTES_LIMIT:
            raise StrictJsonError(f"tensor {clipped(name)} has 2^63 bytes or more by its shape")
    begin, end = offsets
    if (end - begin) * 8 != elements * bits:
        raise StrictJsonError(
            f"tensor {clipped(name)} has {end - begin:,} bytes, and its type and shape need "
            f"{elements * bits / 8:,.15g}"
        )
    return TensorEntry(name, dtype, tuple(shape), data_start + begin, end - begin)


def _counts(value: Any) -> bool:
    """Whether this is a list of integers; the parser raises for negative ones. Not of booleans."""
    return isinstance(value, list) and _INTEGERS.issuperset(map(type, value))


def _check_cover(entries: list[TensorEntry], data_start: int, data_bytes: int) -> None:
    """Raises for bytes of two tensors, of none, and beyond the end of the file."""
    reached = data_start
    for before, entry in zip([None, *entries], entries, strict=False):
        if entry.offset < reached:
            other = "" if before is None else f" and {clipped(before.name)}"
            raise StrictJsonError(f"tensors {clipped(entry.name)}{other} overlap")
        if entry.offset > reached:
            raise StrictJsonError(
                f"{entry.offset - reached:,} bytes before tensor {clipped(entry.name)} "
                "belong to no tensor"
            )
        reached += entry.nbytes
    described = reached - data_start
    if described != data_bytes:
        raise StrictJsonError(
            f"its tensors have {described:,} bytes and the file has {data_bytes:,} after the header"
        )
