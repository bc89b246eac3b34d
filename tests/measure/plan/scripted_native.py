"""A native library that only answers about what could be done: a scripted registry for planning.

Two executors and three kinds of memory, with the unsupported paths, parameters and timing modes of
real ones. The ``scripted`` fixture selects it; ``scripted_whole`` adds what a larger catalogue has:
memory at two places that moves by itself (``rambling``, by ``call``), memory in files (``shelf``,
by ``cart``), executors of layouts (``tongs`` beside contiguous bytes, ``crate`` of layouts
alone), and executors with traits (``ferry`` stages through all GPUs, ``detour`` copies through the
host, ``once`` is measured for the survey's sake alone).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

backend = "fake"
runtime_version = "13.0"
architectures = "75-real 90-virtual"
hwloc_version = "2.9"


@dataclass
class Memory:
    kind: str
    place: str
    variant: dict[str, str]


@dataclass
class Transfer:
    source: Memory
    destination: Memory
    executor: str
    bytes: int
    parameters: dict[str, str]
    layout: str = "contiguous"
    layout_settings: dict[str, str] = field(default_factory=dict)


@dataclass
class Operation:
    name: str
    place: str
    parameters: dict[str, str]


@dataclass
class NumaNode:
    index: int
    cpus: Sequence[int]


@dataclass
class GpuPlace:
    index: int
    uuid: str
    numa: int
    peers: Sequence[int]
    pageable_access: bool


@dataclass
class FilePlace:
    name: str
    path: str
    scratch: bool
    bytes: int
    filesystem: str
    direct: bool = True


@dataclass
class Machine:
    numa: Sequence[NumaNode]
    gpus: Sequence[GpuPlace]
    files: Sequence[FilePlace] = ()
    ranks: Sequence[Any] = ()


def parameter(name: str, *choices: str, kind: str = "choice") -> dict[str, Any]:
    return {"name": name, "description": f"the {name}", "kind": kind, "choices": list(choices)}


PAGES = parameter("pages", "base", "huge")
API = parameter("api", "async", "sync")
PEER = parameter("peer", "on", "off")
THREADS = parameter("threads", "1", "2", "4", "8", "16", "32", kind="ordered")
STORES = parameter("stores", "ordinary", "streaming")


STAGED = 4 * 2**20
"""Bytes that a ferry stages at each place, at most."""

GRIP = parameter("grip", "firm", "loose")
BYTES = parameter("bytes", "4096", "65536", "1048576", kind="ordered")


def use_nccl(path: str) -> None:
    """No executor of this registry loads it."""


def operations() -> list[dict[str, Any]]:
    def entry(name: str, place: str, timing: str, *parameters: dict[str, Any]) -> dict[str, Any]:
        said = {"description": f"the {name}", "source": "a paper", "places": [place]}
        return {"name": name, "timing": timing, "parameters": list(parameters), **said}

    return [
        entry("empty-interval", "gpu", "device"),
        entry("malloc", "numa", "host", BYTES),
    ]


def operation_parameters(operation: Operation, machine: Machine) -> list[dict[str, Any]]:
    return [BYTES] if operation.name == "malloc" else []


def operation_unsupported_reason(operation: Operation, machine: Machine) -> str | None:
    return None


def _memory(
    name: str, *places: str, settings: tuple[Any, ...] = (), gpu: bool = True, reference: str = ""
) -> Any:
    traits = {
        "name": name,
        "places": list(places),
        "page_locked": gpu and list(places) == ["numa"],
        "migrates": len(places) > 1,
        "cpu_accessible": "numa" in places,
        "reference": reference,
        "same_as": "",
    }
    return {
        "traits": traits,
        "name": name,
        "description": f"{name} memory",
        "source": "somebody, somewhere",
        "places": list(places),
        "needs_gpu": gpu,
        "cpu_accessible": "numa" in places,
        "parameters": list(settings),
    }


def memories() -> list[dict[str, Any]]:
    return [
        _memory("device", "gpu", reference="gpu"),
        _memory("pageable", "numa", settings=(PAGES,), gpu=False, reference="host"),
        _memory("pinned", "numa", reference="gpu"),
    ]


def more_memories() -> list[dict[str, Any]]:
    return [_memory("rambling", "numa", "gpu"), _memory("shelf", "file", gpu=False)]


def _executor(
    name: str,
    *parameters: dict[str, Any],
    layouts: str = "contiguous",
    reference: str = "",
    **traits: Any,
) -> Any:
    return {
        "traits": {"name": name, "reference": reference},
        "name": name,
        "description": f"by {name}",
        "source": "somebody, somewhere",
        "layouts": layouts.split(),
        "parameters": list(parameters),
        "least_bytes": 0,
        "survey_only": False,
        "settings_on_request": False,
        **traits,
    }


def executors() -> list[dict[str, Any]]:
    return [
        _executor("copy-engine", API, PEER, reference="gpu", in_sets=True),
        _executor("cpu", THREADS, STORES, reference="host"),
    ]


def more_executors() -> list[dict[str, Any]]:
    return [
        _executor("call"),
        _executor("cart"),
        _executor("crate", layouts="box list"),
        _executor("detour", GRIP, settings_on_request=True),
        _executor("ferry", GRIP, least_bytes=2**20, settings_on_request=True),
        _executor("once", GRIP, survey_only=True),
        _executor("tongs", GRIP, layouts="contiguous box list"),
    ]


def unsupported_reason(transfer: Transfer, machine: Machine) -> str | None:
    ends = (transfer.source, transfer.destination)
    known = {f"gpu:{gpu.index}" for gpu in machine.gpus}
    known |= {f"numa:{node.index}" for node in machine.numa}
    known |= {f"file:{file.name}" for file in machine.files}
    for end in ends:
        if end.place not in known:
            return f"this machine has no {end.place}"
    if transfer.executor == "cpu" and any(end.kind == "device" for end in ends):
        return "the CPU cannot address device memory"
    if any(end.kind == "pinned" for end in ends) and not machine.gpus:
        return "pinned memory needs a GPU"
    if transfer.executor == "copy-engine" and not machine.gpus:
        return "the runtime's copies need a GPU"
    if transfer.parameters == {"threads": "32"}:
        return "too many threads"
    return _unsupported_by_more(transfer)


def _unsupported_by_more(transfer: Transfer) -> str | None:
    kinds = (transfer.source.kind, transfer.destination.kind)
    if transfer.executor == "call":
        if kinds != ("rambling", "rambling"):
            return "nothing else comes when it is called"
        return "it is there" if transfer.source.place == transfer.destination.place else None
    places = [end.place.partition(":")[0] for end in (transfer.source, transfer.destination)]
    if transfer.executor in ("ferry", "once") and places.count("gpu") != 1:
        return "only between the host and a GPU"
    if transfer.executor == "detour" and not _between_gpus(transfer):
        return "only between GPUs"
    if transfer.executor == "ferry" and "rambling" not in kinds:
        return None
    if (transfer.executor == "cart") != ("shelf" in kinds) or kinds == ("shelf", "shelf"):
        return "only a cart goes to the shelf, and back"
    if transfer.executor == "cart" and not {"pageable", "pinned"} & set(kinds):
        return "a cart stays on the host"
    if transfer.executor == "crate" and transfer.layout == "contiguous":
        return "a crate is for what lies apart"
    if transfer.layout == "box" and "pageable" in kinds:
        return "no box of pages"
    return None


def _between_gpus(transfer: Transfer) -> bool:
    source, destination = transfer.source, transfer.destination
    return source.kind == destination.kind == "device" and source.place != destination.place


def parameters(transfer: Transfer, machine: Machine) -> list[dict[str, Any]]:
    own = {"cpu": [THREADS, STORES], "call": [], "cart": [], "crate": []}
    own |= {name: [GRIP] for name in ("tongs", "detour", "ferry", "once")}
    if transfer.executor in own:
        return own[transfer.executor]
    return [PEER] if _between_gpus(transfer) else [API]


def timing(transfer: Transfer, machine: Machine) -> str:
    kinds = {transfer.source.kind, transfer.destination.kind}
    return "device" if {"device", "rambling"} & kinds and "pageable" not in kinds else "host"


def peer_access(transfer: Transfer, machine: Machine) -> bool | None:
    return transfer.parameters.get("peer", "on") == "on" if _between_gpus(transfer) else None


def requirements(transfer: Transfer, machine: Machine) -> dict[str, Any]:
    gpus = [
        int(end.place[4:])
        for end in (transfer.source, transfer.destination)
        if end.place.startswith("gpu")
    ]
    direct = transfer.executor != "detour" and bool(peer_access(transfer, machine))
    found = {"threads": 0, "pinned_bytes": 0, "device_bytes": {}, "peers": [], "host_links": []}
    if _between_gpus(transfer) and direct:
        return {**found, "peers": [tuple(gpus)]}
    if transfer.executor == "ferry":
        others = [gpu.index for gpu in machine.gpus if gpu.index not in gpus]
        staged = min(transfer.bytes, STAGED)
        found |= {"pinned_bytes": staged, "device_bytes": dict.fromkeys(others, staged)}
        found |= {"peers": [(gpus[0], other) for other in others]}
        gpus += others
    return {**found, "host_links": gpus if len(set(gpus)) == len(gpus) else []}


def in_place(transfer: Transfer, machine: Machine) -> bool:
    return transfer.executor == "call"


def repeatable(transfer: Transfer, machine: Machine) -> bool:
    return transfer.executor != "call"


def extents(transfer: Transfer) -> tuple[int, int]:
    """Half-full pools for lists, and boxes in arrays of twice their width and height."""
    factor = {"contiguous": 1, "list": 2, "box": 4}[transfer.layout]
    return factor * transfer.bytes, factor * transfer.bytes


def median_interval(samples: list[float]) -> tuple[float, float, float]:
    """A stand-in for the native one, with the whole range as the interval."""
    ordered = sorted(samples)
    few = len(ordered) < 6
    low, high = (math.nan, math.nan) if few else (ordered[0], ordered[-1])
    return statistics.median(ordered), low, high
