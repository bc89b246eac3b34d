"""The words in the native library's types."""

from __future__ import annotations

from typing import Any

from waywiser.machine import native
from waywiser.words import Memory, Operation, Transfer


def native_memory(memory: Memory) -> Any:
    """The memory as the native library's type. Raises what `waywiser.machine.native.load`
    raises."""
    return native.load().Memory(memory.kind, str(memory.place), memory.variant)


def native_transfer(transfer: Transfer) -> Any:
    """The transfer as the native library's type."""
    path = transfer.path
    return native.load().Transfer(
        native_memory(path.source),
        native_memory(path.destination),
        path.executor,
        transfer.bytes,
        transfer.parameters,
        transfer.layout.kind if transfer.layout else "contiguous",
        transfer.layout.settings if transfer.layout else {},
    )


def native_operation(operation: Operation) -> Any:
    """The operation as the native library's type."""
    return native.load().Operation(operation.name, str(operation.place), operation.parameters)
