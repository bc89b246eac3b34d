"""What the benchmarks of Comm|Scope and its ancestors are called here.

Three generations of names, read from the programs' sources (github.com/c3sr/comm_scope, 0.2 to
0.12, and the "microbench" before it):

    Comm_cudaMemcpyAsync_PinnedToGPU/NUMA/GPU/log2(N):8     since 0.8; hip for cuda on AMD
    Comm_NUMAMemcpy_PinnedToGPU/NUMA/GPU/8, Comm_Duplex_…   before
    NUMA_Memcpy_PinnedToGPU/8/NUMA/GPU, NUMAUM_…, UM_…      2018

Comm|Scope rewrites the source by the CPU before each copy from host memory, which is this house's
``dirtied``; names with ``_flush`` flush (on x86 some versions flushed a stack slot instead). The
ancestor does neither. Copies between GPUs are with direct access where the name ends in ``Peer``;
the ancestor's ``CUDA_`` copies have it, its ``NUMA_`` ones have not, and say whose CPU calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from waywiser.imports.benchmark_ids import NoCounterpart, Subject
from waywiser.imports.benchmark_name import BenchmarkName
from waywiser.words import (
    Cache,
    Memory,
    Operation,
    Path,
    Place,
    TimingMode,
    Transfer,
    Value,
    Workload,
)

KINDS = {"Host": "pageable", "Pageable": "pageable", "NUMA": "pageable", "Pinned": "pinned",
         "WC": "write-combined", "GPU": "device"}  # fmt: skip
"""Their words for memory -> ours."""

WALK_STRIDE = 2**20
"""Bytes from one page to the next in the benchmarks of page fault latency."""


class Counterpart(Value, frozen=True):
    """One of their benchmarks as ours."""

    workload: Workload
    mode: TimingMode
    notes: tuple[str, ...] = ()
    steps: int = 0
    """Of a walk, whose time is that of so many steps; our operation is the time of one."""


Maker = Callable[[re.Match[str], Subject], Counterpart]

_HOST = "Host|Pageable|NUMA|Pinned|WC"
_COPY = rf"(?P<source>{_HOST}|GPU)To(?P<to>{_HOST}|GPU)"


def counterpart(name: BenchmarkName, counters: Mapping[str, float]) -> Counterpart:
    """Raises `NoCounterpart`, whose text is the reason, for what this house does not measure."""
    for pattern, make in _FAMILIES:
        if match := pattern.fullmatch(name.family):
            return make(match, Subject(name, counters))
    raise NoCounterpart("this house has no counterpart of it, or does not know the benchmark")


def _place_of(word: str, index: int) -> Place:
    return Place("gpu" if word == "GPU" else "numa", index)


def _ends(match: re.Match[str], subject: Subject) -> tuple[Place, Place]:
    source, to = match["source"], match["to"]
    if (source == "GPU") == (to == "GPU"):
        first, second = subject.source_and_destination()
        return _place_of(source, first), _place_of(to, second)
    node, gpu = subject.host_and_gpu()
    if source == "GPU":
        return _place_of("GPU", gpu), _place_of("Host", node)
    return _place_of("Host", node), _place_of("GPU", gpu)


def _one(
    path: Path, subject: Subject, parameters: dict[str, str], cache: Cache = "warm"
) -> Workload:
    return Workload((Transfer(path, subject.bytes, parameters),), cache=cache)


def _both_ways(
    path: Path, subject: Subject, parameters: dict[str, str], cache: Cache = "warm"
) -> Workload:
    forth = Transfer(path, subject.bytes, parameters)
    back = Transfer(path.opposite, subject.bytes, parameters)
    return Workload((forth, back), cache=cache)


def _timed(subject: Subject, by_host: bool = False) -> TimingMode:
    """Where a benchmark times itself it uses events, unless a CPU does the work."""
    return "device" if subject.name.manual and not by_host else "host"


def _cache(match: re.Match[str], rewritten: bool) -> Cache:
    if match.groupdict().get("flush"):
        return "flushed"
    return "dirtied" if rewritten else "warm"


# Explicit copies.


def _copied(match: re.Match[str], subject: Subject, api: str, peer: bool) -> Counterpart:
    source, to = _ends(match, subject)
    parameters: dict[str, str] = {}
    between = source.kind == "gpu" and to.kind == "gpu"
    if api != ("peer" if between else "async"):
        parameters["api"] = api
    if between and not peer:
        parameters["peer"] = "off"
    if between and len(subject.ids) == 3:
        parameters["submit"] = str(subject.ids[0])
    path = Path(
        Memory(KINDS[match["source"]], source), Memory(KINDS[match["to"]], to), "copy-engine"
    )
    family = subject.name.family
    rewritten = (
        source.kind == "numa"
        and match["source"] != "WC"
        and family.startswith(("Comm_cuda", "Comm_hip", "Comm_NUMA"))
    )
    return Counterpart(_one(path, subject, parameters, _cache(match, rewritten)), _timed(subject))


def _ancestor_copy(match: re.Match[str], subject: Subject) -> Counterpart:
    return _copied(match, subject, "sync", peer=match["what"] == "CUDA")


def _async_copy(match: re.Match[str], subject: Subject) -> Counterpart:
    return _copied(match, subject, "async", peer=bool(match["peer"]))


def _sync_copy(match: re.Match[str], subject: Subject) -> Counterpart:
    return _copied(match, subject, "sync", peer=bool(match["peer"]))


def _peer_copy(match: re.Match[str], subject: Subject) -> Counterpart:
    return _copied(match, subject, "peer", peer=bool(match["peer"]))


def _duplex_copy(match: re.Match[str], subject: Subject) -> Counterpart:
    what = match["what"]
    parameters: dict[str, str] = {}
    if what == "GPUGPU":
        first, second = sorted(subject.source_and_destination())
        ends = Memory("device", Place("gpu", first)), Memory("device", Place("gpu", second))
        if "Peer" not in match["api"]:
            parameters["api"] = "async"
        if not match["peer"]:
            parameters["peer"] = "off"
    else:
        node, gpu = subject.host_and_gpu()
        ends = Memory(KINDS[what], Place("numa", node)), Memory("device", Place("gpu", gpu))
    path = Path(*ends, "copy-engine")
    return Counterpart(_both_ways(path, subject, parameters, _cache(match, False)), _timed(subject))


# Managed memory.


def _managed(match: re.Match[str], subject: Subject, executor: str) -> Counterpart:
    source, to = _ends(match, subject)
    path = Path(Memory("managed", source), Memory("managed", to), executor)
    by_host = to.kind == "numa" and executor == "page-fault"
    return Counterpart(_one(path, subject, {}), _timed(subject, by_host))


def _prefetched(match: re.Match[str], subject: Subject) -> Counterpart:
    return _managed(match, subject, "prefetch")


def _faulted(match: re.Match[str], subject: Subject) -> Counterpart:
    return _managed(match, subject, "page-fault")


def _duplex_managed(match: re.Match[str], subject: Subject) -> Counterpart:
    executor = "prefetch" if match["how"] == "Prefetch" else "page-fault"
    if match["what"] == "GPUGPU":
        ends = [Place("gpu", index) for index in sorted(subject.source_and_destination())]
    else:
        node, gpu = subject.host_and_gpu()
        ends = [Place("numa", node), Place("gpu", gpu)]
    path = Path(Memory("managed", ends[0]), Memory("managed", ends[1]), executor)
    return Counterpart(_both_ways(path, subject, {}), _timed(subject))


def _implicit(match: re.Match[str], subject: Subject) -> Counterpart:
    """Of HIP: memory at one place that another touches; it is coherent in coarse or fine grain."""
    by, verb, at = match["by"], match["verb"], match["at"]
    if by == at:
        first, second = subject.toucher_and_owner()
        toucher, owner = Place("gpu", first), Place("gpu", second)
    else:
        node, gpu = subject.host_and_gpu()
        places = {"GPU": Place("gpu", gpu), "Host": Place("numa", node)}
        toucher, owner = places[by], places[at]
    by_host = toucher.kind == "numa"
    mode: TimingMode = "host" if by_host else _timed(subject)
    if match["what"] == "mapped":
        return Counterpart(_touched_in_place(match, subject, toucher, owner), mode)
    variant = {"grain": match["grain"]} if match["grain"] else {}
    path = Path(
        Memory("managed", owner, variant), Memory("managed", toucher, variant), "page-fault"
    )
    parameters = {"threads": "all"} if by_host else {}
    note = (
        "the driver may let memory be touched where it is: whether pages moved is not recorded"
        f" ({'reads' if verb == 'Rd' else 'writes'})"
    )
    return Counterpart(_one(path, subject, parameters, _cache(match, False)), mode, (note,))


def _touched_in_place(
    match: re.Match[str], subject: Subject, toucher: Place, owner: Place
) -> Workload:
    if toucher.kind == "numa":
        raise NoCounterpart("a CPU that reaches into a GPU's memory has no counterpart here")
    kind = "device" if owner.kind == "gpu" else "pinned"
    theirs, own = Memory(kind, owner), Memory("device", toucher)
    cache = _cache(match, False)
    if match["verb"] == "Rd":
        return _one(Path(theirs, own, "sm"), subject, {"grid": "paper"}, cache)
    parameters = {"grid": "paper"} | ({"side": "push"} if owner.kind == "gpu" else {})
    return _one(Path(own, theirs, "sm"), subject, parameters, cache)


# Zero-copy: a GPU's threads reach into memory that is elsewhere.


def _zero_copy(match: re.Match[str], subject: Subject) -> Counterpart:
    source, to, verb = match["source"], match["to"], match["verb"]
    parameters = {"grid": "paper"}
    if source == to == "GPU":
        first, second = subject.source_and_destination()
        ends = Memory("device", Place("gpu", first)), Memory("device", Place("gpu", second))
        if verb == "Write":
            parameters["side"] = "push"
    else:
        node, gpu = subject.host_and_gpu()
        ends = Memory("pinned", Place("numa", node)), Memory("device", Place("gpu", gpu))
        if verb == "Write" or source == "GPU":
            ends = ends[::-1]
    workload = _one(Path(*ends, "sm"), subject, parameters, _cache(match, False))
    return Counterpart(workload, _timed(subject))


# CPUs, and what moves no bytes.


def _libc(match: re.Match[str], subject: Subject) -> Counterpart:
    source, to = subject.source_and_destination()
    path = Path(
        Memory("pageable", Place("numa", source)), Memory("pageable", Place("numa", to)), "cpu"
    )
    workload = _one(path, subject, {"side": "push"}, _cache(match, True))
    return Counterpart(workload, "host")


def _walk(match: re.Match[str], subject: Subject) -> Counterpart:
    source, to = _ends(match, subject)
    steps = subject.counters.get("strides", 0.0)
    if not 1 <= steps < 2**31 or steps != int(steps):
        raise NoCounterpart("no counter 'strides' tells how many page faults it is")
    parameters = {"stride": str(WALK_STRIDE)}
    if source != Place("numa" if to.kind == "gpu" else "gpu", 0):  # which is the default
        parameters["from"] = str(source)
    workload = Workload(operation=Operation("page-fault-latency", to, parameters))
    return Counterpart(workload, _timed(subject, to.kind == "numa"), (), int(steps))


def _operation(name: str, *, at: str, sized: bool = False) -> Maker:
    def make(match: re.Match[str], subject: Subject) -> Counterpart:
        place = Place("gpu", subject.gpu()) if at == "gpu" else Place("numa", subject.node())
        parameters = {"bytes": str(subject.bytes)} if sized else {}
        return Counterpart(Workload(operation=Operation(name, place, parameters)), "host")

    return make


_FAMILIES: tuple[tuple[re.Pattern[str], Maker], ...] = tuple(
    (re.compile(pattern), make)
    for pattern, make in (
        (rf"(?P<what>NUMA|CUDANUMA|CUDA)_Memcpy_{_COPY}", _ancestor_copy),
        (
            rf"(?:Comm_)?(?:NUMA|NUMA_)?Memcpy_{_COPY}(?P<peer>Peer)?(?P<flush>_flush)?",
            _async_copy,
        ),
        (
            rf"Comm_(?:cuda|hip)MemcpyAsync_{_COPY}(?P<peer>Peer)?(?P<flush>_flush)?",
            _async_copy,
        ),
        (rf"Comm_(?:cuda|hip)Memcpy_{_COPY}(?P<peer>Peer)?(?P<flush>_flush)?", _sync_copy),
        (
            r"Comm_(?:cuda|hip)?MemcpyPeer(?:Async)?_(?P<source>GPU)To(?P<to>GPU)(?P<peer>Peer)?",
            _peer_copy,
        ),
        (
            r"(?:Comm_)?(?:Duplex|DUPLEX)_(?P<api>NUMAMemcpy|Memcpy(?:Peer)?)_"
            r"(?P<what>Host|Pinned|GPUGPU)(?P<peer>Peer)?(?P<flush>_flush)?",
            _duplex_copy,
        ),
        (
            r"Comm_(?P<api>(?:cuda|hip)Memcpy(?:Peer)?Async)_Duplex_"
            r"(?P<what>Host|Pageable|Pinned|GPUGPU)(?P<peer>Peer)?(?P<flush>_flush)?",
            _duplex_copy,
        ),
        (
            r"(?:(?:Comm_)?(?:NUMA)?UM_Prefetch|Comm_hipManaged_Prefetch|Comm_prefetch_managed)_"
            r"(?P<source>Host|GPU)To(?P<to>Host|GPU)",
            _prefetched,
        ),
        (
            r"(?:Comm_)?(?:NUMA)?UM_(?:Coherence|Demand)_(?P<source>Host|GPU)To(?P<to>Host|GPU)",
            _faulted,
        ),
        (r"Comm_hipManaged_(?P<source>Host|GPU)To(?P<to>Host|GPU)(?:WriteDst)?", _faulted),
        (
            r"Comm_(?P<how>Prefetch|Demand|Coherence)_Duplex_(?P<what>HostGPU|GPUGPU)",
            _duplex_managed,
        ),
        (
            r"Comm_implicit_(?P<what>managed|mapped)_(?P<by>Host|GPU)(?P<verb>Rd|Wr)(?P<at>Host|GPU)"
            r"(?:_(?P<grain>coarse|fine))?(?P<flush>_flush)?",
            _implicit,
        ),
        (
            r"Comm_ZeroCopy_(?P<source>Host|GPU)To(?P<to>Host|GPU)(?:_(?P<verb>Read|Write))?"
            r"(?P<flush>_flush)?",
            _zero_copy,
        ),
        (r"(?:Comm_)?libc_memcpy_NUMAToNUMA(?P<flush>_flush)?", _libc),
        (r"(?:Comm_)?(?:NUMA)?UM_Latency_(?P<source>Host|GPU)To(?P<to>Host|GPU)", _walk),
        (r"Comm_(?:cudart|hip)_kernel", _operation("kernel-launch", at="gpu")),
        (
            r"Comm_(?:cudart_cuda|cuda|hip)DeviceSynchronize",
            _operation("device-synchronize", at="gpu"),
        ),
        (r"(?:Comm_)?libc_malloc", _operation("malloc", at="numa", sized=True)),
        (r"(?:Comm_)?libc_malloc_memset", _operation("malloc-touch", at="numa", sized=True)),
        (
            r"Comm_(?:cudart_cudaMallocManaged|UM_CudaMallocManaged)",
            _operation("managed-malloc", at="gpu", sized=True),
        ),
    )
)
"""Names of families, the first that matches, and what each is here."""
