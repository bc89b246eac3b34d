"""Safetensors files into torch tensors and back, in host memory or on a GPU, and snapshots.

    from waywiser.transfer.torch import load_files, save_files, snapshot

    tensors = load_files("llama/model.safetensors.index.json", "cuda:0")
    save_files(tensors, "copy.safetensors")

`patch()` makes PyTorch's own copies by the library. Other modules that import torch are
`torch_patch`, which this one imports, and `dcp` with what it imports.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from waywiser import transfer
from waywiser.errors import WaywiserError
from waywiser.transfer.checkpoint import OpenFile, Selection, TensorNotFoundError, open_checkpoint
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer, UnsupportedTransfer
from waywiser.transfer.loading import BackgroundMaker, load, require_names, slices_of
from waywiser.transfer.safetensors_header import SafetensorsError, TensorEntry
from waywiser.transfer.safetensors_layout import ARRAY_NAMES, FORMAT_NAMES
from waywiser.transfer.safetensors_layout import CALL as SAVE
from waywiser.transfer.saving import save
from waywiser.transfer.snapshots import Snapshot
from waywiser.transfer.snapshots import snapshot as _snapshot
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.tensor_slices import TensorIndex
from waywiser.transfer.torch_tensors import (
    SharedTensorsError,
    bytes_of,
    checked_tensors,
    sized,
)
from waywiser.transfer.torch_version import REMEDY, too_old

__all__ = [
    "SafetensorsError",
    "SharedTensorsError",
    "Snapshot",
    "TensorNotFoundError",
    "TorchMissingError",
    "load_file",
    "load_files",
    "patch",
    "save_files",
    "snapshot",
]


class TorchMissingError(WaywiserError, ImportError):
    """PyTorch is not installed, or is too old."""


try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise TorchMissingError(
        "PyTorch is not installed",
        where="waywiser.transfer.torch",
        remedy="install torch; the other calls of waywiser.transfer do not need it",
    ) from None

if (_why := too_old(torch)) is not None:
    raise TorchMissingError(_why, where="waywiser.transfer.torch", remedy=REMEDY)

from waywiser.transfer.torch_patch import patch  # noqa: E402 - after the check above

CALL = "load_files"
DEVICES = "pass 'cpu', 'cuda', 'cuda:0' or the number of a GPU"


def load_file(
    path: str | os.PathLike[str],
    device: str | int | torch.device,
    keys: Iterable[str] | None = None,
    slices: Mapping[str, TensorIndex] | None = None,
) -> dict[str, torch.Tensor]:
    """Loads one checkpoint: a safetensors file, an index, or a folder. As `load_files`."""
    return load_files([path], device, keys, slices)


def load_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    device: str | int | torch.device,
    keys: Iterable[str] | None = None,
    slices: Mapping[str, TensorIndex] | None = None,
    devices: Mapping[str, str | int | torch.device] | None = None,
) -> dict[str, torch.Tensor]:
    """Loads tensors from safetensors files to a device; returns them by name.

    Args:
        paths: one path or several. A path is a safetensors file, an index
            (``model.safetensors.index.json``), or a folder that has an index or a single
            safetensors file. A folder with ``model.safetensors`` and an index of other files is
            an error: pass the one to load.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, the number of a GPU, or a ``torch.device``.
        keys: the names of the tensors to load, in any order; None for all of them.
        slices: what to load of a tensor, by its name: integers, slices and an ellipsis, as
            ``tensor[...]`` takes them; ``{"w": (slice(0, 1024), ...)}``. Only these bytes are read,
            with those of gaps of at most 64 KiB between them.
        devices: the devices of tensors, by their names, that go to another one than ``device``.

    Tensors are in the order of the files and of their bytes in them, whatever the order of
    ``keys``. Each has memory of its own and is freed alone. They are complete and may be used on
    the device's current stream when the call returns. Thread safe.

    Raises `SafetensorsError` for a file or an index that is not valid, a tensor that two files
    have, a type that torch does not have, or a file that was cut while it was read;
    `TensorNotFoundError` for a key that no file has or a tensor that is not in the shard that the
    index lists; `TransferFileError`, which is an `OSError`, for a file that cannot be read;
    `UnsupportedTransfer` or `InvalidTransfer` for a device that torch cannot use here; and what
    ``waywiser.transfer.read_async`` and torch raise. No transfer runs when an error is raised.
    """
    target = _device(device)
    others = _devices_of(devices)
    with open_checkpoint(paths, keys) as selections:
        return _load(selections, slices, target, others)


def _devices_of(devices: object) -> dict[str, torch.device]:
    """Raises `InvalidOperand` for what is no dict, and what `_device` raises."""
    if devices is None:
        return {}
    if not isinstance(devices, Mapping):
        raise InvalidOperand(
            f"devices is of type {type(devices).__name__}, not a dict",
            where=CALL,
            remedy="pass devices={'name': 'cuda:1'}",
        )
    return {name: _device(each) for name, each in devices.items()}


def _load(
    selections: list[Selection],
    slices: object,
    target: torch.device,
    others: Mapping[str, torch.device],
) -> dict[str, torch.Tensor]:
    """The selected tensors, one device after the other."""
    dtypes, parts = _dtypes(selections), slices_of(selections, slices, CALL)
    names = [entry.name for _, entries in selections for entry in entries]
    require_names(others, names, "devices", CALL)
    loaded: dict[str, torch.Tensor] = {}
    for place in {str(each): each for each in (target, *others.values())}.values():
        own = {name for name in names if others.get(name, target) == place}
        chosen = [Selection(file, tuple(each for each in entries if each.name in own))
                  for file, entries in selections]  # fmt: skip
        boxes = {name: part for name, part in parts.items() if name in own}
        loaded |= load(chosen, _TensorMaker(place, dtypes), boxes)
    return {name: loaded[name] for name in names}


def save_files(
    tensors: Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    *,
    shard_bytes: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Saves tensors as a safetensors file, or as shards with an index in a folder.

    Args:
        tensors: dense, contiguous tensors by name, in host memory or on GPUs, none of which share
            memory.
        path: the file; with ``shard_bytes`` the folder.
        shard_bytes: the most bytes of tensors in one shard; a larger tensor has a shard of its own.
            None: one file.
        metadata: texts by name for the header of each file; ``{"format": "pt"}``, for example.

    When it returns, the files are on the disk. What was at the path before is replaced as a whole
    at that moment: after an error, a kill or a loss of power it is there as it was. What replaces
    it has its mode, owner, group and other attributes. A folder is replaced only if it has nothing
    but safetensors files and their index; in a folder that cannot be exchanged, as a mount point,
    the files are replaced. A file has the bytes that
    the safetensors library writes, with the metadata sorted by name; shards and index are named as
    huggingface_hub does. Tensors are read on the current stream of their GPU, and must not change
    until it returns.

    Raises `SharedTensorsError`, which is a `RuntimeError`, for tensors that share memory;
    `InvalidTransfer`, which is a `ValueError`, for one that is not contiguous or has no memory, and
    for a folder with other files, or in which one file cannot replace shards; `UnsupportedTransfer`
    for a type or a layout that the format does not have; `InvalidOperand` for arguments of a wrong
    type; `TransferFileError`, which is an `OSError`, if the disk is full or the path cannot be
    written; and what ``waywiser.transfer.write_async`` raises.
    """
    checked = checked_tensors(tensors, torch, FORMAT_NAMES, SAVE)
    listed = [sized(name, tensor, FORMAT_NAMES) for name, tensor in checked.items()]
    save(checked, listed, path, shard_bytes, metadata, make=_TensorMaker(torch.device("cpu"), {}))


def snapshot(
    tensors: Mapping[str, torch.Tensor],
    *,
    into: Mapping[str, torch.Tensor] | None = None,
    pinned: bool = False,
) -> Snapshot:
    """Starts to copy tensors to host memory beside the current streams, and returns at once.

    Args:
        tensors: tensors by name, on GPUs; those in host memory are copied before it returns.
        into: host tensors of the same names, types and shapes that are overwritten, as an earlier
            snapshot returned them; None: new ones.
        pinned: whether new host memory is pinned. Then all copies are submitted before it returns,
            and `Snapshot.wait_source_read` never blocks the host.

    The copies have what the tensors are when the current stream of their GPU has come this far.
    Later work in the stream does not wait for them: call ``wait_source_read`` of the result before
    it changes one of the tensors.

    Raises `InvalidOperand` and `InvalidTransfer` for arguments that do not fit, and what
    ``waywiser.transfer.pinned_empty`` and ``snapshot_batch`` raise.
    """
    return _snapshot(tensors, into, pinned, torch=torch)


def maker_of(selections: Iterable[Selection], device: str | int | torch.device) -> BackgroundMaker:
    """Makes tensors of the types of selected ones on a device. Raises as `load_files` does."""
    return _TensorMaker(_device(device), _dtypes(selections))


def _device(device: str | int | torch.device) -> torch.device:
    try:
        if isinstance(device, bool):
            raise TypeError
        target = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    except (TypeError, RuntimeError) as error:
        kind = InvalidOperand if isinstance(error, TypeError) else InvalidTransfer
        raise kind(
            f"device is {device!r}, which names no device", where=CALL, remedy=DEVICES
        ) from None
    if target.type not in ("cpu", "cuda"):
        raise UnsupportedTransfer(
            f"device is {device!r}, and files are loaded to host memory and to CUDA GPUs only",
            where=CALL,
            remedy="load to 'cpu' or 'cuda'",
        )
    return target if target.type == "cpu" else torch.device("cuda", _gpu(device, target.index))


def _gpu(device: object, index: int | None) -> int:
    """The number of a GPU that torch can use; ``index`` None: the current one."""
    # torch counts the GPUs of a parent in a forked child too, which can use none.
    if not torch.cuda.is_available() or getattr(torch.cuda, "_is_in_bad_fork", bool)():
        why, remedy = "this torch has no CUDA", "install a torch with CUDA"
        if torch.version.cuda is not None:
            why = "torch finds no GPU that it can use"
            remedy = "check what nvidia-smi and CUDA_VISIBLE_DEVICES show"
            if reason := transfer.machine()["gpu_unavailable"]:
                why, remedy = reason, "make the GPU usable by this process"
        raise UnsupportedTransfer(
            f"device is {device!r}, and {why}",
            where=CALL,
            remedy=f"load to 'cpu', or {remedy}",
        )
    if index is None:
        current: int = torch.cuda.current_device()
        return current
    count = torch.cuda.device_count()
    if not 0 <= index < count:
        raise InvalidTransfer(
            f"device is {device!r}, and torch can use {count} GPU{'' if count == 1 else 's'}",
            where=CALL,
            remedy="load to 'cuda:0'" + (f" up to 'cuda:{count - 1}'" if count > 1 else ""),
        )
    return index


def _dtypes(selections: Iterable[Selection]) -> dict[str, torch.dtype]:
    """The torch types of all selected tensors, so that a missing one is found before any read."""
    dtypes: dict[str, torch.dtype] = {}
    for file, entries in selections:
        for entry in entries:
            if entry.dtype not in dtypes:
                dtypes[entry.dtype] = _dtype(file, entry)
    return dtypes


def _dtype(file: OpenFile, entry: TensorEntry) -> torch.dtype:
    name = ARRAY_NAMES.get(entry.dtype)
    dtype = None if name is None else getattr(torch, name, None)
    if dtype is None:
        raise SafetensorsError(
            f"tensor {clipped(entry.name)} has type {entry.dtype}, for which torch "
            f"{torch.__version__} has no tensor of the same shape",
            where=str(file.path),
            remedy="exclude it with keys" + ("" if name is None else ", or use a newer torch"),
        )
    return dtype


class _TensorMaker:
    """Makes tensors of torch; ``dtypes`` by the names of the format."""

    def __init__(self, target: torch.device, dtypes: Mapping[str, torch.dtype]) -> None:
        self._target = target
        self._dtypes = dtypes
        self._stream: torch.cuda.Stream | None = None

    def array(self, entry: TensorEntry) -> torch.Tensor:
        return torch.empty(entry.shape, dtype=self._dtypes[entry.dtype], device=self._target)

    def row(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, device=self._target)

    def bytes_of(self, array: torch.Tensor) -> torch.Tensor:
        row: torch.Tensor = bytes_of(array, torch)
        return row

    def rows(self, row: torch.Tensor, rows: int, stride: int, nbytes: int) -> torch.Tensor:
        return row.as_strided((rows, nbytes), (stride, 1))

    def indexed(self, array: torch.Tensor, index: tuple[int | slice, ...]) -> torch.Tensor:
        return array[index].clone()

    def beside(self) -> AbstractContextManager[object]:
        if self._target.type != "cuda":
            return nullcontext()
        self._stream = torch.cuda.Stream(self._target)
        context: AbstractContextManager[object] = torch.cuda.stream(self._stream)
        return context

    def wait(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()

    def hand_out(self, array: torch.Tensor) -> None:
        if self._stream is not None:
            array.record_stream(torch.cuda.current_stream(self._target))
