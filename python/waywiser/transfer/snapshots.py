"""Copies of the tensors of a training in host memory, made while the training goes on.

torch is passed in, because only `waywiser.transfer.torch` imports it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from waywiser import transfer
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer
from waywiser.transfer.module import native
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.torch_tensors import named_tensors

CALL = "snapshot"

ALIGNMENT = 256
"""Bytes to whose multiples each tensor starts in the memory of all: more than any type needs."""


class Snapshot:
    """Host copies of tensors, which are being made. Dropping it does not stop the copies.

    Call `wait_source_read` before the GPU changes one of the tensors, each time that this may come
    before the end of the copies. Thread safe.
    """

    def __init__(self, tensors: dict[str, Any], handles: list[Any]) -> None:
        self._tensors = tensors
        self._handles = handles

    @property
    def source_read_pending(self) -> bool:
        """Whether `wait_source_read` would block the host now.

        That is so until the last read of a tensor is submitted to the GPU; never if all copies go
        into pinned memory.
        """
        return any(handle.source_read_pending for handle in self._handles)

    def wait_source_read(self, stream: Any = None) -> None:
        """Makes ``stream`` wait until the GPU has read all tensors, so that later work in it may
        change them.

        It only puts a wait into the stream if all reads are submitted. Else it blocks the host
        first while `source_read_pending` is true, because a wait for what is not submitted would be
        none.
        ``stream`` None: the current stream of each GPU at the call of `snapshot`.
        """
        for handle in self._handles:
            handle.wait_source_read(stream)

    def wait(self, stream: Any = None) -> None:
        """Makes ``stream`` wait until the host copies are complete.

        With pinned memory the order is one of the GPU alone. With pageable memory it blocks the
        host until they are.
        """
        for handle in self._handles:
            handle.wait(stream)

    def done(self) -> bool:
        """Whether all copies have ended, in success or failure. Does not wait."""
        return all(handle.done() for handle in self._handles)

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits until the host copies are complete, and returns them by name.

        Raises what a copy failed with, and `TransferTimeout` after ``timeout`` seconds; then the
        copies go on.
        """
        end = None if timeout is None else time.monotonic() + timeout
        for handle in self._handles:
            handle.result(timeout if end is None else max(end - time.monotonic(), 0.0))
        return self._tensors


def snapshot(tensors: object, into: object, pinned: object, *, torch: Any) -> Snapshot:
    """Does what `waywiser.transfer.torch.snapshot` says."""
    sources = named_tensors(tensors, torch, CALL)
    if not isinstance(pinned, bool):
        raise InvalidOperand(
            f"pinned is {clipped(pinned)}, which is neither True nor False",
            where=CALL,
            remedy="pass pinned=True or pinned=False",
        )
    targets = (
        host_tensors(sources, pinned, torch) if into is None else _checked(into, sources, torch)
    )
    devices: dict[str, tuple[list[Any], list[Any]]] = {}
    for name, source in sources.items():
        if not source.nbytes:
            continue
        if source.device.type == "cpu":
            transfer.copy(targets[name], source.detach())
            continue
        dsts, srcs = devices.setdefault(str(source.device), ([], []))
        dsts.append(targets[name])
        srcs.append(source.detach())
    handles = [transfer.snapshot_batch(dsts=dsts, srcs=srcs) for dsts, srcs in devices.values()]
    return Snapshot(targets, handles)


def host_tensors(sources: Mapping[str, Any], pinned: bool, torch: Any) -> dict[str, Any]:
    """New host tensors in one piece of memory: to pin or map many small ones takes long."""
    sizes = [-(-source.nbytes // ALIGNMENT) * ALIGNMENT for source in sources.values()]
    total = sum(sizes)
    if total == 0:
        memory = torch.empty(0, dtype=torch.uint8, device=torch.device("cpu"))
    else:
        allocated = native.pinned_memory(total, -1) if pinned else native.pageable_memory(total)
        memory = torch.frombuffer(allocated, dtype=torch.uint8, count=total)
    begins = accumulate(sizes, initial=0)
    return {
        name: memory[begin : begin + source.nbytes].view(source.dtype).view(tuple(source.shape))
        for (name, source), begin in zip(sources.items(), begins, strict=False)
    }


def _checked(into: object, sources: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    targets = named_tensors(into, torch, CALL)
    if targets.keys() != sources.keys():
        other = min(targets.keys() ^ sources.keys())
        raise InvalidTransfer(
            f"only one of tensors and into has {clipped(other)}",
            where=CALL,
            remedy="pass what an earlier snapshot of the same tensors returned",
        )
    for name, source in sources.items():
        target = targets[name]
        if (target.dtype, tuple(target.shape)) != (source.dtype, tuple(source.shape)):
            raise InvalidTransfer(
                f"tensor {clipped(name)} has {source.dtype} and shape {tuple(source.shape)}, and "
                f"into has {target.dtype} and {tuple(target.shape)} for it",
                where=CALL,
                remedy="pass what an earlier snapshot of the same tensors returned",
            )
        if target.device.type != "cpu":
            raise InvalidTransfer(
                f"into has tensor {clipped(name)} on {target.device}",
                where=CALL,
                remedy="pass host tensors",
            )
    return targets
