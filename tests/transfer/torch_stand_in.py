"""The part of torch that loading, saving and snapshots use, over numpy, for machines without torch.

Types that numpy does not have are integers of as many bits: the tests compare bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

__version__ = "stand-in"

NUMPY_NAMES = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e8m0fnu": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
}


class dtype:
    """A type with torch's name and numpy's memory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numpy = np.dtype(NUMPY_NAMES.get(name, name))
        self.itemsize = self.numpy.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class device:
    """A kind of device and a number, from one text or two arguments."""

    def __init__(self, kind: str | device, index: int | None = None) -> None:
        if isinstance(kind, device):
            kind, index = kind.type, kind.index
        if not isinstance(kind, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type(kind).__name__}")
        self.type, _, number = kind.partition(":")
        if self.type not in ("cpu", "cuda", "meta"):
            raise RuntimeError(
                f"Expected one of cpu, cuda, meta device type at start of device string: {kind}"
            )
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


strided = "strided"


class Tensor:
    """Memory with a type."""

    layout = strided
    requires_grad = False

    def __init__(self, array: np.ndarray, kind: dtype) -> None:
        self.array = array
        self.dtype = kind
        self.device = device("cpu")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def detach(self) -> Tensor:
        return self

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.array[key], self.dtype)

    def view(self, to: int | tuple[int, ...] | dtype) -> Tensor:
        if isinstance(to, dtype):
            return Tensor(self.array.view(to.numpy), to)
        return Tensor(self.array.reshape(to), self.dtype)

    def split(self, sizes: Sequence[int]) -> list[Tensor]:
        ends = np.cumsum(sizes)
        assert ends[-1] == len(self.array)
        return [
            Tensor(self.array[end - size : end], self.dtype)
            for end, size in zip(ends, sizes, strict=True)
        ]


def empty(shape: Sequence[int] | int, *, dtype: dtype, device: device) -> Tensor:
    assert device.type == "cpu"
    return Tensor(np.empty(shape, dtype.numpy), dtype)


def frombuffer(memory: Any, *, dtype: dtype, count: int) -> Tensor:
    return Tensor(np.frombuffer(memory, dtype.numpy, count), dtype)


FORMAT_NAMES = {
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
"""The types of the safetensors format as torch names them."""

cuda = SimpleNamespace(current_device=lambda: 0, is_available=lambda: False, device_count=lambda: 0)
version = SimpleNamespace(cuda="12.4")

for _name in [
    *("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", *NUMPY_NAMES),
]:
    setattr(sys.modules[__name__], _name, dtype(_name))


def without(*names: str) -> ModuleType:
    """The stand-in as an older torch, without these types."""
    older = ModuleType("torch")
    vars(older).update({name: value for name, value in globals().items() if name not in names})
    return older
