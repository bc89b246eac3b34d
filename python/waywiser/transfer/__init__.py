"""Copies between host memory, GPU memory and files, by the fastest method of this machine.

    from waywiser import transfer

    transfer.copy(dst, src)                     # returns when the host side is done
    handle = transfer.copy_async(dst, src)      # returns at once; handle.result() waits
    transfer.read("weights.bin", dst)
    handle = transfer.submit([transfer.Copy(dst, src), transfer.Write("x.bin", other)])

``dst`` and ``src`` are torch tensors, numpy or cupy arrays, memoryviews, or objects with DLPack or
the CUDA array interface. The rules for streams, lifetimes and errors are in docs/transfer.md.

What may happen here: operands are checked and handed to the native library, which copies. Types to
know: `Context`, which owns threads and staging memory; `TransferHandle`; `TransferError` and its
kinds. Never here: a measurement, another package of waywiser, or an import of torch that the
program did not make.

torch, cupy and numpy are used if the program has imported them; this package imports numpy only to
return numpy arrays.
"""

from waywiser.transfer.arrays import pinned_empty, register, to_host
from waywiser.transfer.context import Context, machine
from waywiser.transfer.errors import (
    ForkedContextError,
    GpuError,
    InvalidOperand,
    InvalidTransfer,
    TransferCancelled,
    TransferError,
    TransferFileError,
    TransferFileNotFound,
    TransferInUse,
    TransferMemoryError,
    TransferTimeout,
    UnsupportedTransfer,
)
from waywiser.transfer.module import native
from waywiser.transfer.open_files import SafeOpen, safe_open
from waywiser.transfer.operations import Copy, CopyBlocks, Read, TransferOperation, Write
from waywiser.transfer.prefetching import PrefetchLoader
from waywiser.transfer.transfer_info import TransferInfo

__all__ = [
    "Context",
    "Copy",
    "CopyBlocks",
    "ForkedContextError",
    "GpuError",
    "InvalidOperand",
    "InvalidTransfer",
    "PinnedRegistration",
    "PrefetchLoader",
    "Read",
    "SafeOpen",
    "TransferCancelled",
    "TransferError",
    "TransferFileError",
    "TransferFileNotFound",
    "TransferHandle",
    "TransferInUse",
    "TransferInfo",
    "TransferMemoryError",
    "TransferOperation",
    "TransferPlan",
    "TransferTimeout",
    "UnsupportedTransfer",
    "Write",
    "copy",
    "copy_async",
    "copy_batch",
    "copy_batch_async",
    "copy_blocks",
    "copy_blocks_async",
    "copy_method",
    "explain",
    "machine",
    "pinned_empty",
    "plan",
    "read",
    "read_async",
    "register",
    "safe_open",
    "snapshot_batch",
    "stats",
    "submit",
    "to_host",
    "usage",
    "wait_any",
    "warnings",
    "write",
    "write_async",
]

copy = native.copy
copy_async = native.copy_async
copy_batch = native.copy_batch
copy_batch_async = native.copy_batch_async
copy_blocks = native.copy_blocks
copy_blocks_async = native.copy_blocks_async
read = native.read
read_async = native.read_async
write = native.write
write_async = native.write_async
snapshot_batch = native.snapshot_batch
submit = native.submit
plan = native.plan
wait_any = native.wait_any
copy_method = native.copy_method
explain = native.explain
stats = native.stats
usage = native.usage
warnings = native.warnings
PinnedRegistration = native.PinnedRegistration
TransferHandle = native.TransferHandle
TransferPlan = native.TransferPlan
