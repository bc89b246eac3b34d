"""Tensors of safetensors files into new arrays of one library, many reads at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from waywiser.transfer.checkpoint import OpenFile, Selection, TensorNotFoundError
from waywiser.transfer.errors import InvalidOperand
from waywiser.transfer.module import native
from waywiser.transfer.read_plan import PlannedRead, TensorRange, plan_reads
from waywiser.transfer.safetensors_header import SafetensorsError, TensorEntry
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.tensor_slices import TensorSlice, parts_of, tensor_slice
from waywiser.transfer.transfer_window import TransferWindow

MOST_TRANSFERS = 64
MOST_BYTES = 512 * 2**20
"""Bounds what runs at once: enough that links and disks never wait, and little enough that an error
is reported soon, since it is raised after what runs has ended."""


class ArrayMaker(Protocol):
    """Makes the arrays of one library at one place."""

    def array(self, entry: TensorEntry) -> Any:
        """A new array of the type and the shape of a tensor."""

    def row(self, nbytes: int) -> Any:
        """A new row of so many bytes."""

    def bytes_of(self, array: Any) -> Any:
        """An array as a row of bytes."""

    def rows(self, row: Any, rows: int, stride: int, nbytes: int) -> Any:
        """A view of a row of bytes: so many rows of ``nbytes`` each, ``stride`` bytes apart."""

    def indexed(self, array: Any, index: tuple[int | slice, ...]) -> Any:
        """The part of an array, with memory of its own."""


class BackgroundMaker(ArrayMaker, Protocol):
    """Makes arrays that another thread takes."""

    def beside(self) -> AbstractContextManager[object]:
        """Lets what is copied in the context run beside other work of the device."""

    def wait(self) -> None:
        """Waits until what was copied in the context of `beside` is complete."""

    def hand_out(self, array: Any) -> None:
        """Keeps the memory of an array, which the calling thread takes, until what its current
        stream has then is done."""


def load(
    selections: Iterable[Selection],
    make: ArrayMaker,
    slices: Mapping[str, TensorSlice] | None = None,
    landed: Callable[[str, Any], None] | None = None,
) -> dict[str, Any]:
    """The selected tensors by name; of those in ``slices`` these parts. No transfer runs when an
    error is raised. ``landed`` takes each tensor when it has all its bytes, instead of the
    result; what it raises ends the call."""
    parts = slices or {}
    tensors: dict[str, Any] = {}
    missing: dict[str, int] = {}

    def finish(read: PlannedRead[TensorRange]) -> None:
        for each in read.entries:
            missing[each.name] -= each.rows * each.row_bytes
            if missing[each.name]:
                continue
            if (part := parts.get(each.name)) is not None and not part.is_box:
                tensors[each.name] = make.indexed(tensors[each.name], part.rest)
            if landed is not None:
                landed(each.name, tensors.pop(each.name))

    try:
        with TransferWindow(most_transfers=MOST_TRANSFERS, most_bytes=MOST_BYTES) as window:
            for file, entries in selections:
                boxes = {each.name: _box(each, parts.get(each.name)) for each in entries}
                missing |= {each.name: _box_bytes(each, boxes[each.name]) for each in entries}
                ranges = (part for each in entries for part in parts_of(each, parts.get(each.name)))
                for read in plan_reads(ranges):
                    window.make_room(read.nbytes)
                    _LoadingRead(file, read, make, boxes, tensors, finish).start(window)
    except BaseException:
        # The traceback would keep the memory of what was loaded.
        tensors.clear()
        raise
    return tensors


def slices_of(
    selections: Iterable[Selection], slices: object, where: str
) -> dict[str, TensorSlice]:
    """The slices of a caller: indices by the names of selected tensors.

    Raises `InvalidOperand` for anything else, `TensorNotFoundError` for a tensor that is not
    selected, and what `tensor_slice` raises.
    """
    if slices is None:
        return {}
    if not isinstance(slices, Mapping):
        raise InvalidOperand(
            f"slices is of type {type(slices).__name__}, not a dict",
            where=where,
            remedy="pass slices={'name': (slice(0, 10), slice(None))}",
        )
    entries = {entry.name: entry for _, own in selections for entry in own}
    require_names(slices, entries, "slices", where)
    return {name: tensor_slice(index, entries[name]) for name, index in slices.items()}


def require_names(names: Iterable[str], loaded: Container[str], what: str, where: str) -> None:
    """Raises `TensorNotFoundError` for a name that is not among the tensors that are loaded."""
    for name in names:
        if name not in loaded:
            raise TensorNotFoundError(
                f"{what} has {clipped(name)}, which is not among the tensors that are loaded",
                where=where,
                remedy="check the name, and that keys has it too",
            )


def _box(entry: TensorEntry, part: TensorSlice | None) -> TensorEntry:
    """A tensor as it is allocated: of a slice the box that holds it."""
    return entry if part is None else entry._replace(shape=part.shape)


def _box_bytes(entry: TensorEntry, box: TensorEntry) -> int:
    return entry.nbytes * math.prod(box.shape) // max(math.prod(entry.shape), 1)


class _LoadingRead:
    """One read and the tensors that it fills. Its text says what was being loaded."""

    def __init__(
        self,
        file: OpenFile,
        read: PlannedRead[TensorRange],
        make: ArrayMaker,
        boxes: Mapping[str, TensorEntry],
        tensors: dict[str, Any],
        finished: Callable[[PlannedRead[TensorRange]], None],
    ) -> None:
        """Allocates the tensors of ``boxes`` that ``tensors`` has not, and puts them there.
        ``finished`` takes the read when its bytes are in them."""
        self._file = file
        self._read = read
        self._make = make
        for part in read.entries:
            if part.name not in tensors:
                tensors[part.name] = make.array(boxes[part.name])
        self._made = {part.name: tensors[part.name] for part in read.entries}
        self._finished = finished
        self._staging: Any = None

    def start(self, window: TransferWindow) -> None:
        read = self._read
        if not read.nbytes:
            self._finished(read)
            return
        filled = [part for part in read.entries if part.nbytes]
        if read.direct and filled[0].rows == 1:
            into = self._bytes_of(filled[0])
        else:
            into = self._staging = self._make.row(read.nbytes)
        try:
            started = native.read_async(
                self._file.descriptor, into, offset=read.offset, nbytes=read.nbytes
            )
        except Exception as error:
            error.add_note(str(self))
            raise
        window.add(started, read.nbytes, self)

    def finish(self, moved: int) -> None:
        if moved != self._read.nbytes:
            raise SafetensorsError(
                f"the file ended at byte {self._read.offset + moved:,} while it was read: it was "
                "longer when its header was read",
                where=str(self._file.path),
                remedy="write a checkpoint under another name and rename it when it is complete",
            )
        if self._staging is not None:
            self._scatter(self._staging)
        self._made.clear()  # a tensor that is handed out here is freed by its new owner
        self._finished(self._read)

    def _scatter(self, staging: Any) -> None:
        """Copies the tensors from staging memory, ordered in the current stream."""
        to, of, reached = [], [], 0
        for nbytes, part in self._read.pieces():
            source = staging[reached : reached + nbytes]
            reached += nbytes
            if part is None:
                continue
            if part.rows == 1:
                to.append(self._bytes_of(part))
                of.append(source)
                continue
            row, rows = part.row_bytes, part.rows
            native.copy(
                self._make.rows(self._bytes_of(part), rows, row, row),
                self._make.rows(source, rows, part.stride, row),
            )
        if to:
            native.copy_batch(dsts=to, srcs=of)

    def _bytes_of(self, part: TensorRange) -> Any:
        """The bytes of a tensor that a part fills."""
        row = self._make.bytes_of(self._made[part.name])
        return row[part.at : part.at + part.rows * part.row_bytes]

    def __str__(self) -> str:
        names = [clipped(entry.name) for entry in self._read.entries if entry.nbytes]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"while tensor {names[0]}{more} of {self._file.path} was loaded"
