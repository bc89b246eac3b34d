"""Copies of layouts with more pieces than a list takes, such as a transpose: by PyTorch, if the
program has imported it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any


def copy_by_torch(dst: Any, src: Any, to: int, of: int, stream: int | None, waits: bool) -> bool:
    """Whether PyTorch made the copy: it is imported, both arrays are tensors or can be seen as
    tensors at their addresses ``to`` and ``of``, and they share no memory.

    ``stream`` is the number of the caller's ``cudaStream_t``; None: those of the tensors. With
    ``waits`` the copy has ended when this returns; without, as after `waywiser.transfer.copy`.
    Errors of PyTorch are passed on.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "as_tensor"):
        return False
    tensors = [_seen_by(torch, array, at) for array, at in ((dst, to), (src, of))]
    target, source = tensors
    if target is None or source is None or _may_overlap(target, source):
        return False
    gpus = [each.device for each in tensors if each.is_cuda]
    if stream is not None and not gpus:
        return False
    with torch.no_grad(), _in_stream(torch, stream, gpus):
        # Not the method, which may be patched to call this library.
        torch.ops.aten.copy_(target, source)
        if waits and gpus:
            torch.cuda.current_stream(gpus[0]).synchronize()
    return True


def _seen_by(torch: Any, array: Any, address: int) -> Any:
    """The array as a tensor of the same memory; None if PyTorch cannot see it so."""
    if isinstance(array, torch.Tensor):
        return array
    try:
        tensor = torch.as_tensor(array)
    except (TypeError, ValueError, RuntimeError):
        return None
    return tensor if tensor.data_ptr() == address else None


def _may_overlap(one: Any, other: Any) -> bool:
    """Whether the ranges from the first to the last byte of both share bytes."""
    starts = [each.data_ptr() for each in (one, other)]
    ends = [
        each.data_ptr() + each.element_size() * (1 + last)
        for each in (one, other)
        for last in [sum((n - 1) * s for n, s in zip(each.shape, each.stride(), strict=True))]
    ]
    return bool(starts[0] < ends[1] and starts[1] < ends[0])


def _in_stream(torch: Any, stream: int | None, gpus: list[Any]) -> Any:
    if stream is None:
        return nullcontext()
    default = stream in (0, 1)
    chosen = torch.cuda.default_stream(gpus[0]) if default else None
    return torch.cuda.stream(chosen or torch.cuda.ExternalStream(stream, gpus[0]))
