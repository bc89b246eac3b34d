"""Safetensors files for tests, valid and not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def header_of(tensors: Mapping[str, tuple[str, list[int], int]], **more: Any) -> dict[str, Any]:
    """The header object of tensors that lie one after another: type, shape and bytes of each."""
    header: dict[str, Any] = dict(more)
    reached = 0
    for name, (dtype, shape, nbytes) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [reached, reached + nbytes],
        }
        reached += nbytes
    return header


def file_of(header: object, data: bytes, pad: int = 8) -> bytes:
    """The bytes of a file. The header is padded with spaces to a multiple of ``pad``."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % pad)
    return len(text).to_bytes(8, "little") + text + data


def write_bytes(path: Path, tensors: Mapping[str, tuple[str, list[int], bytes]]) -> None:
    """Writes a file of tensors with the given types, shapes and bytes."""
    sized = {name: (dtype, shape, len(data)) for name, (dtype, shape, data) in tensors.items()}
    data = b"".join(data for _, _, data in tensors.values())
    path.write_bytes(file_of(header_of(sized), data))
