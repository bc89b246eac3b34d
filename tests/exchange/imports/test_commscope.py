from __future__ import annotations

import pytest

from waywiser.exchange.imports.benchmark_ids import NoCounterpart
from waywiser.exchange.imports.benchmark_name import parse_name, split_aggregate
from waywiser.exchange.imports.commscope import counterpart
from waywiser.words import Workload

SIZE = {"bytes": 1024.0}


def text(name: str, **counters: float) -> str:
    return str(counterpart(parse_name(name), counters).workload)


@pytest.mark.parametrize(
    ("name", "counters", "expected"),
    [
        # the ancestor: size first, then places
        ("NUMA_Memcpy_PinnedToGPU/10/1/2/manual_time", {},
         "pinned@numa:1 -> device@gpu:2 by copy-engine[api=sync] of 1024"),
        ("NUMA_Memcpy_GPUToHost/10/1/2/manual_time", {},
         "device@gpu:2 -> pageable@numa:1 by copy-engine[api=sync] of 1024"),
        ("NUMA_Memcpy_HostToPinned/10/0/1/manual_time", {},
         "pageable@numa:0 -> pinned@numa:1 by copy-engine[api=sync] of 1024"),
        ("NUMA_Memcpy_GPUToGPU/10/1/0/5/manual_time", {},
         "device@gpu:0 -> device@gpu:5 by copy-engine[api=sync,peer=off,submit=1] of 1024"),
        ("CUDA_Memcpy_GPUToGPU/10/0/5/manual_time", {},
         "device@gpu:0 -> device@gpu:5 by copy-engine[api=sync] of 1024"),
        ("NUMAUM_Prefetch_HostToGPU/10/1/2/manual_time", {},
         "managed@numa:1 -> managed@gpu:2 by prefetch of 1024"),
        ("UM_Coherence_GPUToGPU/10/0/5/min_time:0.100/manual_time", {},
         "managed@gpu:0 -> managed@gpu:5 by page-fault of 1024"),
        ("UM_Latency_GPUToGPU/7/0/5/manual_time", {"strides": 7},
         "page-fault-latency[from=gpu:0,stride=1048576]@gpu:5"),
        ("NUMAUM_Latency_GPUToHost/7/1/2/min_time:0.100", {"strides": 7},
         "page-fault-latency[from=gpu:2,stride=1048576]@numa:1"),
        # older Comm|Scope: places first, size last; counters are believed before the name
        ("Comm_NUMAMemcpy_PinnedToGPU/1/2/10/manual_time", {},
         "pinned@numa:1 -> device@gpu:2 by copy-engine of 1024 (dirtied)"),
        ("Comm_NUMAMemcpy_GPUToPinned_flush/9/9/10/manual_time", {"numa_id": 1, "cuda_id": 2},
         "device@gpu:2 -> pinned@numa:1 by copy-engine of 1024 (flushed)"),
        ("Comm_Memcpy_GPUToGPUPeer/0/3/10/manual_time", {},
         "device@gpu:0 -> device@gpu:3 by copy-engine[api=async] of 1024"),
        ("Comm_Memcpy_WCToGPU/10/manual_time", {"numa_id": 0, "cuda_id": 3},
         "write-combined@numa:0 -> device@gpu:3 by copy-engine of 1024"),
        ("DUPLEX/Memcpy/GPUGPU/10/manual_time", {"gpu0": 3, "gpu1": 0},
         "device@gpu:0 -> device@gpu:3 by copy-engine[api=async] of 1024; "
         "device@gpu:3 -> device@gpu:0 by copy-engine[api=async] of 1024"),
        ("DUPLEX_Memcpy_GPUGPU/10/0/3/manual_time", {"bytes": 1024},
         "device@gpu:0 -> device@gpu:3 by copy-engine[api=async] of 1024; "
         "device@gpu:3 -> device@gpu:0 by copy-engine[api=async] of 1024"),
        ("NUMAUM_Coherence_GPUToHostThreads/4/10/8/2/manual_time", {"bytes": 1024},
         "managed@gpu:2 -> managed@numa:8 by page-fault[threads=4] of 1024"),
        ("NUMAUM_Latency_GPUToHost/9/0/2/min_time:0.100", {},
         "page-fault-latency[from=gpu:2,stride=1048576]@numa:0"),
        ("Comm_hipMemcpyAsync_GPUToGPU/0/1/log2(N):10/manual_time", {"src_id": 0, "dst_id": 1},
         "device@gpu:0 -> device@gpu:1 by copy-engine[api=async] of 1024"),
        ("Comm_Duplex_NUMAMemcpy_Pinned/1/2/10/manual_time", {},
         "pinned@numa:1 -> device@gpu:2 by copy-engine of 1024; "
         "device@gpu:2 -> pinned@numa:1 by copy-engine of 1024"),
        ("Comm_UM_Coherence_HostToGPU/1/2/10/manual_time", {},
         "managed@numa:1 -> managed@gpu:2 by page-fault of 1024"),
        # today's
        ("Comm_cudaMemcpyAsync_HostToGPU_flush/1/2/log2(N):10/manual_time", {},
         "pageable@numa:1 -> device@gpu:2 by copy-engine of 1024 (flushed)"),
        ("Comm_cudaMemcpyAsync_GPUToGPU/0/1/log2(N):10/manual_time", {},
         "device@gpu:0 -> device@gpu:1 by copy-engine[api=async,peer=off] of 1024"),
        ("Comm_cudaMemcpyPeerAsync_GPUToGPUPeer/0/1/log2(N):10", {"srcGpu": 4, "dstGpu": 5},
         "device@gpu:4 -> device@gpu:5 by copy-engine of 1024"),
        ("Comm_cudaMemcpyPeerAsync_GPUToGPU/0/1/log2(N):10/manual_time", {},
         "device@gpu:0 -> device@gpu:1 by copy-engine[peer=off] of 1024"),
        ("Comm_cudaMemcpyPeerAsync_Duplex_GPUGPUPeer/1/0/log2(N):10/manual_time", {},
         "device@gpu:0 -> device@gpu:1 by copy-engine of 1024; "
         "device@gpu:1 -> device@gpu:0 by copy-engine of 1024"),
        ("Comm_hipMemcpyAsync_GPUToPinned/1/2/log2(N):10/manual_time", {"hip_id": 2, "numa_id": 1},
         "device@gpu:2 -> pinned@numa:1 by copy-engine of 1024"),
        ("Comm_hipMemcpy_NUMAToGPU/1/2/log2(N):10/manual_time", {},
         "pageable@numa:1 -> device@gpu:2 by copy-engine[api=sync] of 1024 (dirtied)"),
        ("Comm_prefetch_managed_GPUToGPU/0/1/log2(N):10/manual_time", {},
         "managed@gpu:0 -> managed@gpu:1 by prefetch of 1024"),
        ("Comm_Prefetch_Duplex_HostGPU/1/2/log2(N):10/manual_time", {},
         "managed@numa:1 -> managed@gpu:2 by prefetch of 1024; "
         "managed@gpu:2 -> managed@numa:1 by prefetch of 1024"),
        ("Comm_Demand_Duplex_GPUGPU/0/1/log2(N):10", {},
         "managed@gpu:0 -> managed@gpu:1 by page-fault of 1024; "
         "managed@gpu:1 -> managed@gpu:0 by page-fault of 1024"),
        ("Comm_ZeroCopy_HostToGPU_flush/1/2/log2(N):10/manual_time", {"src_numa": 1, "dst_cuda": 2},
         "pinned@numa:1 -> device@gpu:2 by sm[grid=paper] of 1024 (flushed)"),
        ("Comm_ZeroCopy_HostToGPU_Write/1/2/log2(N):10/manual_time", {},
         "device@gpu:2 -> pinned@numa:1 by sm[grid=paper] of 1024"),
        ("Comm_ZeroCopy_GPUToGPU_Write/0/1/log2(N):10/manual_time", {},
         "device@gpu:0 -> device@gpu:1 by sm[grid=paper,side=push] of 1024"),
        ("Comm_implicit_managed_HostWrGPU_coarse/0/0/log2(N):10/manual_time",
         {"dst_numa": 1, "src_gpu": 2},
         "managed[grain=coarse]@gpu:2 -> managed[grain=coarse]@numa:1 "
         "by page-fault[threads=all] of 1024"),
        ("Comm_implicit_managed_GPURdHost_fine/1/2/log2(N):10/manual_time", {},
         "managed[grain=fine]@numa:1 -> managed[grain=fine]@gpu:2 by page-fault of 1024"),
        ("Comm_implicit_mapped_GPUWrGPU/0/3/log2(N):10/manual_time", {"wr_gpu": 0, "own_gpu": 3},
         "device@gpu:0 -> device@gpu:3 by sm[grid=paper,side=push] of 1024"),
        ("Comm_implicit_mapped_GPURdHost/1/2/log2(N):10/manual_time", {},
         "pinned@numa:1 -> device@gpu:2 by sm[grid=paper] of 1024"),
        ("libc_memcpy_NUMAToNUMA_flush/0/1/log2(N):10", {"src_id": 0, "dst_id": 1},
         "pageable@numa:0 -> pageable@numa:1 by cpu[side=push] of 1024 (flushed)"),
        ("Comm_cudart_kernel/manual_time", {}, "kernel-launch@gpu:0"),
        ("libc_malloc/1/log2(N):12", {}, "malloc[bytes=4096]@numa:1"),
        ("Comm_cudart_cudaMallocManaged/1/log2(N):12", {"cuda_id": 1},
         "managed-malloc[bytes=4096]@gpu:1"),
    ],
)  # fmt: skip
def test_families_of_all_generations(name: str, counters: dict[str, float], expected: str) -> None:
    assert text(name, **counters) == expected
    if ";" not in expected and "->" not in expected:
        return
    assert str(Workload.parse(expected)) == expected


@pytest.mark.parametrize(
    ("name", "counters", "reason"),
    [
        ("Comm_3d_cudaMemcpy2DAsync_PinnedToGPU/0/0/8/8/8/manual_time", {}, "pitch of its boxes"),
        ("CUBLAS_SGEMM/1/2/3", {}, "no counterpart"),
        ("Comm_Memcpy_WCToGPU/10/manual_time", {}, "which NUMA node and which GPU"),
        ("Comm_cudaMemcpyAsync_PinnedToGPU/0/1/log2(N):99/manual_time", {}, "2^99 is not a size"),
        ("Comm_cudaMemcpyAsync_PinnedToGPU/0/1/log2(N):-1/manual_time", {}, "2^-1 is not a size"),
        ("Comm_cudaMemcpyAsync_PinnedToGPU/0/1/log2(N):8", {"bytes": 1.5}, "is not a size"),
        ("Comm_cudaMemcpyAsync_PinnedToGPU/0/1/log2(N):8", {"numa_id": -1, "cuda_id": 0},
         "-1 is not the number of a GPU"),
        ("Comm_UM_Latency_GPUToGPU/0/5/7/manual_time", {}, "counter 'strides'"),
        ("NUMA_RD/1/14/0/8/min_time:0.100/real_time", {"bytes": 16384}, "it only reads"),
        ("Comm_implicit_mapped_HostWrGPU/0/0/log2(N):8", {}, "CPU access to the memory of a GPU"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_says_why(
    name: str, counters: dict[str, float], reason: str
) -> None:
    with pytest.raises(NoCounterpart) as caught:
        counterpart(parse_name(name), counters)
    assert reason in str(caught.value)


def test_who_timed_follows_who_works() -> None:
    def mode(name: str) -> str:
        return counterpart(parse_name(name), SIZE).mode

    assert mode("Comm_cudaMemcpyAsync_HostToGPU/0/1/log2(N):10/manual_time") == "device"
    assert mode("NUMAUM_Coherence_HostToGPU/10/0/1/manual_time") == "device"
    assert mode("NUMAUM_Coherence_GPUToHost/10/0/1/min_time:0.100") == "host"
    assert mode("Comm_Demand_Duplex_HostGPU/0/1/log2(N):10") == "host"


def test_names_are_taken_apart() -> None:
    found = parse_name("Comm/UM/Prefetch/1/2/log2(N):8/repeats:3/min_time:0.100/manual_time")
    assert found.family == "Comm_UM_Prefetch"
    assert (found.arguments, found.named, found.manual) == ((1, 2), {"log2(N)": 8}, True)
    assert split_aggregate("a/manual_time_median") == ("a/manual_time", "median")
    assert split_aggregate("a/8") == ("a/8", "")
