"""Between the words and the native library's types."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec

from waywiser.probe.protocol import Measured
from waywiser.records import BufferRecord, Rule, Samples
from waywiser.words import Memory, Operation, Transfer


def native_transfer(library: ModuleType, transfer: Transfer) -> Any:
    """The transfer as the native library's type."""
    source = _native_memory(library, transfer.path.source)
    destination = _native_memory(library, transfer.path.destination)
    executor = transfer.path.executor
    return library.Transfer(source, destination, executor, transfer.bytes, transfer.parameters)


def native_operation(library: ModuleType, operation: Operation | None) -> Any:
    """The operation as the native library's type; None for none."""
    if operation is None:
        return None
    return library.Operation(operation.name, str(operation.place), operation.parameters)


def _native_memory(library: ModuleType, memory: Memory) -> Any:
    return library.Memory(memory.kind, str(memory.place), memory.variant)


def native_rule(library: ModuleType, rule: Rule) -> Any:
    """The stopping rule as the native library's type."""
    return library.StopRule(**msgspec.structs.asdict(rule))


def measured(outcome: dict[str, Any]) -> Measured:
    """What ``Session.measure`` returned, as a value."""
    columns = outcome["samples"]
    samples = Samples(
        transfers=tuple(map(tuple, columns["transfers"])),
        **{name: tuple(columns[name]) for name in ("span", "host", "skew", "repetitions", "flags")},
    )
    return Measured(
        mode=outcome["mode"],
        stop=outcome["stop"],
        samples=samples,
        buffers=tuple(BufferRecord(**buffer) for buffer in outcome["buffers"]),
        gate=outcome["gate"],
        notes=tuple(outcome["notes"]),
        setup_seconds=outcome["setup_seconds"],
        sampling_seconds=outcome["sampling_seconds"],
        buffer_bytes=outcome["buffer_bytes"],
        held_bytes=outcome["pool_peak_bytes"],
    )
