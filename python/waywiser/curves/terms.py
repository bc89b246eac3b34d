"""The terms of the field for kinds of transfers, which ``--only`` takes: ``h2d``, ``p2p``, ``uvm``.

They depend on the ends, the links and the size of a transfer and on what its executor declares,
never on a name of a setting.
"""

from __future__ import annotations

from waywiser.curves.sizes import SMALL_BYTES
from waywiser.machine import DECLARED, Machine, Traits
from waywiser.machine.link_kinds import link_kinds
from waywiser.words import Path, Workload

TERMS = {
    "h2d": "one transfer from host memory to a GPU",
    "d2h": "one transfer from a GPU to host memory",
    "d2d": "one transfer between memories of GPUs: local or P2P",
    "local": "one transfer within the memory of a GPU",
    "p2p": "one transfer between different GPUs, or both directions of it",
    "h2h": "one transfer from host memory to host memory",
    "between-ranks": "one message between two ranks of a parallel program",
    "bidir": "both directions of one path at once",
    "bidirectional": "the same",
    "zero-copy": "a kernel reads or writes page-locked host memory",
    "uvm": "unified (managed) memory, whose pages migrate automatically",
    "disk": "one side is a file",
    "collectives": "a transfer over several memories: an allreduce, an alltoall and others",
    "scattered": "pieces that are not contiguous: a list of pieces, or a box of a 3-D array",
    "memcpy": "the cudaMemcpy family, mostly by copy engines",
    "latency": "transfers of up to 4 KiB, and operations whose names have this word",
    "pcie": "bytes go over PCIe, by the topology",
    "nvlink": "bytes go over NVLink, by the topology",
}
"""Each term with its meaning."""

OTHER_NAMES = {
    "unified": "uvm",
    "duplex": "bidir",
    "zerocopy": "zero-copy",
    "storage": "disk",
    "collective": "collectives",
    "noncontiguous": "scattered",
}
"""What people write for a term, which a message then suggests."""

PHRASES = (
    (r"\bhost(?:[- ]to[- ]|->)(?:device|gpu)\b", "h2d"),
    (r"\b(?:device|gpu)(?:[- ]to[- ]|->)host\b", "d2h"),
    (r"\b(?:device|gpu)[- ]to[- ](?:device|gpu)\b", "d2d"),
    (r"\bhost[- ]to[- ]host\b", "h2h"),
    (r"\bpeer[- ]to[- ]peer\b", "p2p"),
    (r"\bbetween ranks\b", "between-ranks"),
)
"""Terms written out, as expressions."""

QUANTITIES = frozenset({"bandwidth", "throughput", "speed", "rate"})
"""Words that select nothing, since every path has them."""

LINK_TERMS = frozenset({"pcie", "nvlink"})

LINKS_UNKNOWN = "links-unknown"
"""What `terms_of` adds if the links of a transfer are not known. No term that a person writes."""

GPUS_OF = {
    **dict.fromkeys(("h2d", "d2h", "d2d", "local", "zero-copy", "memcpy", "pcie", "nvlink"), 1),
    "local copy": 1,
    **dict.fromkeys(("p2p", "collectives", "host-to-all", "all-to-host", "host-and-all"), 2),
    **dict.fromkeys(("one-to-all", "all-to-one", "one-and-all", "all-to-all", "ring"), 3),
    **dict.fromkeys(("pairs-unidirectional", "pairs-bidirectional"), 4),
}
"""How many GPUs a machine needs for anything to which the term applies, for the set, and for the
group of headline paths; none for others."""


def terms_of(workload: Workload, machine: Machine | None = None) -> frozenset[str]:
    """The terms that apply to a workload; none for an operation.

    Without a ``machine`` the links of GPUs are unknown. ``latency`` applies to a curve, which has
    no size, since it may be measured at small sizes.
    """
    traits = machine.traits if machine else DECLARED
    paths = [transfer.path for transfer in workload.transfers]
    if not paths:
        return frozenset()
    found = set()
    ends = [end for path in paths for end in path.ends]
    if workload.kind == "collective":
        found.add("collectives")
        found |= _direction(paths[0], traits) & {"between-ranks"}
    elif workload.kind == "copy":
        found |= _direction(paths[0], traits)
    elif len(paths) == 2 and paths[1].is_back_of(paths[0]):
        found |= {"bidir", "bidirectional"}
        found |= _direction(paths[0], traits) & {"p2p", "between-ranks"}
    if any(traits.memory(end.kind).migrates for end in ends):
        found.add("uvm")
    if any(end.place.kind == "file" for end in ends):
        found.add("disk")
    if any(transfer.layout is not None for transfer in workload.transfers):
        found.add("scattered")
    if all(path.executor == traits.reference_executor("gpu") for path in paths):
        found.add("memcpy")
    if all(_is_zero_copy(path, traits) for path in paths):
        found.add("zero-copy")
    if all(transfer.bytes <= SMALL_BYTES for transfer in workload.transfers):
        found.add("latency")
    return frozenset(found | _links(workload, machine))


def _links(workload: Workload, machine: Machine | None) -> set[str]:
    if machine is None:
        at_gpu = any(place.kind == "gpu" for place in workload.places)
        return {LINKS_UNKNOWN} if at_gpu else set()
    known = link_kinds(machine, workload)
    return {*known.kinds, *([LINKS_UNKNOWN] if known.unknown else [])}


def _direction(path: Path, traits: Traits) -> set[str]:
    if traits.is_between_ranks(path):
        return {"between-ranks"}
    source, destination = path.places
    match source.kind, destination.kind:
        case "numa" | "rank", "gpu":
            return {"h2d"}
        case "gpu", "numa" | "rank":
            return {"d2h"}
        case "numa", "numa":
            return {"h2h"}
        case "gpu", "gpu":
            return {"d2d", "local" if source == destination else "p2p"}
    return set()


def _is_zero_copy(path: Path, traits: Traits) -> bool:
    executor = traits.executor(path.executor)
    locked = any(traits.memory(end.kind).page_locked for end in path.ends)
    return locked and executor.is_kernel and executor.is_undisturbed
