"""Safetensors files into numpy arrays and back, without PyTorch.

from waywiser.transfer.numpy import load_files, save_files

arrays = load_files("model.safetensors")
save_files(arrays, "copy.safetensors")
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy

from waywiser.transfer.checkpoint import CALL as LOAD
from waywiser.transfer.checkpoint import OpenFile, Selection, TensorNotFoundError, open_checkpoint
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer, UnsupportedTransfer
from waywiser.transfer.loading import BackgroundMaker, load, slices_of
from waywiser.transfer.safetensors_header import SafetensorsError, TensorEntry
from waywiser.transfer.safetensors_layout import (
    ARRAY_NAMES,
    CALL,
    FORMAT_NAMES,
    SizedTensor,
)
from waywiser.transfer.saving import save
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.tensor_slices import TensorIndex
from waywiser.transfer.torch_tensors import SharedTensorsError, require_apart, require_name

__all__ = [
    "SafetensorsError",
    "SharedTensorsError",
    "TensorNotFoundError",
    "load_file",
    "load_files",
    "save_files",
]


def load_file(
    path: str | os.PathLike[str],
    keys: Iterable[str] | None = None,
    slices: Mapping[str, TensorIndex] | None = None,
) -> dict[str, numpy.ndarray]:
    """Loads one checkpoint: a safetensors file, an index, or a folder. As `load_files`."""
    return load_files([path], keys, slices)


def load_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: Iterable[str] | None = None,
    slices: Mapping[str, TensorIndex] | None = None,
) -> dict[str, numpy.ndarray]:
    """Loads arrays from safetensors files to host memory; returns them by name.

    ``paths``, ``keys``, ``slices``, the order of the arrays and the errors are those of
    `waywiser.transfer.torch.load_files`. Each array has memory of its own. Thread safe.

    numpy has no type BF16 or F8; a program that has imported ``ml_dtypes`` gets its types. Without
    it, such an array raises `SafetensorsError`.
    """
    with open_checkpoint(paths, keys) as selections:
        return load(
            selections, _ArrayMaker(_dtypes(selections)), slices_of(selections, slices, LOAD)
        )


def save_files(
    arrays: Mapping[str, numpy.ndarray],
    path: str | os.PathLike[str],
    *,
    shard_bytes: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Saves arrays as a safetensors file, or as shards with an index in a folder.

    ``arrays`` are in C order and in the byte order of the machine, and none share memory. All else
    is as in `waywiser.transfer.torch.save_files`, which writes the same bytes.
    """
    checked = _checked(arrays)
    listed = [
        SizedTensor(name, FORMAT_NAMES[array.dtype.name], array.shape, array.nbytes)
        for name, array in checked.items()
    ]
    save(checked, listed, path, shard_bytes, metadata, make=_ArrayMaker({}))


def maker_of(selections: Iterable[Selection], device: Any) -> BackgroundMaker:
    """Makes arrays of the types of selected ones. Raises as `load_files` does, and
    `UnsupportedTransfer` for a device other than host memory."""
    if str(device) != "cpu":
        raise UnsupportedTransfer(
            f"device is {device!r}, and numpy has arrays in host memory only",
            where=LOAD,
            remedy="pass 'cpu', or framework='pt'",
        )
    return _ArrayMaker(_dtypes(selections))


def _dtypes(selections: Iterable[Selection]) -> dict[str, numpy.dtype[Any]]:
    """The types of all selected arrays, so that a missing one is found before any read."""
    found: dict[str, numpy.dtype[Any]] = {}
    for file, entries in selections:
        for entry in entries:
            if entry.dtype not in found:
                found[entry.dtype] = _dtype(file, entry)
    return found


def _dtype(file: OpenFile, entry: TensorEntry) -> numpy.dtype[Any]:
    name = ARRAY_NAMES.get(entry.dtype)
    if name is not None:
        with suppress(TypeError):
            return numpy.dtype(name)
    raise SafetensorsError(
        f"tensor {clipped(entry.name)} has type {entry.dtype}, which numpy does not have",
        where=str(file.path),
        remedy="exclude it with keys" + (", or import ml_dtypes first" if name else ""),
    )


def _checked(arrays: object) -> dict[str, numpy.ndarray]:
    if not isinstance(arrays, Mapping):
        raise InvalidOperand(
            f"arrays is of type {type(arrays).__name__}, not a dict of arrays",
            where=CALL,
            remedy="pass arrays by name",
        )
    for name, array in arrays.items():
        _check(name, array)
    starts = ((name, array.ctypes.data, array.nbytes) for name, array in arrays.items())
    require_apart(
        (("cpu", begin, begin + nbytes, name) for name, begin, nbytes in starts if nbytes),
        CALL,
        "array.copy()",
    )
    return dict(arrays)


def _check(name: object, array: object) -> None:
    """Raises `InvalidOperand`, `UnsupportedTransfer`, `InvalidTransfer` if it cannot be saved."""
    require_name(name, "arrays", "an array", CALL)
    if not isinstance(array, numpy.ndarray):
        raise InvalidOperand(
            f"arrays has {clipped(name)} of type {type(array).__name__}, not an array",
            where=CALL,
            remedy="pass numpy arrays; waywiser.transfer.torch saves tensors",
        )
    if array.dtype.name not in FORMAT_NAMES or not array.dtype.isnative:
        raise UnsupportedTransfer(
            f"array {clipped(name)} has type {array.dtype.str} ({array.dtype.name}), which "
            "safetensors does not have",
            where=CALL,
            remedy="convert it with array.astype()",
        )
    if not array.flags.c_contiguous:
        raise InvalidTransfer(
            f"array {clipped(name)} is not contiguous: its shape is {array.shape} and its "
            f"strides are {array.strides}",
            where=CALL,
            remedy="pass numpy.ascontiguousarray(array)",
        )


class _ArrayMaker:
    """Makes numpy arrays; ``dtypes`` by the names of the format."""

    def __init__(self, dtypes: Mapping[str, numpy.dtype[Any]]) -> None:
        self._dtypes = dtypes

    def array(self, entry: TensorEntry) -> numpy.ndarray:
        return numpy.empty(entry.shape, dtype=self._dtypes[entry.dtype])

    def row(self, nbytes: int) -> numpy.ndarray:
        return numpy.empty(nbytes, dtype=numpy.uint8)

    def bytes_of(self, array: numpy.ndarray) -> numpy.ndarray:
        return array.reshape(-1).view(numpy.uint8)

    def rows(self, row: numpy.ndarray, rows: int, stride: int, nbytes: int) -> numpy.ndarray:
        return numpy.lib.stride_tricks.as_strided(row, (rows, nbytes), (stride, 1))

    def indexed(self, array: numpy.ndarray, index: tuple[int | slice, ...]) -> numpy.ndarray:
        return numpy.array(array[index])

    def beside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def wait(self) -> None:
        """Copies in host memory are complete at once."""

    def hand_out(self, array: numpy.ndarray) -> None:
        """Host memory has one owner."""
