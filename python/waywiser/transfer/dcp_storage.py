"""Checkpoints of `torch.distributed.checkpoint` in safetensors files.

Each rank writes one file. `.metadata`, which the coordinator writes last, says where the bytes of
each item are. It is a pickle, as that of the file system storage of PyTorch.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint.metadata import StorageMeta
from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult

from waywiser.files.unfinished import remove_leftovers
from waywiser.transfer.checkpoint import OpenFile, Selection, open_regular
from waywiser.transfer.durable_output import make_folder, named_errors, new_file
from waywiser.transfer.errors import UnsupportedTransfer
from waywiser.transfer.loading import load
from waywiser.transfer.module import native
from waywiser.transfer.safetensors_header import Header, SafetensorsError, TensorEntry
from waywiser.transfer.safetensors_layout import FORMAT_NAMES, SizedTensor, lay_out
from waywiser.transfer.saving import save
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.tensor_slices import TensorSlice
from waywiser.transfer.torch import maker_of
from waywiser.transfer.torch_tensors import bytes_of

METADATA_NAME = ".metadata"
_FILE_OF_A_RANK = re.compile(rb"\d{5,}-[0-9a-f]{16}\.safetensors")
_UNFINISHED = re.compile(r"\.\d{5,}-[0-9a-f]{16}\.safetensors\.saving-")


class StoredItem(NamedTuple):
    """Where the bytes of an item of a checkpoint are."""

    file: str
    offset: int
    nbytes: int


class SafetensorsWriter(StorageWriter):  # type: ignore[misc]
    """Writes a checkpoint to a folder: a safetensors file for each rank, and their metadata.

    All is on the disk when a save ends. A folder that has a checkpoint keeps it until the new one
    is complete: then its metadata is replaced, and the files that the old metadata names are
    removed. Of two saves that overlap, the one that ends last counts. Whole files of a save that
    was killed or has failed stay: they may be of a save that has not ended. All ranks must see the
    folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._rank = 0

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Takes another folder, if one is given to the save or the load."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Learns the rank. Raises `UnsupportedTransfer` for `use_collectives=False`."""
        if not kwargs.get("use_collectives", True):
            raise UnsupportedTransfer(
                "use_collectives=False makes a checkpoint of each rank",
                where="SafetensorsWriter",
                remedy="save with use_collectives=True, or with FileSystemWriter",
            )
        self._rank = int(kwargs.get("rank") or 0)

    def prepare_local_plan(self, plan: Any) -> Any:
        """Makes the folder; the plan stays as it is."""
        make_folder(self.path)
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """The plans as they are."""
        return plans

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Writes the items of this rank; tensors with the same memory once."""
        name = f"{self._rank:05d}-{secrets.token_hex(8)}.safetensors"
        content = _Content()
        names = [content.add(item, planner.resolve_data(item)) for item in plan.items]
        if not names:
            return _done([])
        listed = content.listed()
        maker = maker_of((), "cpu")
        save(content.tensors, listed, self.path / name, None, None, make=maker)
        places = {each.name: each for each in lay_out(listed, None).entries}
        found = [(item, places[each]) for item, each in zip(plan.items, names, strict=True)]
        return _done([
            WriteResult(item.index, at.nbytes, StoredItem(name, at.offset, at.nbytes))
            for item, at in found
        ])  # fmt: skip

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        """Makes what all ranks have written the checkpoint of the folder. Raises
        `TransferFileNotFound`, and leaves the old checkpoint, if a file of a rank is missing."""
        stored = {each.index: each.storage_data for own in results for each in own}
        meta = StorageMeta(checkpoint_id=str(self.path))
        pickled = pickle.dumps(replace(metadata, storage_data=stored, storage_meta=meta))
        current = {each.file for each in stored.values()}
        with new_file(self.path / METADATA_NAME, len(pickled)) as file:
            native.write(file, pickled)
            former = _files_of_ranks(self.path / METADATA_NAME)
            for name in current:
                with named_errors(self.path / name):
                    os.stat(self.path / name)
        for name in former - current:
            with suppress(OSError):
                os.unlink(self.path / name)
        for prefix in {each[0] for each in map(_UNFINISHED.match, os.listdir(self.path)) if each}:
            remove_leftovers(self.path, prefix, remove=os.unlink)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it names a folder."""
        return "://" not in str(checkpoint_id)


class SafetensorsReader(StorageReader):  # type: ignore[misc]
    """Reads a checkpoint that `SafetensorsWriter` has written, into tensors on any device.

    A rank reads only the bytes that its tensors need, straight into those that are contiguous. The
    metadata is a pickle: do not read a folder that you do not trust.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._metadata: Any = None

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Takes another folder, if one is given to the save or the load."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        """Reads what the checkpoint has."""
        with named_errors(self.path):
            return pickle.loads((self.path / METADATA_NAME).read_bytes())

    def set_up_storage_reader(
        self, metadata: Any, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Raises `SafetensorsError` for a checkpoint of another writer."""
        stored = metadata.storage_data
        if not isinstance(stored, dict) or not all(
            isinstance(each, StoredItem) for each in stored.values()
        ):
            raise SafetensorsError(
                "its metadata is not from SafetensorsWriter",
                where=str(self.path),
                remedy="load it with the reader of its writer, for example FileSystemReader",
            )
        self._metadata = metadata

    def prepare_local_plan(self, plan: Any) -> Any:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        """Reads the items of this rank. No transfer runs when an error is raised."""
        with ExitStack() as files:
            opened: dict[str, OpenFile] = {}
            needed: dict[str, list[_Needed]] = defaultdict(list)
            for item in plan.items:
                stored = self._metadata.storage_data[item.storage_index]
                if stored.file not in opened:
                    opened[stored.file] = _opened(self.path / stored.file, files)
                file = opened[stored.file]
                if item.type == LoadItemType.BYTE_IO:
                    planner.load_bytes(item, io.BytesIO(_bytes_of_item(file, stored)))
                    continue
                target = planner.resolve_tensor(item).detach()
                part = self._needed(item, stored, file, target)
                needed[str(target.device)].append(part)
            for device, parts in needed.items():
                for together in _apart(parts):
                    _load(together, device)
                for part in parts:
                    planner.commit_tensor(part.item, part.target)
        return _done(None)

    def _needed(self, item: Any, stored: StoredItem, file: OpenFile, target: Any) -> _Needed:
        """Checks what the metadata says of a tensor."""
        known = self._metadata.state_dict_metadata[item.storage_index.fqn]
        offset = item.storage_index.offset
        chunk = next(each for each in known.chunks if offset is None or each.offsets == offset)
        dtype, shape = known.properties.dtype, tuple(chunk.sizes)
        ranges = tuple(
            range(begin, begin + length)
            for begin, length in zip(item.storage_offsets, item.lengths, strict=True)
        )
        part = TensorSlice(ranges, (slice(None),) * len(ranges))
        inside = all(each.stop <= size for each, size in zip(ranges, shape, strict=True))
        if (
            not inside
            or part.shape != tuple(target.shape)
            or prod(shape) * torch.empty(0, dtype=dtype).element_size() != stored.nbytes
        ):
            raise SafetensorsError(
                f"tensor {clipped(item.storage_index.fqn)} has a part of shape {shape} and type "
                f"{dtype} in {stored.nbytes:,} bytes, of which {part.shape} does not fit a target "
                f"of shape {tuple(target.shape)}",
                where=str(file.path),
                remedy="save the checkpoint again",
            )
        return _Needed(item, file, stored, dtype, shape, part, target)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it names a folder."""
        return "://" not in str(checkpoint_id)


class _Content:
    """The tensors of a file by their names in it."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self._known: dict[tuple[Any, ...], str] = {}

    def add(self, item: Any, data: Any) -> str:
        """Adds the data of an item; returns the name of the tensor that has it."""
        if item.type == WriteItemType.BYTE_IO:
            raw = bytearray(data.getbuffer())
            tensor = (
                torch.frombuffer(raw, dtype=torch.uint8)
                if raw
                else torch.empty(0, dtype=torch.uint8)
            )
        else:
            tensor = _dense(data, item.index.fqn)
        key = (tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape)
        if tensor.nbytes and key in self._known:
            return self._known[key]
        name = self._name(item.index)
        self._known[key] = name
        kind = FORMAT_NAMES.get(str(tensor.dtype).removeprefix("torch."))
        if kind is None:  # the metadata has the type
            tensor, kind = bytes_of(tensor, torch), "U8"
        self.tensors[name] = tensor
        self._kinds[name] = kind
        return name

    def listed(self) -> list[SizedTensor]:
        return [
            SizedTensor(name, self._kinds[name], tuple(each.shape), each.nbytes)
            for name, each in self.tensors.items()
        ]

    def _name(self, index: Any) -> str:
        """That of the item; a part of a tensor has its place too."""
        name: str = index.fqn
        if index.offset is not None and any(index.offset):
            name += f"@{','.join(map(str, index.offset))}"
        while name in self.tensors or name == "__metadata__":
            name += "_"
        return name


class _Needed(NamedTuple):
    """A part of a stored tensor, and the tensor that it goes into."""

    item: Any
    file: OpenFile
    stored: StoredItem
    dtype: Any
    shape: tuple[int, ...]
    """That of the stored tensor."""
    part: TensorSlice
    target: Any


class _TargetMaker:
    """Gives the targets as the arrays to load, where bytes can go straight into them."""

    def __init__(self, needed: dict[str, _Needed], device: str) -> None:
        self._needed = needed
        self._maker = maker_of((), device)

    def array(self, entry: TensorEntry) -> Any:
        needed = self._needed[entry.name]
        target = needed.target
        is_plain = target.is_contiguous() and not target.is_conj() and not target.is_neg()
        if is_plain and target.dtype == needed.dtype:
            return target
        return torch.empty(entry.shape, dtype=needed.dtype, device=target.device)

    def row(self, nbytes: int) -> Any:
        return self._maker.row(nbytes)

    def bytes_of(self, array: Any) -> Any:
        return self._maker.bytes_of(array)

    def rows(self, row: Any, rows: int, stride: int, nbytes: int) -> Any:
        return self._maker.rows(row, rows, stride, nbytes)

    def indexed(self, array: Any, index: tuple[int | slice, ...]) -> Any:
        return self._maker.indexed(array, index)


def _load(needed: Iterable[_Needed], device: str) -> None:
    """Loads parts of different stored tensors into their targets, which are on one device."""
    named = {str(number): each for number, each in enumerate(needed)}
    of_files: dict[Path, list[TensorEntry]] = defaultdict(list)
    for name, each in named.items():
        at = each.stored
        entry = TensorEntry(name, "", each.shape, at.offset, at.nbytes)
        of_files[each.file.path].append(entry)
    files = {each.file.path: each.file for each in named.values()}
    selections = [
        Selection(files[path], tuple(sorted(entries, key=lambda each: each.offset)))
        for path, entries in of_files.items()
    ]
    parts = {name: each.part for name, each in named.items()}
    for name, loaded in load(selections, _TargetMaker(named, device), parts).items():
        target = named[name].target
        if loaded is not target:
            target.copy_(loaded)


def _apart(needed: Iterable[_Needed]) -> Iterator[list[_Needed]]:
    """Groups in which no two need the same stored tensor."""
    groups: list[dict[StoredItem, _Needed]] = []
    for each in needed:
        group = next((group for group in groups if each.stored not in group), None)
        if group is None:
            groups.append(group := {})
        group[each.stored] = each
    return (list(group.values()) for group in groups)


def _dense(tensor: Any, name: str) -> Any:
    """A tensor whose bytes can be written. Raises `UnsupportedTransfer` for another one."""
    if tensor.layout is not torch.strided or hasattr(tensor, "__tensor_flatten__"):
        raise UnsupportedTransfer(
            f"tensor {clipped(name)} is a {type(tensor).__name__} and {tensor.layout}, not dense",
            where="SafetensorsWriter",
            remedy="save it with FileSystemWriter",
        )
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _files_of_ranks(metadata: Path) -> set[str]:
    """The files that metadata names, by its bytes: the folder may have a pickle of others, which a
    save does not run."""
    with suppress(OSError):
        return {os.fsdecode(each) for each in _FILE_OF_A_RANK.findall(metadata.read_bytes())}
    return set()


def _opened(path: Path, files: ExitStack) -> OpenFile:
    descriptor, _ = open_regular(path, files)
    return OpenFile(path, descriptor, Header({}, {}))


def _bytes_of_item(file: OpenFile, stored: StoredItem) -> bytearray:
    found = bytearray(stored.nbytes)
    if found and native.read(file.descriptor, found, offset=stored.offset) != len(found):
        raise SafetensorsError(
            f"it ends before byte {stored.offset + stored.nbytes:,}",
            where=str(file.path),
            remedy="save the checkpoint again",
        )
    return found


def _done(value: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(value)
    return future
