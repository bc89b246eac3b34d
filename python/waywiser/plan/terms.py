"""The terms of the field for kinds of transfers, which ``--only`` takes: ``h2d``, ``p2p``, ``uvm``.

They depend on the ends and on what the executor declares, never on a name of a setting.
"""

from __future__ import annotations

from waywiser.topology.traits import DECLARED, Traits
from waywiser.words import Path, Workload

TERMS = {
    "h2d": "one transfer from host memory to a GPU",
    "d2h": "one transfer from a GPU to host memory",
    "d2d": "one transfer between memories of GPUs: local or P2P",
    "local": "one transfer within the memory of a GPU",
    "p2p": "one transfer between different GPUs, or both directions of it",
    "h2h": "one transfer within host memory",
    "bidir": "both directions of one path at once",
    "bidirectional": "the same",
    "zero-copy": "a kernel reads or writes page-locked host memory",
    "uvm": "unified (managed) memory, whose pages migrate automatically",
    "disk": "one side is a file",
    "memcpy": "cudaMemcpyAsync, which copy engines serve",
}
"""Each term with its meaning."""


GPUS_OF = {"h2d": 1, "d2h": 1, "d2d": 1, "local": 1, "p2p": 2, "zero-copy": 1, "memcpy": 1}
"""How many GPUs a machine needs for anything to which the term applies."""


def terms_of(workload: Workload, traits: Traits = DECLARED) -> frozenset[str]:
    """The terms that apply to a workload; none for an operation."""
    paths = [transfer.path for transfer in workload.transfers]
    if not paths:
        return frozenset()
    found = set()
    ends = [end for path in paths for end in path.ends]
    if len(paths) == 1:
        found |= _direction(paths[0])
    elif len(paths) == 2 and paths[1] == paths[0].opposite:
        found |= {"bidir", "bidirectional"} | (_direction(paths[0]) & {"p2p"})
    if any(traits.memory(end.kind).migrates for end in ends):
        found.add("uvm")
    if any(end.place.kind == "file" for end in ends):
        found.add("disk")
    if all(path.executor == traits.reference_executor("gpu") for path in paths):
        found.add("memcpy")
    if all(_is_zero_copy(path, traits) for path in paths):
        found.add("zero-copy")
    return frozenset(found)


def _direction(path: Path) -> set[str]:
    source, destination = path.places
    match source.kind, destination.kind:
        case "numa", "gpu":
            return {"h2d"}
        case "gpu", "numa":
            return {"d2h"}
        case "numa", "numa":
            return {"h2h"}
        case "gpu", "gpu":
            return {"d2d", "local" if source == destination else "p2p"}
    return set()


def _is_zero_copy(path: Path, traits: Traits) -> bool:
    executor = traits.executor(path.executor)
    locked = any(traits.memory(end.kind).page_locked for end in path.ends)
    return locked and executor.family == "kernels" and executor.is_undisturbed
