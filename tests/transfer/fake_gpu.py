"""Arrays and streams on the fake GPU, as a GPU library of Python would have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "waywiser_fake._transfer", reason="the transfer library over the fake GPU is not built"
)

from waywiser_fake import _testing

configure = _testing.configure
copies = _testing.copies
launches = _testing.launches
live = _testing.live
default_stream = _testing.default_stream
current_gpu = _testing.current_gpu
set_current_gpu = _testing.set_current_gpu
DeviceBuffer = _testing.DeviceBuffer
Gate = _testing.Gate
Graph = _testing.Graph
Registration = _testing.Registration
Stream = _testing.Stream


class GpuArray:
    """An array on a fake GPU with the CUDA array interface."""

    def __init__(
        self,
        shape: int | tuple[int, ...],
        dtype: Any = np.uint8,
        *,
        gpu: int = 0,
        stream: int | None = None,
        read_only: bool = False,
        buffer: Any = None,
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        self.buffer = buffer or DeviceBuffer(gpu, max(nbytes, 1))
        self.stream = stream
        self.read_only = read_only
        self.offset = offset
        self.strides = strides

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.buffer.address + self.offset, self.read_only),
            "strides": self.strides,
            "stream": self.stream,
            "version": 3,
        }

    def view(
        self, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int = 0
    ) -> GpuArray:
        return GpuArray(
            shape, self.dtype, buffer=self.buffer, strides=strides, offset=self.offset + offset
        )

    def get(self) -> np.ndarray[Any, Any]:
        """The elements after all that is in the GPU's default stream."""
        default_stream(self.buffer.gpu).synchronize()
        base = np.frombuffer(self.buffer.read(), np.uint8)
        return np.ndarray(self.shape, self.dtype, base, self.offset, self.strides).copy()

    def set(self, values: np.ndarray[Any, Any]) -> GpuArray:
        """Writes a contiguous array without any stream."""
        assert self.strides is None and self.offset == 0
        self.buffer.write(np.ascontiguousarray(values, self.dtype).tobytes())
        return self


class DlpackArray:
    """Hands on the DLPack capsules of another array, and counts those that live."""

    def __init__(self, array: Any, *, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        where: tuple[int, int] = self.array.__dlpack_device__()
        return where

    def __dlpack__(self, **arguments: Any) -> Any:
        if not self.versioned and "max_version" in arguments:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**arguments)


def random_array(shape: int | tuple[int, ...], dtype: Any = np.uint8, seed: int = 0) -> Any:
    """An array of random bytes."""
    shape = (shape,) if isinstance(shape, int) else shape
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    random = np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)
    return random.view(dtype).reshape(shape)


def same_bytes(one: Any, other: Any) -> bool:
    return bool(np.asarray(one).tobytes() == np.asarray(other).tobytes())


_closed: list[Any] = []


def gate_on(stream: Any, gpu: int = 0) -> Any:
    """Closes a gate in the stream, and returns it."""
    gate = Gate(gpu)
    gate.close(stream)
    _closed.append(gate)
    return gate


def open_gates() -> None:
    """Opens what a test that failed may have left closed: to free memory waits for the GPU."""
    while _closed:
        _closed.pop().open()
