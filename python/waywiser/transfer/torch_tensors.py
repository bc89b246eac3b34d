"""Which tensors of torch can be saved: dense, contiguous, with memory of their own.

torch is passed in, because only `waywiser.transfer.torch` imports it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from waywiser.transfer.errors import (
    InvalidOperand,
    InvalidTransfer,
    TransferError,
    UnsupportedTransfer,
)
from waywiser.transfer.safetensors_header import METADATA
from waywiser.transfer.safetensors_layout import SizedTensor, is_text
from waywiser.transfer.strict_json import clipped


class SharedTensorsError(TransferError, RuntimeError):
    """Tensors that share memory, which a file would have twice and a reader as two tensors."""


def checked_tensors(
    tensors: object, torch: Any, dtypes: Mapping[str, str], where: str
) -> dict[str, Any]:
    """The tensors of a caller by name, if all of them can be saved.

    ``dtypes``: the types that can be, by the names that torch has for them. Raises `InvalidOperand`
    for what is no dict of tensors, `SharedTensorsError` for two that share memory,
    `InvalidTransfer` for one that is not contiguous or has no memory, `UnsupportedTransfer` for a
    type or a layout.
    """
    checked = named_tensors(tensors, torch, where)
    for name, tensor in checked.items():
        if tensor.layout is not torch.strided:
            raise UnsupportedTransfer(
                f"tensor {clipped(name)} is {tensor.layout}, not dense",
                where=where,
                remedy="pass tensor.to_dense()",
            )
        if tensor.device.type == "meta":
            raise InvalidTransfer(
                f"tensor {clipped(name)} is on the device meta and has no memory",
                where=where,
                remedy="load or initialise it first",
            )
        if _dtype_name(tensor) not in dtypes:
            raise UnsupportedTransfer(
                f"tensor {clipped(name)} has type {tensor.dtype}, which safetensors does not have",
                where=where,
                remedy="convert it to another type",
            )
    _check_apart(checked, where)
    for name, tensor in checked.items():
        if not tensor.is_contiguous():
            raise InvalidTransfer(
                f"tensor {clipped(name)} is not contiguous: its shape is {tuple(tensor.shape)} and "
                f"its strides are {tuple(tensor.stride())}",
                where=where,
                remedy="pass tensor.contiguous()",
            )
    return checked


def named_tensors(tensors: object, torch: Any, where: str) -> dict[str, Any]:
    """A copy of a dict of tensors. Raises `InvalidOperand` for anything else."""
    if not isinstance(tensors, Mapping):
        raise InvalidOperand(
            f"tensors is of type {type(tensors).__name__}, not a dict of tensors",
            where=where,
            remedy="pass tensors by name, for example model.state_dict()",
        )
    for name, tensor in tensors.items():
        require_name(name, "tensors", "a tensor", where)
        if not isinstance(tensor, torch.Tensor):
            raise InvalidOperand(
                f"tensors has {clipped(name)} of type {type(tensor).__name__}, not a tensor",
                where=where,
                remedy="pass tensors only, for example torch.tensor(value)",
            )
    return dict(tensors)


def require_name(name: object, given: str, one: str, where: str) -> None:
    """Raises `InvalidOperand` for a key that no file can have: ``given`` are ``tensors`` or
    ``arrays``, and ``one`` is one of them."""
    if not isinstance(name, str) or not is_text(name) or name == METADATA:
        raise InvalidOperand(
            f"{given} has the key {clipped(name)}, which cannot be the name of {one}",
            where=where,
            remedy=f"pass {given} by names that are texts",
        )


def sized(name: str, tensor: Any, dtypes: Mapping[str, str]) -> SizedTensor:
    """What a file says of a checked tensor."""
    return SizedTensor(name, dtypes[_dtype_name(tensor)], tuple(tensor.shape), tensor.nbytes)


def bytes_of(tensor: Any, torch: Any) -> Any:
    """A contiguous tensor as a row of bytes."""
    return tensor.detach().view(-1).view(torch.uint8)


def _dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _check_apart(tensors: Mapping[str, Any], where: str) -> None:
    """Raises for the first two tensors, by their addresses, that have a byte in common."""
    require_apart(
        (
            (str(tensor.device), tensor.data_ptr(), tensor.data_ptr() + _extent(tensor), name)
            for name, tensor in tensors.items()
            if tensor.nbytes
        ),
        where,
        "tensor.clone()",
    )


def require_apart(known: Iterable[tuple[str, int, int, str]], where: str, copy: str) -> None:
    """Raises `SharedTensorsError` for the first two of ``known``, by their addresses, that have a
    byte in common: each is a device, the first byte, the one after the last, and a name."""
    ranges = sorted(known)
    last: tuple[str, int, int, str] | None = None
    for each in ranges:
        device, begin, end, name = each
        if last is not None and last[0] == device and begin < last[2]:
            raise SharedTensorsError(
                f"tensors {clipped(last[3])} and {clipped(name)} share memory: a file would have "
                "it twice, and they would be loaded as two tensors",
                where=where,
                remedy=f"save one of them, or pass {copy}",
            )
        if last is None or last[0] != device or end > last[2]:
            last = each


def _extent(tensor: Any) -> int:
    """Bytes from the first to the end of the last element. No stride of torch is negative."""
    if tensor.is_contiguous():
        return int(tensor.nbytes)
    item = tensor.nbytes // math.prod(tensor.shape)
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return int(item * (1 + sum((size - 1) * stride for size, stride in steps)))
