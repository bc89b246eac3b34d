"""What the benchmarks of Comm|Scope and its ancestors are called here.

Three generations of names, read from the programs' sources (github.com/c3sr/comm_scope, 0.2 to
0.12, and the "microbench" before it):

    Comm_cudaMemcpyAsync_PinnedToGPU/NUMA/GPU/log2(N):8     since 0.8; hip for cuda on AMD
    Comm_NUMAMemcpy_PinnedToGPU/NUMA/GPU/8, Comm_Duplex_…   before
    NUMA_Memcpy_PinnedToGPU/8/NUMA/GPU, NUMAUM_…, UM_…      2018

Comm|Scope rewrites the source by the CPU before each copy from host memory, which is Waywiser's
``dirtied``; names with ``_flush`` flush (on x86 some versions flushed a stack slot instead). The
ancestor does neither. Copies between GPUs are with direct access where the name ends in ``Peer``;
the ancestor's ``CUDA_`` copies have it, its ``NUMA_`` ones have not, and say whose CPU calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from waywiser.exchange.imports import commscope_makers as make
from waywiser.exchange.imports.benchmark_ids import Benchmark, NoCounterpart
from waywiser.exchange.imports.benchmark_name import BenchmarkName
from waywiser.exchange.imports.commscope_makers import Counterpart, Maker

_HOST = "Host|Pageable|NUMA|Pinned|WC"
_COPY = rf"(?P<source>{_HOST}|GPU)To(?P<to>{_HOST}|GPU)"


def counterpart(name: BenchmarkName, counters: Mapping[str, float]) -> Counterpart:
    """Raises `NoCounterpart`, whose text is the reason, for what Waywiser does not measure."""
    if name.threads > 1:
        raise NoCounterpart("several threads ran it at once, which has no counterpart here")
    for pattern, maker in _FAMILIES:
        if match := pattern.fullmatch(name.family):
            return maker(match, Benchmark(name, counters))
    raise NoCounterpart("Waywiser has no counterpart of this benchmark")


_FAMILIES: tuple[tuple[re.Pattern[str], Maker], ...] = tuple(
    (re.compile(pattern), maker)
    for pattern, maker in (
        (rf"(?P<what>NUMA|CUDANUMA|CUDA)_Memcpy_{_COPY}", make.ancestor_copy),
        (
            rf"(?:Comm_)?(?:NUMA|NUMA_)?Memcpy_{_COPY}(?P<peer>Peer)?(?P<flush>_flush)?",
            make.async_copy,
        ),
        (
            rf"Comm_(?:cuda|hip)MemcpyAsync_{_COPY}(?P<peer>Peer)?(?P<flush>_flush)?",
            make.async_copy,
        ),
        (rf"Comm_(?:cuda|hip)Memcpy_{_COPY}(?P<peer>Peer)?(?P<flush>_flush)?", make.sync_copy),
        (
            r"Comm_(?:cuda|hip)?MemcpyPeer(?:Async)?_(?P<source>GPU)To(?P<to>GPU)(?P<peer>Peer)?",
            make.peer_copy,
        ),
        (
            r"(?:Comm_)?(?:Duplex|DUPLEX)_(?P<api>NUMAMemcpy|Memcpy(?:Peer)?)_"
            r"(?P<what>Host|Pinned|GPUGPU)(?P<peer>Peer)?(?P<flush>_flush)?",
            make.duplex_copy,
        ),
        (
            r"Comm_(?P<api>(?:cuda|hip)Memcpy(?:Peer)?Async)_Duplex_"
            r"(?P<what>Host|Pageable|Pinned|GPUGPU)(?P<peer>Peer)?(?P<flush>_flush)?",
            make.duplex_copy,
        ),
        (
            r"(?:(?:Comm_)?(?:NUMA)?UM_Prefetch|Comm_hipManaged_Prefetch|Comm_prefetch_managed)_"
            r"(?P<source>Host|GPU)To(?P<to>Host|GPU)",
            make.prefetched,
        ),
        (
            r"(?:Comm_)?(?:NUMA)?UM_(?:Coherence|Demand)_(?P<source>Host|GPU)To(?P<to>Host|GPU)",
            make.faulted,
        ),
        (
            r"NUMAUM_Coherence_(?P<source>GPU)To(?P<to>Host)Threads",
            make.faulted_by_threads,
        ),
        (r"Comm_hipManaged_(?P<source>Host|GPU)To(?P<to>Host|GPU)(?:WriteDst)?", make.faulted),
        (
            r"Comm_(?P<how>Prefetch|Demand|Coherence)_Duplex_(?P<what>HostGPU|GPUGPU)",
            make.duplex_managed,
        ),
        (
            r"Comm_implicit_(?P<what>managed|mapped)_(?P<by>Host|GPU)(?P<verb>Rd|Wr)(?P<at>Host|GPU)"
            r"(?:_(?P<grain>coarse|fine))?(?P<flush>_flush)?",
            make.implicit,
        ),
        (
            r"Comm_ZeroCopy_(?P<source>Host|GPU)To(?P<to>Host|GPU)(?:_(?P<verb>Read|Write))?"
            r"(?P<flush>_flush)?",
            make.zero_copy,
        ),
        (r"(?:Comm_)?libc_memcpy_NUMAToNUMA(?P<flush>_flush)?", make.libc_copy),
        (r"(?:Comm_)?(?:NUMA)?UM_Latency_(?P<source>Host|GPU)To(?P<to>Host|GPU)", make.walk),
        (r"Comm_(?:cudart|hip)_kernel", make.operation("kernel-launch", at="gpu")),
        (
            r"Comm_(?:cudart_cuda|cuda|hip)DeviceSynchronize",
            make.operation("device-synchronize", at="gpu"),
        ),
        (r"(?:Comm_)?libc_malloc", make.operation("malloc", at="numa", sized=True)),
        (r"(?:Comm_)?libc_malloc_memset", make.operation("malloc-touch", at="numa", sized=True)),
        (
            r"Comm_(?:cudart_cudaMallocManaged|UM_CudaMallocManaged)",
            make.operation("managed-malloc", at="gpu", sized=True),
        ),
        (
            r"NUMA_(?:RD|WR)|NUMA/(?:RD|WR)",
            make.without("it only reads or only writes, and a copy does both"),
        ),
        (
            r"Comm_3d_.*",
            make.without("the pitch of its boxes is fixed, and that of boxes here is twice a row"),
        ),
        (
            r".*(?:GPUToHostMt|GPUThreads)",
            make.without("no parameter here means the number of threads that took part"),
        ),
    )
)
"""Names of families, the first that matches, and what each is here."""
