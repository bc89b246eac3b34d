"""Tensors into safetensors files that are complete on the disk, or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from waywiser import transfer
from waywiser.transfer.checkpoint import INDEX_NAME
from waywiser.transfer.durable_output import NewFile, new_file, new_folder
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer
from waywiser.transfer.loading import ArrayMaker
from waywiser.transfer.read_plan import PlannedRead, plan_reads
from waywiser.transfer.safetensors_header import TensorEntry
from waywiser.transfer.safetensors_layout import (
    CALL,
    FileLayout,
    SizedTensor,
    checked_metadata,
    index_of,
    lay_out,
    split_into_shards,
)
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.transfer_window import TransferWindow

MOST_TRANSFERS = 64
MOST_BYTES = 512 * 2**20
"""Bound what runs at once: enough that links and disks never wait, and little enough that an error
is reported soon, since it is raised after what runs has ended."""


def save(
    tensors: Mapping[str, Any],
    listed: Iterable[SizedTensor],
    path: str | os.PathLike[str],
    shard_bytes: object,
    metadata: object,
    *,
    make: ArrayMaker,
) -> None:
    """Saves tensors that are checked, dense and contiguous; ``listed`` is what the files say of
    them. See `waywiser.transfer.torch.save_files`."""
    texts = checked_metadata(metadata)
    target = _path(path)
    if shard_bytes is None:
        _save_file(listed, texts, tensors, make, lambda nbytes: new_file(target, nbytes))
        return
    shards = split_into_shards(listed, _size(shard_bytes))
    names = [*shards, INDEX_NAME] if len(shards) > 1 else list(shards)
    with new_folder(target, names) as folder:
        for name, shard in shards.items():
            _save_file(
                shard, texts, tensors, make, lambda nbytes, name=name: folder.file(name, nbytes)
            )
        if len(shards) > 1:
            index = index_of(shards)
            with folder.file(INDEX_NAME, len(index)) as file:
                transfer.write(file, index)


def _path(path: object) -> Path:
    try:
        given = Path(path)  # type: ignore[arg-type]
    except TypeError:
        given = None
    if given is None or "\0" in str(given) or not given.name:
        raise InvalidOperand(
            f"path is {clipped(path)}, not the path of a file",
            where=CALL,
            remedy="pass the path of a safetensors file, or of a folder with shard_bytes",
        )
    return given


def _size(shard_bytes: object) -> int:
    if not isinstance(shard_bytes, int) or isinstance(shard_bytes, bool):
        raise InvalidOperand(
            f"shard_bytes is {clipped(shard_bytes)}, not a whole number",
            where=CALL,
            remedy="pass a number of bytes, for example 5 * 10**9",
        )
    if shard_bytes < 1:
        raise InvalidTransfer(
            f"shard_bytes is {shard_bytes}", where=CALL, remedy="pass a number of bytes from 1 on"
        )
    return shard_bytes


def _save_file(
    listed: Iterable[SizedTensor],
    metadata: Mapping[str, str] | None,
    tensors: Mapping[str, Any],
    make: ArrayMaker,
    open_file: Any,
) -> None:
    layout = lay_out(listed, metadata)
    opened: AbstractContextManager[NewFile] = open_file(layout.nbytes)
    with opened as file:
        _write(file, layout, tensors, make)


def _write(file: NewFile, layout: FileLayout, tensors: Mapping[str, Any], make: ArrayMaker) -> None:
    transfer.write(file, layout.start)
    window = TransferWindow(most_transfers=MOST_TRANSFERS, most_bytes=MOST_BYTES)
    with window:
        for planned in plan_reads(layout.entries):
            if planned.nbytes:
                window.make_room(planned.nbytes)
                _PlannedWrite(file, planned).start(window, tensors, make)


class _PlannedWrite:
    """One write of a range of a file. Its text says what was being saved."""

    def __init__(self, file: NewFile, planned: PlannedRead[TensorEntry]) -> None:
        self._file = file
        self._planned = planned

    def start(self, window: TransferWindow, tensors: Mapping[str, Any], make: ArrayMaker) -> None:
        planned = self._planned
        filled = [tensors[entry.name] for entry in planned.entries if entry.nbytes]
        try:
            source = make.bytes_of(filled[0]) if len(filled) == 1 else _gathered(filled, make)
            started = transfer.write_async(self._file, source, offset=planned.offset)
        except Exception as error:
            error.add_note(str(self))
            raise
        window.add(started, planned.nbytes, self)

    def finish(self, moved: int) -> None:
        assert moved == self._planned.nbytes

    def __str__(self) -> str:
        names = [clipped(entry.name) for entry in self._planned.entries if entry.nbytes]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"while tensor {names[0]}{more} was written to {self._file.name}"


def _gathered(tensors: list[Any], make: ArrayMaker) -> Any:
    """Small tensors one after the other in host memory."""
    gathered = make.row(sum(tensor.nbytes for tensor in tensors))
    pairs: dict[str, tuple[list[Any], list[Any]]] = {}
    reached = 0
    for tensor in tensors:
        to, of = pairs.setdefault(str(getattr(tensor, "device", "cpu")), ([], []))
        to.append(gathered[reached : reached + tensor.nbytes])
        of.append(make.bytes_of(tensor))
        reached += tensor.nbytes
    for to, of in pairs.values():
        transfer.copy_batch(dsts=to, srcs=of)
    return gathered
