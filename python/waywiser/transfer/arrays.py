"""New arrays that a copy fills, or that are pinned."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from waywiser.transfer.errors import (
    InvalidOperand,
    InvalidTransfer,
    TransferMemoryError,
    UnsupportedTransfer,
)
from waywiser.transfer.module import native
from waywiser.transfer.torch_version import REMEDY, too_old

if TYPE_CHECKING:
    from waywiser._transfer import HostMemory, PinnedRegistration

_InvalidOperand = partial(InvalidOperand, where="pinned_empty")
_InvalidTransfer = partial(InvalidTransfer, where="pinned_empty")

HUGE_PAGES_FROM = 8 << 20
"""Bytes from which a new host array gets pages of its own, huge ones where the system allows."""

NODES = 'pass the index of a node of machine()["numa"], or None for that of the calling thread'


def to_host(tensor: Any, *, stream: Any = None, copy: Callable[..., None] = native.copy) -> Any:
    """Copies an array to new host memory and returns it when it is filled.

    A torch tensor becomes a torch tensor on the CPU, anything else a numpy array, of the same shape
    and dtype and in C order. From 8 MiB on the memory is in huge pages where the system allows
    them, and such a tensor cannot be resized. ``stream`` is as in `copy`, which is also the call
    that fills the array.
    """
    if _is_torch(tensor, "Tensor"):
        filled = _torch_like(tensor)
        source = tensor.detach()
    else:
        filled, source = _numpy_like(tensor), tensor
    copy(filled, source, stream=stream)
    return filled


def pinned_empty(shape: int | Sequence[int], dtype: Any = float, *, numa: int | None = None) -> Any:
    """Returns a new array in pinned (page-locked) memory, which GPUs read and write directly.

    ``dtype`` is what numpy takes for a dtype, or a torch dtype: then a torch tensor is returned.
    ``numa`` is the node of the memory; None: that of the calling thread. The memory is freed with
    the last array that uses it, and does not belong to any context. Raises `TransferMemoryError`
    if the limit of locked memory is reached. Without a GPU it is ordinary memory, so that a program
    runs there too; a fork of a process that has used a GPU raises `UnsupportedTransfer`.
    """
    sizes = _sizes(shape)
    try:
        node = -1 if numa is None else operator.index(numa)
    except TypeError:
        raise _InvalidOperand(f"numa is {numa!r}, not the index of a node", remedy=NODES) from None
    if numa is not None and node < 0:
        raise _InvalidTransfer(f"numa is {node}, not the index of a node", remedy=NODES)

    def allocate(nbytes: int) -> HostMemory:
        return native.pinned_memory(nbytes, node)

    if _is_torch(dtype, "dtype"):
        return _torch_array(sizes, dtype, allocate)
    return _numpy_array(sizes, dtype, allocate)


def register(array: Any) -> PinnedRegistration:
    """Page-locks the memory of a host array for all GPUs: copies of it are pinned copies then.

    For memory that the program has already: a cache of a framework, an ``mmap``, shared memory. The
    array has no gaps, and the memory belongs to it: of a view, register the whole array. Its pages
    get contents if they had none. The result keeps the array, and is a context manager:

        with transfer.register(cache):
            transfer.copy(on_gpu, cache)

    ``close()``, the end of the ``with`` block or the end of the object waits for the GPUs that may
    use the memory, and unlocks it. It belongs to no context, and does nothing in a forked child.

    Raises `InvalidTransfer` if a part of the memory is registered or pinned otherwise,
    `UnsupportedTransfer` without a GPU, and `TransferMemoryError` if so much cannot be pinned.
    """
    return native.PinnedRegistration(array)


def _is_torch(thing: Any, kind: str) -> bool:
    torch = sys.modules.get("torch")
    known = getattr(torch, kind, None)
    if known is None or not isinstance(thing, known):
        return False
    why = too_old(torch)
    if why is not None:
        raise UnsupportedTransfer(why, where="waywiser.transfer", remedy=REMEDY)
    return True


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        if isinstance(shape, Sequence):
            sizes = tuple(operator.index(size) for size in shape)
        else:
            sizes = (operator.index(shape),)
    except TypeError:
        raise _InvalidOperand(
            f"{shape!r} is no shape", remedy="pass a whole number or a tuple of them"
        ) from None
    if any(size < 0 for size in sizes):
        raise _InvalidTransfer(
            f"the shape {sizes} has a negative length", remedy="pass lengths from 0 on"
        )
    return sizes


def _torch_array(sizes: tuple[int, ...], dtype: Any, allocate: Callable[[int], HostMemory]) -> Any:
    import torch

    count = math.prod(sizes)
    if count == 0:
        return torch.empty(sizes, dtype=dtype, device="cpu")
    item = torch.empty((), dtype=dtype).element_size()  # dtypes have their size since torch 2.1
    memory = allocate(_possible(count * item))
    return torch.frombuffer(memory, dtype=dtype, count=count).view(sizes)


def _numpy_array(sizes: tuple[int, ...], dtype: Any, allocate: Callable[[int], HostMemory]) -> Any:
    import numpy

    try:
        known = numpy.dtype(dtype)
    except TypeError as error:
        raise _InvalidOperand(str(error), remedy="pass a dtype of numpy or of torch") from None
    if known.hasobject:
        raise _InvalidOperand(
            "an array of Python objects cannot be pinned", remedy="pass a dtype of numbers"
        )
    nbytes = math.prod(sizes) * known.itemsize
    if nbytes == 0:
        return numpy.empty(sizes, dtype=known)
    memory = allocate(_possible(nbytes))
    return numpy.ndarray(sizes, dtype=known, buffer=memory)  # type: ignore[arg-type]


def _possible(nbytes: int) -> int:
    if nbytes > sys.maxsize:
        raise TransferMemoryError(
            f"an array of {nbytes} bytes is larger than any memory",
            where="pinned_empty",
            remedy="check the shape and the dtype",
        )
    return nbytes


def _torch_like(tensor: Any) -> Any:
    import torch

    if tensor.numel() * tensor.element_size() < HUGE_PAGES_FROM:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    return _torch_array(tuple(tensor.shape), tensor.dtype, native.pageable_memory)


def _numpy_like(array: Any) -> Any:
    import numpy

    shape, dtype = _described(array)
    known = numpy.dtype(dtype)
    if math.prod(shape) * known.itemsize < HUGE_PAGES_FROM:
        return numpy.empty(shape, dtype=known)
    return _numpy_array(shape, known, native.pageable_memory)


def _described(array: Any) -> tuple[tuple[int, ...], Any]:
    """The shape of an array, and what numpy takes for its dtype."""
    import numpy

    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return tuple(interface["shape"]), interface["typestr"]
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    if shape is not None and dtype is not None:
        return tuple(shape), dtype
    try:
        view = memoryview(array)
    except TypeError:
        raise InvalidOperand(
            f"an object of type {type(array).__name__} is not an array",
            where="to_host",
            remedy="pass a torch tensor, a cupy array or an object with the CUDA array interface",
        ) from None
    return view.shape or (), numpy.asarray(view).dtype
