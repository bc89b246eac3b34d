"""How a family of Comm|Scope's benchmarks becomes a workload: one function for each shape of name.

What is read from a name is its groups: ``source`` and ``to`` are ends, ``peer`` and ``flush`` are
suffixes. `waywiser.exchange.imports.commscope` says which names have which shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from waywiser.exchange.imports.benchmark_ids import Benchmark, NoCounterpart
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
"""Words of Comm|Scope for memory -> those of Waywiser."""

WALK_STRIDE = 2**20
"""Bytes from one page to the next in the benchmarks of page fault latency."""


class Counterpart(Value, frozen=True):
    """A benchmark of Comm|Scope as one of Waywiser."""

    workload: Workload
    mode: TimingMode
    notes: tuple[str, ...] = ()
    steps: int = 0
    """Steps of a walk, whose time is that of so many steps; our operation is the time of one."""


Maker = Callable[[re.Match[str], Benchmark], Counterpart]


def _place_of(word: str, index: int) -> Place:
    return Place("gpu" if word == "GPU" else "numa", index)


def _ends(match: re.Match[str], subject: Benchmark) -> tuple[Place, Place]:
    source, to = match["source"], match["to"]
    if (source == "GPU") == (to == "GPU"):
        first, second = subject.source_and_destination()
        return _place_of(source, first), _place_of(to, second)
    node, gpu = subject.host_and_gpu()
    if source == "GPU":
        return _place_of("GPU", gpu), _place_of("Host", node)
    return _place_of("Host", node), _place_of("GPU", gpu)


def _one(
    path: Path, subject: Benchmark, parameters: dict[str, str], cache: Cache = "warm"
) -> Workload:
    return Workload((Transfer(path, subject.bytes, parameters),), cache=cache)


def _bidirectional(
    path: Path, subject: Benchmark, parameters: dict[str, str], cache: Cache = "warm"
) -> Workload:
    forth = Transfer(path, subject.bytes, parameters)
    back = Transfer(path.opposite, subject.bytes, parameters)
    return Workload((forth, back), cache=cache)


def _timed(subject: Benchmark, by_host: bool = False) -> TimingMode:
    """A benchmark that times itself uses events, unless a CPU does the work."""
    return "device" if subject.name.manual and not by_host else "host"


def _cache(match: re.Match[str], rewritten: bool) -> Cache:
    if match.groupdict().get("flush"):
        return "flushed"
    return "dirtied" if rewritten else "warm"


# Explicit copies.


def _copied(match: re.Match[str], subject: Benchmark, api: str, peer: bool) -> Counterpart:
    source, to = _ends(match, subject)
    parameters: dict[str, str] = {}
    between = source.kind == "gpu" and to.kind == "gpu"
    if api != ("peer" if between else "async"):
        parameters["api"] = api
    if between and not peer and "_hip" not in subject.name.family:  # HIP's names do not say
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


def ancestor_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
    return _copied(match, subject, "sync", peer=match["what"] == "CUDA")


def async_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
    return _copied(match, subject, "async", peer=bool(match["peer"]))


def sync_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
    return _copied(match, subject, "sync", peer=bool(match["peer"]))


def peer_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
    return _copied(match, subject, "peer", peer=bool(match["peer"]))


def duplex_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
    what = match["what"]
    parameters: dict[str, str] = {}
    if what == "GPUGPU":
        first, second = sorted(subject.source_and_destination())
        ends = Memory("device", Place("gpu", first)), Memory("device", Place("gpu", second))
        if "Peer" not in match["api"]:
            parameters["api"] = "async"
        if not match["peer"] and not subject.name.family.startswith("DUPLEX"):
            parameters["peer"] = "off"  # the ancestor's duplex copies have direct access
    else:
        node, gpu = subject.host_and_gpu()
        ends = Memory(KINDS[what], Place("numa", node)), Memory("device", Place("gpu", gpu))
    path = Path(*ends, "copy-engine")
    return Counterpart(
        _bidirectional(path, subject, parameters, _cache(match, False)), _timed(subject)
    )


# Managed memory.


def _managed(match: re.Match[str], subject: Benchmark, executor: str) -> Counterpart:
    source, to = _ends(match, subject)
    path = Path(Memory("managed", source), Memory("managed", to), executor)
    by_host = to.kind == "numa" and executor == "page-fault"
    return Counterpart(_one(path, subject, {}), _timed(subject, by_host))


def prefetched(match: re.Match[str], subject: Benchmark) -> Counterpart:
    return _managed(match, subject, "prefetch")


def faulted(match: re.Match[str], subject: Benchmark) -> Counterpart:
    return _managed(match, subject, "page-fault")


def faulted_by_threads(match: re.Match[str], subject: Benchmark) -> Counterpart:
    """The number of threads comes first in the name."""
    threads = subject.name.arguments[0] if subject.name.arguments else 0
    if not 1 <= threads < 2**16 or "bytes" not in subject.counters:
        raise NoCounterpart("neither its name nor a counter gives threads and size")
    found = faulted(match, subject)
    (transfer,) = found.workload.transfers
    parameters = {"threads": str(threads)} if threads > 1 else {}
    return replace(found, workload=Workload((replace(transfer, parameters=parameters),)))


def duplex_managed(match: re.Match[str], subject: Benchmark) -> Counterpart:
    executor = "prefetch" if match["how"] == "Prefetch" else "page-fault"
    if match["what"] == "GPUGPU":
        ends = [Place("gpu", index) for index in sorted(subject.source_and_destination())]
    else:
        node, gpu = subject.host_and_gpu()
        ends = [Place("numa", node), Place("gpu", gpu)]
    path = Path(Memory("managed", ends[0]), Memory("managed", ends[1]), executor)
    return Counterpart(_bidirectional(path, subject, {}), _timed(subject))


def implicit(match: re.Match[str], subject: Benchmark) -> Counterpart:
    """A benchmark of HIP: memory at one place that another touches; it is coherent in coarse or
    fine grain."""
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
    match: re.Match[str], subject: Benchmark, toucher: Place, owner: Place
) -> Workload:
    if toucher.kind == "numa":
        raise NoCounterpart("CPU access to the memory of a GPU has no counterpart here")
    kind = "device" if owner.kind == "gpu" else "pinned"
    theirs, own = Memory(kind, owner), Memory("device", toucher)
    cache = _cache(match, False)
    if match["verb"] == "Rd":
        return _one(Path(theirs, own, "sm"), subject, {"grid": "paper"}, cache)
    parameters = {"grid": "paper"} | ({"side": "push"} if owner.kind == "gpu" else {})
    return _one(Path(own, theirs, "sm"), subject, parameters, cache)


# Zero-copy: a GPU's threads reach into memory that is elsewhere.


def zero_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
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


def libc_copy(match: re.Match[str], subject: Benchmark) -> Counterpart:
    source, to = subject.source_and_destination()
    path = Path(
        Memory("pageable", Place("numa", source)), Memory("pageable", Place("numa", to)), "cpu"
    )
    workload = _one(path, subject, {"side": "push"}, _cache(match, True))
    return Counterpart(workload, "host")


def walk(match: re.Match[str], subject: Benchmark) -> Counterpart:
    source, to = _ends(match, subject)
    parameters = {"stride": str(WALK_STRIDE)}
    if source != Place("numa" if to.kind == "gpu" else "gpu", 0):  # which is the default
        parameters["from"] = str(source)
    workload = Workload(operation=Operation("page-fault-latency", to, parameters))
    return Counterpart(workload, _timed(subject, to.kind == "numa"), (), subject.steps)


def without(reason: str) -> Maker:
    """A maker for known families that have no counterpart here."""

    def not_imported(match: re.Match[str], subject: Benchmark) -> Counterpart:
        raise NoCounterpart(reason)

    return not_imported


def operation(name: str, *, at: str, sized: bool = False) -> Maker:
    def make(match: re.Match[str], subject: Benchmark) -> Counterpart:
        place = Place("gpu", subject.gpu()) if at == "gpu" else Place("numa", subject.node())
        parameters = {"bytes": str(subject.bytes)} if sized else {}
        return Counterpart(Workload(operation=Operation(name, place, parameters)), "host")

    return make
