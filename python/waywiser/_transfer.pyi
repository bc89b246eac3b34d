"""The transfer library as Python sees it: a thin layer over its C interface.

``waywiser._transfer`` is the real one; the tests build ``waywiser_fake._transfer`` with the same
contents over a fake GPU. `waywiser.transfer.module` picks. An operand is any object that
docs/transfer.md lists, a stream is None or any object that it lists.
"""

from collections.abc import Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias

from waywiser.transfer.operations import TransferOperation
from waywiser.transfer.transfer_info import TransferInfo

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

class _PathLike(Protocol):
    def __fspath__(self) -> str | bytes: ...

_File: TypeAlias = int | str | bytes | _PathLike | _HasFileno

version: str

class TransferHandle:
    """A transfer that was started. Dropping it does not stop the transfer."""

    def done(self) -> bool:
        """Whether the transfer has ended, in success or failure. Does not wait."""
    def result(self, timeout: float | None = None) -> int:
        """Waits for the end, at most ``timeout`` seconds, and returns the bytes that arrived.

        Raises what the transfer failed with, and `TransferTimeout` if it has not ended; then it
        goes on. Signals are handled while it waits.
        """
    def query(self) -> TransferInfo:
        """What is known of the transfer now. Does not wait."""
    def cancel(self) -> None:
        """Ends the transfer early, and returns at once; `result` raises `TransferCancelled` then.

        What no thread has begun is not moved; some bytes may have arrived. The arrays are in use
        until the transfer has ended. Copies that are in a stream of the GPU runtime are made all
        the same; if nothing else is left, the transfer ends as without this call.
        """
    def wait(self, stream: Any = None) -> None:
        """Blocks until the last device operation is submitted, then makes ``stream`` wait for it.

        With a pageable destination it blocks until that is filled; with a pinned one it only orders
        the GPU, unless the context has relays or max_queued_bytes. None means the streams that the
        call was ordered in; the numbers 0, 1 and 2 mean default streams of the operand's GPU.
        """
    def wait_source_read(self, stream: Any = None) -> None:
        """Makes ``stream`` wait until the sources are read, so that later work in it may change
        them. Blocks the host first while `source_read_pending` is true. None means the streams that
        the call was ordered in."""
    @property
    def source_read_pending(self) -> bool:
        """Whether `wait_source_read` would block the host now: not all reads are submitted yet."""
    def _descriptor(self) -> int:
        """A new descriptor that becomes readable at the end; the caller closes it."""
    def __await__(self) -> Generator[Any, None, int]: ...

class TransferPlan:
    """Operations that are submitted again and again, from `plan`.

    They are checked and their files are opened once; indexes are copied. The plan keeps the arrays,
    whose memory stays as it is until the plan is closed. `close`, or the end of a ``with`` block,
    releases them when the transfers of the plan have ended.
    """

    def submit(self, *, stream: Any = None) -> TransferHandle:
        """Starts the operations as one transfer, and returns at once.

        None means the streams that the libraries of the arrays use now, which have to be the same.
        With ``stream`` no array is looked at again, which takes less time; DLPack producers are not
        asked to synchronise then.
        """
    def close(self) -> None:
        """Ends the plan; its transfers go on."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Context:
    def __init__(
        self,
        *,
        threads: int | None = None,
        pinned_bytes: int | None = None,
        relays: Sequence[int] = (),
        relay_bytes: int | None = None,
        max_queued_bytes: int | None = None,
        plain: bool = False,
        peer_access: bool = True,
        list_multiprocessors: int | None = None,
        spin_seconds: float | None = None,
        policy: bytes = b"",
        cpus: Sequence[int] = (),
        numa_nodes: Sequence[int] = (),
    ) -> None: ...
    def _report_warnings(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def copy(self, dst: Any, src: Any, *, stream: Any = None) -> None: ...
    def copy_async(self, dst: Any, src: Any, *, stream: Any = None) -> TransferHandle: ...
    def copy_batch(
        self, *, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None
    ) -> None: ...
    def copy_batch_async(
        self, *, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None
    ) -> TransferHandle: ...
    def snapshot_batch(
        self, *, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None
    ) -> TransferHandle: ...
    def copy_blocks(
        self, dst: Any, src: Any, dst_index: Any, src_index: Any, *, stream: Any = None
    ) -> None: ...
    def copy_blocks_async(
        self, dst: Any, src: Any, dst_index: Any, src_index: Any, *, stream: Any = None
    ) -> TransferHandle: ...
    def read(
        self,
        path_or_fd: _File,
        dst: Any,
        *,
        offset: int = 0,
        nbytes: int | None = None,
        stream: Any = None,
    ) -> int: ...
    def read_async(
        self,
        path_or_fd: _File,
        dst: Any,
        *,
        offset: int = 0,
        nbytes: int | None = None,
        stream: Any = None,
    ) -> TransferHandle: ...
    def write(
        self,
        path_or_fd: _File,
        src: Any,
        *,
        offset: int = 0,
        nbytes: int | None = None,
        truncate: bool = False,
        sync: bool = False,
        stream: Any = None,
    ) -> int: ...
    def write_async(
        self,
        path_or_fd: _File,
        src: Any,
        *,
        offset: int = 0,
        nbytes: int | None = None,
        truncate: bool = False,
        sync: bool = False,
        stream: Any = None,
    ) -> TransferHandle: ...
    def submit(
        self, operations: Iterable[TransferOperation], *, stream: Any = None
    ) -> TransferHandle: ...
    def plan(self, operations: Iterable[TransferOperation]) -> TransferPlan: ...
    def explain(
        self,
        dst: Any = None,
        src: Any = None,
        dst_index: Any = None,
        src_index: Any = None,
        *,
        dsts: Sequence[Any] | None = None,
        srcs: Sequence[Any] | None = None,
    ) -> str: ...
    def copy_method(self, dst: Any, src: Any) -> Literal["none", "plain", "chunked", "list"]: ...
    def usage(self) -> dict[str, int]: ...
    def stats(self) -> dict[str, Any]: ...
    def warnings(self) -> list[str]: ...

class HostMemory:
    """Writable bytes with the buffer protocol, freed with the last reference."""

    @property
    def nbytes(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class PinnedRegistration:
    """The memory of a host array, page-locked as long as this lives; see `register`."""

    def __init__(self, array: Any) -> None: ...
    def close(self) -> None:
        """Waits for the GPUs that may use the memory, unlocks it and releases the array.

        Does nothing the second time. Raises `GpuError` if it is unknown whether a GPU uses the
        memory, because a stream is captured, say; it stays page-locked then.
        """
    @property
    def nbytes(self) -> int:
        """Bytes that are page-locked; 0 after `close`."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

def copy(dst: Any, src: Any, *, stream: Any = None) -> None:
    """Copies ``src`` to ``dst``, ordered in the stream.

    Returns with a host destination filled and a host source reusable. Between GPUs it returns at
    once. Raises a `TransferError`.
    """

def copy_async(dst: Any, src: Any, *, stream: Any = None) -> TransferHandle:
    """Starts a copy after what is in the stream, and returns at once."""

def copy_batch(*, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None) -> None:
    """As `copy`, for many pairs in one transfer. All sources are in one place, and so are all
    destinations."""

def copy_batch_async(
    *, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None
) -> TransferHandle:
    """As `copy_async`, for the same."""

def snapshot_batch(
    *, dsts: Sequence[Any], srcs: Sequence[Any], stream: Any = None
) -> TransferHandle:
    """Copies arrays on a GPU to host arrays beside the stream, and returns at once.

    Later work in the stream does not wait for the copies. Call ``wait_source_read()`` of the handle
    before a source is changed.
    """

def copy_blocks(dst: Any, src: Any, dst_index: Any, src_index: Any, *, stream: Any = None) -> None:
    """Copies ``src[src_index[i]]`` to ``dst[dst_index[i]]`` for all i, as `copy` does.

    The blocks, the entries of the first dimension, are contiguous each. An index is a sequence of
    integers or a one-dimensional array of them on the host. No other thread may change it during
    the call. If one is wrong, nothing is copied, or of more than 32,768 blocks some.
    """

def copy_blocks_async(
    dst: Any, src: Any, dst_index: Any, src_index: Any, *, stream: Any = None
) -> TransferHandle:
    """As `copy_async`, for the same."""

def read(
    path_or_fd: _File,
    dst: Any,
    *,
    offset: int = 0,
    nbytes: int | None = None,
    stream: Any = None,
) -> int:
    """Reads ``nbytes`` of a file at ``offset`` into a contiguous array, by default all of it.

    Returns the bytes that were read: fewer only at the end of the file.
    """

def read_async(
    path_or_fd: _File,
    dst: Any,
    *,
    offset: int = 0,
    nbytes: int | None = None,
    stream: Any = None,
) -> TransferHandle:
    """Starts such a read and returns at once; ``result()`` gives the bytes."""

def write(
    path_or_fd: _File,
    src: Any,
    *,
    offset: int = 0,
    nbytes: int | None = None,
    truncate: bool = False,
    sync: bool = False,
    stream: Any = None,
) -> int:
    """Writes a contiguous array, or its first ``nbytes``, to a file at ``offset``.

    A path is created if it does not exist. With ``truncate``, the file ends with the last byte
    written. With ``sync``, the bytes have reached the disk when it returns, and are written with
    direct I/O where the file system allows it. Returns the bytes that were written.
    """

def write_async(
    path_or_fd: _File,
    src: Any,
    *,
    offset: int = 0,
    nbytes: int | None = None,
    truncate: bool = False,
    sync: bool = False,
    stream: Any = None,
) -> TransferHandle:
    """Starts such a write and returns at once; ``result()`` gives the bytes."""

def submit(operations: Iterable[TransferOperation], *, stream: Any = None) -> TransferHandle:
    """Starts operations as one transfer, and returns at once.

    An operation is a `Copy`, `CopyBlocks`, `Read` or `Write`. They are made in any order among
    themselves: none may read or write memory that another one writes. Arrays may be in several
    places, but all on GPUs are used in the same stream, unless ``stream`` is given. Errors name the
    operation, counted from 0. If one fails, others may have been made. ``result()`` gives the bytes
    of all.
    """

def plan(operations: Iterable[TransferOperation]) -> TransferPlan:
    """Prepares operations that are submitted again and again, as `submit` does.

    PyTorch copies none of them: operands with more than 2^20 contiguous pieces are an error.
    """

def wait_any(handles: Iterable[TransferHandle], timeout: float | None = None) -> int:
    """Waits until one of the transfers has ended, at most ``timeout`` seconds.

    Returns the index of the first handle whose transfer has ended, in success or failure; its
    ``result()`` says which. Raises `TransferTimeout` if none has; then they go on. Signals are
    handled while it waits.
    """

def explain(
    dst: Any = None,
    src: Any = None,
    dst_index: Any = None,
    src_index: Any = None,
    *,
    dsts: Sequence[Any] | None = None,
    srcs: Sequence[Any] | None = None,
) -> str:
    """How ``copy(dst, src)``, ``copy_blocks(dst, src, dst_index, src_index)`` or
    ``copy_batch(dsts=..., srcs=...)`` would be done; copies nothing.

    One line, or for a list one line for each method that moves some of its pieces. Raises what the
    copy would raise. Assumes that no stream is captured and that all staging memory is free.
    """

def copy_method(dst: Any, src: Any) -> Literal["none", "plain", "chunked", "list"]:
    """Says how ``copy(dst, src)`` would be done; copies nothing.

    ``plain``: by calls of the GPU runtime or by the calling thread; ``chunked``: by threads of the
    library; ``list``: the arrays are not contiguous; ``none``: without bytes. Raises what the copy
    would raise.
    """

def usage() -> dict[str, int]:
    """What the default context uses now and may use at most: ``threads``, ``most_threads``,
    ``pinned_bytes``, ``most_pinned_bytes``, ``transfers``, ``gpu_bytes`` (staging memory on the GPU
    that has most), ``most_gpu_bytes`` (on each) and ``streams``."""

def stats() -> dict[str, Any]:
    """What the default context has moved since it was made: ``transfers``, ``bytes``, ``failures``
    and ``cancellations`` of all methods, and in ``methods`` those of each method by its name, with
    its ``seconds``.

    By calls of the GPU runtime (``plain``, ``list_copies``, ``list_batch``, ``list_kernel``,
    ``list_pipeline``, ``snapshot``), the seconds are those of the host in these calls, and
    transfers count when they are submitted. By threads of the library (``chunked``, ``ring``,
    ``relayed``, ``list_staged``, ``snapshot_staged``) and of files (``read``, ``write``), they go
    from the moment when a transfer could start to its end.

    Also ``staging_waits`` and ``staging_wait_seconds``: how often and how long transfers could not
    begin because no staging memory was free; ``wake_ups`` of threads that slept, and
    ``peak_pinned_bytes``, the most that ``pinned_bytes`` of `usage` has been."""

def warnings() -> list[str]:
    """The warnings of the default context so far: a policy that is not used, memory that could not
    be pinned. Each is also a `UserWarning`, once per process."""

def pinned_memory(nbytes: int, numa: int) -> HostMemory: ...
def pageable_memory(nbytes: int) -> HostMemory: ...
def machine_json() -> str: ...
