"""Shapes and strides that describe more memory than there can be."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray

from waywiser import transfer

HUGE = 1 << 62


class Tensor(ctypes.Structure):
    """DLTensor of DLPack."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class RawDlpack:
    """An array of float32 on the host whose DLPack capsule says any shape and strides."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
        self.memory = np.zeros(16, np.float32)
        lengths = ctypes.c_int64 * len(shape)
        self.tensor = Tensor(
            data=self.memory.ctypes.data,
            device_type=1,
            dimensions=len(shape),
            code=2,
            bits=32,
            lanes=1,
            shape=lengths(*shape),
            strides=lengths(*strides) if strides is not None else None,
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class RawCudaArray:
    """An array of float32 on a GPU whose interface says any shape and strides."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
        self.array = GpuArray(16, np.float32)
        self.__cuda_array_interface__ = {
            **self.array.__cuda_array_interface__,
            "shape": shape,
            "strides": strides,
        }


@pytest.mark.parametrize("kind", [RawDlpack, RawCudaArray])
@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((HUGE,), None),
        ((HUGE, 4), None),
        ((1 << 31, 1 << 31), None),
        ((3, 1 << 61), None),
        ((2, 4), (1 << 61, 1)),
        ((1 << 40, 2), (1 << 30, 1)),
        ((4, 2), (-(1 << 61), 1)),
        ((HUGE, 1 << 10), (0, 0)),
    ],
)
def test_what_is_beyond_any_memory_is_an_error(kind: Any, shape: Any, strides: Any) -> None:
    if kind is RawCudaArray and strides is not None:
        strides = tuple(min(max(4 * s, -(1 << 63)), (1 << 63) - 1) for s in strides)
    like = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (1,), (4,))
    for destination, source in ((like, kind(shape, strides)), (kind(shape, strides), like)):
        with pytest.raises(transfer.InvalidOperand, match="beyond any memory"):
            transfer.copy(destination, source)
        with pytest.raises(transfer.InvalidOperand, match="beyond any memory"):
            transfer.copy_blocks(destination, source, [], [])


@pytest.mark.parametrize("kind", [RawDlpack, RawCudaArray])
@pytest.mark.parametrize("shape", [(-1,), (2, -3), (0, -1)])
def test_a_negative_length_is_an_error(kind: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(transfer.InvalidOperand, match="negative length"):
        transfer.copy(np.zeros(shape[:-1], np.float32), kind(shape))


@pytest.mark.parametrize("kind", [RawDlpack, RawCudaArray])
@pytest.mark.parametrize("shape", [(0, HUGE, HUGE), (HUGE, 0), (HUGE, HUGE, 0)])
def test_large_lengths_of_arrays_without_elements(kind: Any, shape: tuple[int, ...]) -> None:
    transfer.copy(kind(shape), kind(shape))
    transfer.copy_blocks(kind(shape), kind(shape), [], [])


@pytest.mark.parametrize(("bits", "lanes"), [(64, 2), (64, 4), (8, 3), (8, 4), (32, 2), (128, 1)])
def test_an_index_of_vectors_or_of_other_integers_is_an_error(bits: int, lanes: int) -> None:
    index = RawDlpack((1,))
    index.tensor.code, index.tensor.bits, index.tensor.lanes = 0, bits, lanes
    destination, source = np.zeros((4, 8)), np.ones((4, 8))
    for arguments in ((index, [0]), ([0], index)):
        with pytest.raises(transfer.InvalidOperand, match="not integers of 8, 16, 32 or 64 bits"):
            transfer.copy_blocks(destination, source, *arguments)
    assert not destination.any()
