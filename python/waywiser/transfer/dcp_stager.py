"""Host copies of the state of a training for `torch.distributed.checkpoint.async_save`."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.distributed.checkpoint.staging import AsyncStager

from waywiser.transfer.errors import InvalidTransfer, UnsupportedTransfer
from waywiser.transfer.snapshots import Snapshot, host_tensors
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.torch import snapshot

CALL = "SnapshotStager.stage"

Rebuild = Callable[[Mapping[str, Any]], Any]
"""Makes the copy of a part of a state from the host tensors by their names in `_Found`."""


class SnapshotStager(AsyncStager):  # type: ignore[misc]
    """Stages a state with `waywiser.transfer.torch.snapshot`, while the GPU goes on.

    `stage` puts the copies beside the current streams and returns a future. Call
    `synchronize_staging` in each step before the GPU changes a tensor of the state: it makes the
    streams wait, and with pinned memory never blocks the host. Host memory is used again once no
    save needs it. Use it from one thread.

    Args:
        pinned: whether the host memory is pinned, if there is a GPU.
    """

    _synchronize_after_execute = False

    def __init__(self, *, pinned: bool = True) -> None:
        self._pinned = pinned
        self._executor: ThreadPoolExecutor | None = None
        self._made: Snapshot | None = None
        self._memories: list[_HostMemory] = []
        self._is_closed = False

    @property
    def should_synchronize_after_execute(self) -> bool:
        """False: the caller synchronizes before a change, and not `async_save`."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Future[dict[str, Any]]:
        """Starts to copy all tensors of a state, and returns a future of the copy of the state.

        What is no tensor is copied before it returns. Tensors with the same memory, such as tied
        weights, are copied once. Raises `UnsupportedTransfer` for a tensor that is not dense or
        lies neither on the host nor on a GPU, and what `snapshot` raises.
        """
        if self._is_closed:
            raise InvalidTransfer("the stager is closed", where=CALL, remedy="make a new one")
        found = _Found()
        rebuild = found.add(state_dict, "")
        memory = self._free_memory(found.tensors)
        made = self._made = snapshot(found.tensors, into=memory.tensors)
        lent = memory.lend()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="SnapshotStager")
        return self._executor.submit(_complete, made, rebuild, lent)

    def synchronize_staging(self) -> None:
        """Makes the streams that were current at the last `stage` wait until the GPU has read the
        state. It blocks the host only while copies to pageable memory are not submitted yet."""
        if self._made is not None:
            self._made.wait_source_read()

    def close(self) -> None:
        """Waits for the copies. Host memory is freed once no save needs it."""
        self._is_closed = True
        if self._executor is not None:
            self._executor.shutdown()
        self._made = None
        self._memories.clear()

    def _free_memory(self, sources: Mapping[str, Any]) -> _HostMemory:
        """Memory that no save reads any more, or new one. What is of no use is freed."""
        used = [each for each in self._memories if each.is_lent()]
        free = next(
            (each for each in self._memories if each not in used and each.fits(sources)), None
        )
        self._memories = used  # freed before more is allocated
        if free is None:
            pinned = self._pinned and torch.cuda.is_available()
            free = _HostMemory(host_tensors(sources, pinned, torch))
        self._memories.append(free)
        return free


class _HostMemory:
    """Host tensors, and the views of them that saves read."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors
        self._views: list[weakref.ref[Any]] = []

    def fits(self, sources: Mapping[str, Any]) -> bool:
        return {name: (each.dtype, each.shape) for name, each in self.tensors.items()} == {
            name: (each.dtype, each.shape) for name, each in sources.items()
        }

    def lend(self) -> dict[str, Any]:
        """Views of all tensors. The memory is lent as long as one of them is referred to."""
        views = {name: each.view(each.shape) for name, each in self.tensors.items()}
        self._views = [weakref.ref(each) for each in views.values()]
        return views

    def is_lent(self) -> bool:
        return any(each() is not None for each in self._views)


class _Found:
    """The tensors of a state, each memory once, by names for `snapshot`."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._kept: list[Any] = []
        """What has the memory of the names, so that no other tensor gets it."""

    def add(self, value: Any, where: str) -> Rebuild:
        """Finds the tensors in a part of a state, which ``where`` names, and copies the rest."""
        if isinstance(value, torch.Tensor):
            return self._add_tensor(value, where)
        if isinstance(value, Mapping):
            members = {key: self.add(each, f"{where}.{key}") for key, each in value.items()}
            return lambda host: {key: make(host) for key, make in members.items()}
        if isinstance(value, list | tuple):
            items = [self.add(each, f"{where}.{number}") for number, each in enumerate(value)]
            kind = type(value)
            if hasattr(kind, "_fields"):  # a named tuple
                return lambda host: kind(*(make(host) for make in items))
            return lambda host: kind(make(host) for make in items)
        kept = copy.deepcopy(value)
        return lambda host: kept

    def _add_tensor(self, tensor: Any, where: str) -> Rebuild:
        if hasattr(tensor, "trigger_wait"):  # what a collective is still writing
            tensor = tensor.trigger_wait()
        if hasattr(tensor, "__tensor_flatten__"):  # a tensor of tensors, such as a DTensor
            names, context = tensor.__tensor_flatten__()
            inner = {name: self.add(getattr(tensor, name), f"{where}.{name}") for name in names}
            kind, size, stride = type(tensor), tensor.size(), tensor.stride()
            return lambda host: kind.__tensor_unflatten__(
                {name: make(host) for name, make in inner.items()}, context, size, stride
            )
        if tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "cuda"):
            raise UnsupportedTransfer(
                f"tensor {clipped(where[1:])} is {tensor.layout} on {tensor.device}",
                where=CALL,
                remedy="stage dense tensors on the host or on a GPU",
            )
        tensor = tensor.detach()
        own = (tensor.data_ptr() if tensor.nbytes else len(self.tensors),)
        bits = (tensor.is_conj(), tensor.is_neg())
        key = (*own, *bits, tensor.device, tensor.dtype, tensor.shape, tensor.stride())
        name = self._names.setdefault(key, str(len(self.tensors)))
        if name not in self.tensors:  # a copy in the stream comes before what changes the tensor
            self._kept.append(tensor)
            plain = tensor.resolve_conj().resolve_neg()
            self.tensors[name] = plain if plain.device.type == "cpu" else plain.contiguous()
        return lambda host: host[name]


def _complete(made: Snapshot, rebuild: Rebuild, lent: dict[str, Any]) -> Any:
    """The copy of the state, once it is complete."""
    made.result()
    return rebuild(lent)
