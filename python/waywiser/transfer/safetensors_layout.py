"""What a safetensors file and the index of a sharded checkpoint contain, before they are written.

The order of the tensors, the header and the padding are those of the safetensors library, and the
names of shards and the index those of huggingface_hub, so that both read and write the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from waywiser.transfer.errors import InvalidOperand, InvalidTransfer
from waywiser.transfer.safetensors_header import (
    HEADER_BYTES_LIMIT,
    LENGTH_BYTES,
    METADATA,
    TensorEntry,
)
from waywiser.transfer.strict_json import clipped

CALL = "save_files"

HEADER_MULTIPLE = 8
"""The header is padded with spaces, so that the first tensor starts at a multiple of this."""

_DTYPES_IN_FILE = (
    "U64 I64 F64 C64 F32 U32 I32 BF16 F16 U16 I16 F8_E5M2FNUZ F8_E4M3FNUZ F8_E8M0 F8_E4M3 F8_E5M2 "
    "I8 U8 F6_E3M2 F6_E2M3 F4 BOOL"
)
_RANK = {name: rank for rank, name in enumerate(_DTYPES_IN_FILE.split())}
"""The order of the tensors in a file: by type, with the most aligned ones first, then by name."""

ARRAY_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "I64": "int64",
    "U64": "uint64",
    "F64": "float64",
    "C64": "complex64",
}
"""Types of the format as torch, numpy and ml_dtypes name them. Those of less than a byte are
missing: none of these has an array of the same shape for them."""

FORMAT_NAMES = {name: dtype for dtype, name in ARRAY_NAMES.items()}

MOST_SHARDS = 99_999
"""The largest number of shards: file names have five digits for it."""


class SizedTensor(NamedTuple):
    """What the header says of a tensor, without the place of its bytes."""

    name: str
    dtype: str
    """The type by its name in the format."""
    shape: tuple[int, ...]
    nbytes: int


class FileLayout(NamedTuple):
    """A file that is to be written: its first bytes, and where the bytes of each tensor are."""

    start: bytes
    """The length of the header, and the header."""
    entries: tuple[TensorEntry, ...]
    """The tensors in the order of the file."""
    nbytes: int
    """The size of the whole file."""


def lay_out(tensors: Iterable[SizedTensor], metadata: Mapping[str, str] | None) -> FileLayout:
    """Lays out a file of these tensors; ``metadata`` None: the header has none.

    The keys of the metadata are sorted. Raises `InvalidTransfer` for a header that is longer than
    the format allows.
    """
    ordered = sorted(tensors, key=lambda each: (_RANK[each.dtype], each.name))
    header: dict[str, object] = {}
    if metadata is not None:
        header[METADATA] = dict(sorted(metadata.items()))
    reached = 0
    for each in ordered:
        header[each.name] = {
            "dtype": each.dtype,
            "shape": each.shape,
            "data_offsets": (reached, reached + each.nbytes),
        }
        reached += each.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % HEADER_MULTIPLE)
    if len(text) > HEADER_BYTES_LIMIT:
        raise InvalidTransfer(
            f"the header has {len(text):,} bytes and the format allows {HEADER_BYTES_LIMIT:,}",
            where=CALL,
            remedy="save fewer tensors in one file, or a shorter metadata",
        )
    entries = []
    at = LENGTH_BYTES + len(text)
    for each in ordered:
        entries.append(TensorEntry(each.name, each.dtype, each.shape, at, each.nbytes))
        at += each.nbytes
    return FileLayout(len(text).to_bytes(LENGTH_BYTES, "little") + text, tuple(entries), at)


def split_into_shards(
    tensors: Iterable[SizedTensor], shard_bytes: int
) -> dict[str, list[SizedTensor]]:
    """Divides tensors among files in the order given; returns those of each file by its name.

    A file has at most ``shard_bytes`` bytes of tensors, unless it has a single one that is larger.
    A single file has no number in its name.
    """
    shards: list[list[SizedTensor]] = []
    open_shard: list[SizedTensor] = []
    filled = 0
    for each in tensors:
        if each.nbytes > shard_bytes:
            shards.append([each])
            continue
        if filled + each.nbytes > shard_bytes:
            shards.append(open_shard)
            open_shard, filled = [], 0
        open_shard.append(each)
        filled += each.nbytes
    if open_shard or not shards:
        shards.append(open_shard)
    if len(shards) > MOST_SHARDS:
        raise InvalidTransfer(
            f"there would be {len(shards):,} shards, more than {MOST_SHARDS:,}",
            where=CALL,
            remedy="pass a larger shard_bytes",
        )
    if len(shards) == 1:
        return {"model.safetensors": shards[0]}
    count = len(shards)
    return {
        f"model-{number:05d}-of-{count:05d}.safetensors": shard
        for number, shard in enumerate(shards, 1)
    }


def index_of(shards: Mapping[str, Iterable[SizedTensor]]) -> bytes:
    """The text of the index of these shards."""
    listed = {each.name: file for file, shard in shards.items() for each in shard}
    total = sum(each.nbytes for shard in shards.values() for each in shard)
    return json.dumps({"metadata": {"total_size": total}, "weight_map": listed}, indent=2).encode()


def checked_metadata(metadata: object) -> dict[str, str] | None:
    """The metadata of a caller as texts. Raises `InvalidOperand` for anything else."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidOperand(
            f"metadata is {clipped(metadata)}, not a dict of texts",
            where=CALL,
            remedy="pass texts by name",
        )
    for key, text in metadata.items():
        for part in (key, text):
            if not isinstance(part, str) or not is_text(part):
                raise InvalidOperand(
                    f"metadata holds {clipped(part)}, which is no Unicode text",
                    where=CALL,
                    remedy="pass texts by name, for example numbers as str(number)",
                )
    return dict(metadata)


def is_text(name: str) -> bool:
    """Whether UTF-8 has the text: lone surrogates are none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
