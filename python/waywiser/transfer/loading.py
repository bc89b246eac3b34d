"""Tensors of safetensors files into new arrays of one library, many reads at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from waywiser import transfer
from waywiser.transfer.checkpoint import OpenFile, Selection
from waywiser.transfer.read_plan import PlannedRead, plan_reads
from waywiser.transfer.safetensors_header import SafetensorsError, TensorEntry
from waywiser.transfer.strict_json import clipped
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


def load(selections: Iterable[Selection], make: ArrayMaker) -> dict[str, Any]:
    """The selected tensors by name. No transfer runs when an error is raised."""
    tensors: dict[str, Any] = {}
    try:
        with TransferWindow(most_transfers=MOST_TRANSFERS, most_bytes=MOST_BYTES) as window:
            for file, read in ((f, read) for f, own in selections for read in plan_reads(own)):
                window.make_room(read.nbytes)
                _LoadingRead(file, read, make, tensors).start(window)
    except BaseException:
        # The traceback would keep the memory of what was loaded.
        tensors.clear()
        raise
    return tensors


class _LoadingRead:
    """One read and the tensors that it fills. Its text says what was being loaded."""

    def __init__(
        self,
        file: OpenFile,
        read: PlannedRead,
        make: ArrayMaker,
        tensors: dict[str, Any],
    ) -> None:
        """Allocates the tensors and puts them into ``tensors``."""
        self._file = file
        self._read = read
        self._make = make
        self._made: dict[str, Any] = {entry.name: make.array(entry) for entry in read.entries}
        tensors.update(self._made)
        self._staging: Any = None

    def start(self, window: TransferWindow) -> None:
        read = self._read
        if not read.nbytes:
            return
        if read.direct:
            made = next(self._made[entry.name] for entry in read.entries if entry.nbytes)
            into = self._make.bytes_of(made)
        else:
            into = self._staging = self._make.row(read.nbytes)
        try:
            started = transfer.read_async(
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

    def _scatter(self, staging: Any) -> None:
        """Copies the tensors from staging memory, ordered in the current stream."""
        to, of, reached = [], [], 0
        for nbytes, entry in self._read.pieces():
            if entry is not None:
                to.append(self._make.bytes_of(self._made[entry.name]))
                of.append(staging[reached : reached + nbytes])
            reached += nbytes
        transfer.copy_batch(dsts=to, srcs=of)

    def __str__(self) -> str:
        names = [clipped(entry.name) for entry in self._read.entries if entry.nbytes]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"while tensor {names[0]}{more} of {self._file.path} was loaded"
