"""The errors of the transfer calls. Each is also the builtin error that fits it."""

from __future__ import annotations

from waywiser.errors import WaywiserError


class TransferError(WaywiserError):
    """A transfer that failed or is not valid: one line with what, where and remedy.

    ``moved`` is the number of bytes that had arrived. It is 0 if the call was not valid. ``status``
    is the name that the C interface has for it.
    """

    status = "WAYWISER_INTERNAL"

    def __init__(self, what: str, *, where: str = "", remedy: str = "", moved: int = 0) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.moved = moved


class InvalidTransfer(TransferError, ValueError):
    """Operands that do not fit each other, ranges that overlap, a read-only destination."""

    status = "WAYWISER_INVALID"


class InvalidOperand(TransferError, TypeError):
    """An operand that is no array, or two operands whose dtypes differ."""

    status = "WAYWISER_INVALID"


class UnsupportedTransfer(TransferError):
    """This machine, this build or this kind of tensor cannot do it."""

    status = "WAYWISER_UNSUPPORTED"


class TransferMemoryError(TransferError, MemoryError):
    """Memory of the host or of a GPU is exhausted, or no more memory can be pinned."""

    status = "WAYWISER_OUT_OF_MEMORY"


class GpuError(TransferError):
    """A call of the GPU runtime failed. With ``lost``, only a new process can use the GPU again."""

    lost = False
    status = "WAYWISER_GPU"


class TransferFileError(TransferError, OSError):
    """A file could not be opened, read or written; ``errno`` is set."""

    status = "WAYWISER_IO"

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        moved: int = 0,
        number: int | None = None,
    ) -> None:
        super().__init__(what, where=where, remedy=remedy, moved=moved)
        self.errno = number


class TransferFileNotFound(TransferFileError, FileNotFoundError):
    """The file does not exist."""


class TransferTimeout(TransferError, TimeoutError):
    """The transfer has not ended in the given time. It goes on."""

    status = "WAYWISER_TIMEOUT"


class TransferCancelled(TransferError):
    """The transfer was cancelled, or the context was closed before it started."""

    status = "WAYWISER_CANCELLED"


class TransferInUse(TransferError):
    """A GPU does not answer, and may use the memory of both sides at any time.

    Neither may be freed: the arrays are kept for ever.
    """

    status = "WAYWISER_IN_USE"


class ForkedContextError(TransferError):
    """A forked child used a context, a handle or memory of its parent."""

    status = "WAYWISER_FORKED"
