"""The operations of `waywiser.transfer.submit`. Each class has the name and the arguments of the
call that makes such an operation alone: `Copy` of `copy`, `CopyBlocks` of `copy_blocks`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waywiser._transfer import _File


class TransferOperation:
    """The base of `Copy`, `CopyBlocks`, `Read` and `Write`, of which `submit` and `plan` take a
    list."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Copy(TransferOperation):
    """The copy of ``src`` to ``dst``, as an operation of `submit`."""

    dst: Any
    src: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CopyBlocks(TransferOperation):
    """The copy of ``src[src_index[i]]`` to ``dst[dst_index[i]]`` for all i, as an operation of
    `submit`."""

    dst: Any
    src: Any
    dst_index: Any
    src_index: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Read(TransferOperation):
    """The read of ``nbytes`` of a file at ``offset`` into a contiguous array, by default all of it,
    as an operation of `submit`."""

    path_or_fd: _File
    dst: Any
    _: KW_ONLY
    offset: int = 0
    nbytes: int | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Write(TransferOperation):
    """The write of a contiguous array, or its first ``nbytes``, to a file at ``offset``, as an
    operation of `submit`.

    With ``truncate``, the file ends with the last byte written. With ``sync``, the bytes have
    reached the disk when the transfer has ended.
    """

    path_or_fd: _File
    src: Any
    _: KW_ONLY
    offset: int = 0
    nbytes: int | None = None
    truncate: bool = False
    sync: bool = False
