from __future__ import annotations

import pytest

from waywiser.exchange.imports.benchmark_name import parse_name
from waywiser.exchange.imports.commscope import counterpart
from waywiser.exchange.imports.commscope_names import counters_of, name_of
from waywiser.words import Operation, Workload

BOTH = "pinned@numa:1 -> device@gpu:2 by copy-engine of 1024; " \
       "device@gpu:2 -> pinned@numa:1 by copy-engine of 1024"  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pinned@numa:1 -> device@gpu:2 by copy-engine of 1024",
         "Comm_cudaMemcpyAsync_PinnedToGPU/1/2/log2(N):10"),
        ("device@gpu:2 -> write-combined@numa:1 by copy-engine of 1024",
         "Comm_cudaMemcpyAsync_GPUToWC/1/2/log2(N):10"),
        ("pageable@numa:1 -> device@gpu:2 by copy-engine of 1024 (flushed)",
         "Comm_cudaMemcpyAsync_HostToGPU_flush/1/2/log2(N):10"),
        ("device@gpu:0 -> device@gpu:2 by copy-engine of 1536",
         "Comm_cudaMemcpyPeerAsync_GPUToGPUPeer/0/2/bytes:1536"),
        ("device@gpu:0 -> device@gpu:2 by copy-engine[api=async,peer=off] of 1024",
         "Comm_cudaMemcpyAsync_GPUToGPU/0/2/log2(N):10"),
        (BOTH, "Comm_cudaMemcpyAsync_Duplex_Pinned/1/2/log2(N):10"),
        ("managed@numa:1 -> managed@gpu:2 by prefetch of 1024",
         "Comm_UM_Prefetch_HostToGPU/1/2/log2(N):10"),
        ("managed@gpu:2 -> managed@numa:1 by page-fault of 1024",
         "Comm_UM_Demand_GPUToHost/1/2/log2(N):10"),
        ("pageable@numa:0 -> pageable@numa:1 by cpu[side=push] of 1024",
         "libc_memcpy_NUMAToNUMA/0/1/log2(N):10"),
    ],
)  # fmt: skip
def test_what_they_measure_has_their_name_and_is_found_again(text: str, name: str) -> None:
    workload = Workload.parse(text)
    assert name_of(workload) == f"{name}/manual_time"
    counters = {key: float(value) for key, value in counters_of(workload).items()}
    again = counterpart(parse_name(name_of(workload)), counters).workload
    assert again.transfers == workload.transfers


@pytest.mark.parametrize(
    "text",
    [
        "pinned@numa:1 -> device@gpu:2 by sm of 1024",
        "pinned[pages=huge]@numa:1 -> device@gpu:2 by copy-engine of 1024",
        "pinned@numa:1 -> device@gpu:2 by copy-engine[submit=1] of 1024",
        "pinned@numa:1 -> device@gpu:2 by copy-engine as list[piece=512] of 1024",
        "device@gpu:2 -> device@gpu:2 by copy-engine of 1024",
        "file:/data/x -> pageable@numa:0 by direct-io of 1024".replace("file:", "file@file:"),
        "; ".join([BOTH, "pinned@numa:1 -> device@gpu:3 by copy-engine of 1024"]),
    ],
)
def test_what_they_do_not_measure_keeps_its_text(text: str) -> None:
    workload = Workload.parse(text)
    name = name_of(workload)
    assert not name.startswith(("Comm", "libc"))
    assert parse_name(name).named == {"bytes": workload.bytes}


def test_an_operation_keeps_its_text() -> None:
    workload = Workload(operation=Operation.parse("malloc[bytes=4096]@numa:0"))
    assert name_of(workload) == "malloc[bytes=4096]@numa:0"
    assert counters_of(workload) == {}
