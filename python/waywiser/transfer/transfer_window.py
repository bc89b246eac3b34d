"""Transfers under way, of which a bounded number runs at once and none outlives its owner."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import NamedTuple, Protocol, Self


class Transfer(Protocol):
    """The part of a transfer's handle that is used here."""

    def result(self, timeout: float | None = None) -> int:
        """Waits until the transfer has ended; returns the bytes that it moved."""


class Purpose(Protocol):
    """What a transfer is for."""

    def finish(self, moved: int) -> None:
        """Does what follows a transfer that has succeeded and moved so many bytes."""

    def __str__(self) -> str:
        """What was being done, as a note to the error of a transfer that has failed."""


class TransferWindow:
    """Transfers that are waited for in the order of their start. Not thread safe.

    It is a context manager. At its end every transfer has ended, also after an error: what they
    write to may then be freed, and the files that they read may be closed.
    """

    def __init__(self, *, most_transfers: int, most_bytes: int) -> None:
        self._most_transfers = most_transfers
        self._most_bytes = most_bytes
        self._under_way: deque[_UnderWay] = deque()
        self._bytes = 0

    def make_room(self, nbytes: int) -> None:
        """Waits until a transfer of so many bytes may start.

        Two may always run at once, so that the memory for one is allocated while another runs.
        Raises what a transfer that is waited for raises.
        """
        while len(self._under_way) >= self._most_transfers or (
            len(self._under_way) > 1 and self._bytes + nbytes > self._most_bytes
        ):
            self._finish_oldest()

    def add(self, transfer: Transfer, nbytes: int, purpose: Purpose) -> None:
        """Takes a transfer of so many bytes that has started."""
        self._under_way.append(_UnderWay(transfer, nbytes, purpose))
        self._bytes += nbytes

    def _finish_oldest(self) -> None:
        oldest = self._under_way[0]
        try:
            moved = oldest.transfer.result()
        except Exception as error:
            self._forget_oldest()
            error.add_note(str(oldest.purpose))
            del oldest  # its memory, which the frames of the error would keep
            raise
        self._forget_oldest()
        oldest.purpose.finish(moved)

    def _forget_oldest(self) -> None:
        self._bytes -= self._under_way.popleft().nbytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            while error is None and self._under_way:
                self._finish_oldest()
        finally:
            self._drain()

    def _drain(self) -> None:
        """Waits for all transfers, whatever becomes of them: the first error is under way already.
        An interrupt is raised after that, since the transfers write to memory of their owner."""
        interrupt: BaseException | None = None
        while self._under_way:
            try:
                self._under_way[0].transfer.result()
            except Exception:
                pass
            except BaseException as raised:
                interrupt = raised
                continue
            self._forget_oldest()
        if interrupt is not None:
            raise interrupt


class _UnderWay(NamedTuple):
    transfer: Transfer
    nbytes: int
    purpose: Purpose
