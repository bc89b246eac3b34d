"""The worst second of each traced process in the JSON that ui.perfetto.dev opens.

Trace Event Format (Google, 2016): complete events, "X", with microseconds. Each GPU of a process is
a process there, each stream a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from waywiser.analysis.trace.copy_lines import base_of, place_of
from waywiser.profile import Timeline, Trace, TracedProcess

KINDS = ("copy", "kernel", "set", "collective")
OF_GROUPS = (0, 2)
"""Kinds whose last number is that of a group; that of the others is one of a name."""


def perfetto_json(trace: Trace) -> bytes:
    """The events of all processes."""
    base = base_of(trace)
    events = [event for process in trace.processes for event in _events(process, base)]
    return msgspec.json.encode({"traceEvents": events, "displayTimeUnit": "ms"})


def _events(process: TracedProcess, base: str) -> Iterator[dict[str, Any]]:
    pid = process.process.pid
    timeline = process.timeline or Timeline()
    for gpu in dict.fromkeys(event[1] for event in timeline.events):
        name = {"name": f"pid {pid}, gpu:{gpu}"}
        yield {"ph": "M", "name": "process_name", "pid": _number(pid, gpu), "args": name}
    for kind, gpu, stream, start, end, size, index in timeline.events:
        category = KINDS[kind] if 0 <= kind < len(KINDS) else "other"
        yield {
            "ph": "X",
            "cat": category,
            "name": _name(process, kind, index, base),
            "ts": start / 1e3,
            "dur": max(end - start, 0) / 1e3,
            "pid": _number(pid, gpu),
            "tid": stream,
            "args": {"bytes": size} if kind in OF_GROUPS else {},
        }


def _number(pid: int, gpu: int) -> int:
    return pid * 64 + gpu


def _name(process: TracedProcess, kind: int, index: int, base: str) -> str:
    if kind in OF_GROUPS and 0 <= index < len(process.groups):
        group = process.groups[index]
        place, _ = place_of(process.sites[group.site], base)
        return f"{group.direction or group.operation} {place}"
    names = process.timeline.names if process.timeline is not None else ()
    return names[index] if kind not in OF_GROUPS and 0 <= index < len(names) else KINDS[0]
