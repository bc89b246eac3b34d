"""Traces as a tracer would have recorded them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from waywiser.profile.trace_file import (
    PROCESS_FORMAT,
    VERSION,
    CopyGroup,
    Frame,
    MemoryCalls,
    MemorySide,
    Note,
    ProcessFacts,
    Site,
    Timeline,
    Trace,
    TracedGpu,
    TracedProcess,
)

UUID = "GPU-00000000-0000-0000-0000-000000000000"
SCRIPT = "/home/user/train.py"
MIB = 1 << 20


def python_site(line: int, *callers: int, file: str = SCRIPT) -> Site:
    """A line of Python, and its callers in the same file."""
    return Site(tuple(Frame("python", file=file, line=each) for each in (line, *callers)))


def native_site(function: str | None, module: str = "/opt/lib/libloader.so") -> Site:
    return Site((Frame("native", module=module, function=function, offset=0x1A2B),))


def group(site: int, direction: str = "H2D", host: str = "pageable", copies: int = 80,
          size: int = 64 * MIB, seconds: float = 0.8, **others: Any) -> CopyGroup:  # fmt: skip
    """Copies between host memory and gpu:0 that are all exposed."""
    ends = MemorySide(host), MemorySide("device", 0)
    source, destination = ends if direction == "H2D" else ends[::-1]
    ns = round(seconds * 1e9)
    made = CopyGroup(
        site=site, operation="copy", direction=direction, source=source, destination=destination,
        bytes_log2=size.bit_length() - 1, copies=copies, bytes=copies * size, device_ns=ns,
        calls=copies, least_bytes=size, most_bytes=size, call_ns=ns, exposed_ns=ns, alone_ns=ns,
    )  # fmt: skip
    return msgspec.structs.replace(made, **others)


def process(sites: Sequence[Site], groups: Sequence[CopyGroup], pid: int = 100, uuid: str = UUID,
            seconds: float = 41.0, exposed: float | None = None, ended: bool = True,
            memory: Sequence[MemoryCalls] = (), notes: Mapping[str, str] = {},
            timeline: Timeline | None = None, **others: Any) -> TracedProcess:  # fmt: skip
    """A process whose copies do not overlap, unless ``exposed`` says otherwise."""
    total = sum(each.exposed_ns for each in groups)
    lost = sum(each.exposed_ns if each.lost_ns is None else each.lost_ns for each in groups)
    gpu = TracedGpu(
        0, uuid, "NVIDIA H200", "0000:1b:00.0", kernels=10, kernel_ns=10**10,
        copy_ns=sum(each.device_ns for each in groups),
        exposed_ns=total if exposed is None else round(exposed * 1e9),
        lost_ns=lost if exposed is None else None,
    )  # fmt: skip
    return TracedProcess(
        PROCESS_FORMAT, VERSION,
        ProcessFacts(pid, 10**9, 10**9 + round(seconds * 1e9), ended=ended),
        kernels_recorded=True, sites=tuple(sites), groups=tuple(groups), gpus=(gpu,),
        memory=tuple(memory), notes=tuple(Note(*each) for each in notes.items()),
        timeline=timeline or Timeline(), **others,
    )  # fmt: skip


def trace(*processes: TracedProcess, seconds: float = 41.2, **others: Any) -> Trace:
    known = {"exit_code": 0, **others}
    return Trace(
        command=("python", "train.py"), started="2026-11-29T20:00:00.000+00:00", seconds=seconds,
        host="node1", waywiser="0.1.0", processes=processes, **known,
    )  # fmt: skip


def training(uuid: str = UUID, **others: Any) -> Trace:
    """A training that copies batches from pageable memory, results to new pages, small numbers one
    by one, and pins memory in its loop."""
    sites = [python_site(12, 40), python_site(17, 40), python_site(19, 40), python_site(21, 40)]
    groups = [
        group(0, seconds=0.79),
        group(1, "D2H", copies=8, seconds=0.38, new_pages=90, sampled_pages=100),
        group(2, copies=20_000, size=64, seconds=0.04, call_ns=340_000_000,
              exposed_ns=36_000_000, lost_ns=306_000_000),
        group(3, host="pinned", copies=10, seconds=0.013),
    ]  # fmt: skip
    events = (
        (0, 0, 7, 10**9, 10**9 + 10**7, 64 * MIB, 0),
        (1, 0, 7, 10**9 + 10**7, 2 * 10**9, 0, 0),
    )
    timeline = Timeline(10**9, 2 * 10**9, True, ("gemm",), events)
    memory = [MemoryCalls(0, "pin-allocate", 12, 600_000_000, 12 * 64 * MIB),
              MemoryCalls(0, "pin-free", 12, 1_000_000)]  # fmt: skip
    return trace(process(sites, groups, uuid=uuid, memory=memory, timeline=timeline), **others)
