"""Conversions between the records and the native library's types."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec

from waywiser.measure.probe.protocol import MeasuredVisit
from waywiser.words.records import BlockLatencies, BufferRecord, Rule, Samples


def native_rule(library: ModuleType, rule: Rule) -> Any:
    """The stopping rule as the native library's type."""
    return library.StopRule(**msgspec.structs.asdict(rule))


def measured(outcome: dict[str, Any]) -> MeasuredVisit:
    """What ``Session.measure`` returned, as a value."""
    columns = outcome["samples"]
    samples = Samples(
        transfers=tuple(map(tuple, columns["transfers"])),
        **{name: tuple(columns[name]) for name in ("span", "host", "skew", "repetitions", "flags")},
    )
    return MeasuredVisit(
        mode=outcome["mode"],
        stop=outcome["stop"],
        samples=samples,
        buffers=tuple(map(_buffer, outcome["buffers"])),
        gate=outcome["gate"],
        notes=tuple(outcome["notes"]),
        setup_seconds=outcome["setup_seconds"],
        sampling_seconds=outcome["sampling_seconds"],
        buffer_bytes=outcome["buffer_bytes"],
        held_bytes=outcome["pool_peak_bytes"],
    )


def _buffer(found: dict[str, Any]) -> BufferRecord:
    return BufferRecord(**{**found, "gpu_seconds": tuple(found["gpu_seconds"])})


def block_latencies(found: dict[str, Any]) -> BlockLatencies:
    """One of the blocks that ``Session.locality`` returned."""
    return BlockLatencies(
        found["state"],
        copies=tuple(map(tuple, found["copies"])),
        reads=tuple(map(tuple, found["reads"])),
    )
