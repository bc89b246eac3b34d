"""What TransferBench writes as ``G0 -> D0:1 -> C1``: memories, and who moves the bytes.

A letter names a kind of memory or an executor, a number which one: a GPU as HIP counts them, or the
n-th NUMA node. From 1.66 on ``U`` is uncached memory of a GPU and ``H`` unpinned host memory, which
``U`` was before. Sub-executors are compute units of a kernel, or threads of a CPU: another
number of them is another method, and stands as a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from waywiser.exchange.imports.benchmark_ids import NoCounterpart
from waywiser.exchange.imports.nearby import NEAR
from waywiser.words import Memory, Path, Place, TimingMode, Transfer

MOST_INDEX = 1024

_MEMORY = re.compile(r"(?:R(?P<rank>\d{1,6}))?(?P<letter>[A-Z])(?P<index>\d{1,6})?")
_EXECUTOR = re.compile(
    r"\[?(?:R(?P<rank>\d{1,6}))?(?P<kind>[A-Z]{1,5}) ?(?P<index>\d{1,6})[A-Z]?"
    r"(?:\.(?P<sub>\*|\d{1,6})[A-Z]?)?(?::?\(?(?P<count>\d{1,6}|all|unknown)\)?)?\]?"
)

_LETTERS: dict[str, tuple[str, dict[str, str]]] = {
    "C": ("pinned", {}),
    "B": ("pinned", {"grain": "fine"}),
    "D": ("pinned", {"grain": "coarse"}),
    "K": ("pinned", {"cached": "no"}),
    "H": ("pageable", {}),
    "G": ("device", {}),
    "F": ("device", {"grain": "fine"}),
    "V": ("device", {"cached": "no"}),
    "X": ("device", {"grain": "unknown"}),
}
"""Kinds of memory. The last two are not the tool's: uncached memory of a GPU in any version, and
what a table does not name."""

_EXECUTORS = {"C": "cpu", "CPU": "cpu", "G": "sm", "GPU": "sm", "D": "copy-engine",
              "DMA": "copy-engine"}  # fmt: skip

_WITHOUT = {
    "NIC": "a network adapter", "I": "a network adapter", "N": "a network adapter",
    "IBV": "a network adapter", "RDMA": "a network adapter", "B": "batches of the runtime's copies",
    "BDMA": "batches of the runtime's copies", "BMA": "batches of the runtime's copies",
    "T": "the tensor data mover", "TDM": "the tensor data mover",
}  # fmt: skip
"""Executors without a counterpart."""

_SETTINGS = (
    ("GFX_UNROLL", "unroll", "4", "sm"),
    ("GFX_BLOCK_SIZE", "block", "256", "sm"),
    ("BLOCK_SIZE", "block", "256", "sm"),
    ("GFX_TEMPORAL", "temporal", "0", "sm"),
    ("GFX_WORD_SIZE", "word", "4", "sm"),
    ("GFX_SINGLE_TEAM", "team", "1", "sm"),
    ("GFX_WAVE_ORDER", "waves", "0", "sm"),
    ("GFX_SE_TYPE", "units", "0", "sm"),
    ("GFX_KERNEL", "kernel", "0", "sm"),
    ("GPU_KERNEL", "kernel", "0", "sm"),
    ("BYTE_OFFSET", "offset", "0", ""),
)
"""A setting that changes how bytes move, the parameter that it is here, its usual value, which is
not written, and the executor that it is of (empty: all)."""


class ToolRun(NamedTuple):
    """One run of the tool: its version, and the settings that it printed."""

    version: str = ""
    settings: Mapping[str, str] = MappingProxyType({})
    described: Mapping[str, str] = MappingProxyType({})
    """What it says of each setting."""

    @property
    def release(self) -> tuple[int, int]:
        """(1, 66); (0, 0) if it does not say."""
        found = re.match(r"(\d{1,4})\.(\d{1,4})", self.version)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def is_set(self, name: str) -> bool:
        return self.settings.get(name, "0") not in ("", "0")


class Route(NamedTuple):
    """A path with the parameters of its executor, and who timed it."""

    path: Path
    parameters: dict[str, str]
    mode: TimingMode

    def transfer(self, size: int) -> Transfer:
        return Transfer(self.path, size, self.parameters)


def parse_route(text: str, run: ToolRun, several: bool = False) -> Route:
    """``text`` is ``G0 -> G0:4 -> G1``; ``several``: the kernel of a GPU makes more than this one.

    Raises `NoCounterpart` for what Waywiser has no word for, and `ValueError` if it is no route.
    """
    parts = [part.strip(" ,") for part in text.split("->")]
    found = _EXECUTOR.fullmatch(parts[1]) if len(parts) == 3 else None
    if found is None:
        raise ValueError(text)
    if run.is_set("USE_MEMSET"):
        raise NoCounterpart("it fills memory (USE_MEMSET): Waywiser moves bytes")
    if (subs := run.settings.get("NUM_SUBITERATIONS", "1")) != "1":
        raise NoCounterpart(
            f"an iteration is {subs} copies (NUM_SUBITERATIONS), and versions differ in whether "
            "its time is of all or of one"
        )
    source, destination = (_memory(parts[n], run, "sources", "destinations") for n in (0, 2))
    if set(re.findall(r"R(\d+)(?=[A-Z])", text)) - {"0"}:
        raise NoCounterpart("it is of another machine than rank 0's")
    executor = _executor(found["kind"], run)
    index = int(found["index"])
    parameters = _parameters(executor, index, source, destination)
    by_kernel = _EXECUTORS.get(found["kind"]) == "sm"
    count = "" if by_kernel and executor != "sm" else found["count"] or ""
    parameters |= _counts(executor, count, found["sub"] or "*")
    parameters |= _settings(executor, run)
    if executor == "sm" and several and run.settings.get("USE_SINGLE_STREAM") == "0":
        parameters["streams"] = "own"
    timed = executor != "cpu" and run.settings.get("USE_HIP_EVENTS", "1") != "0"
    mode: TimingMode = "device" if timed else "host"
    return Route(Path(source, destination, executor), parameters, mode)


def _memory(text: str, run: ToolRun, *roles: str) -> Memory:
    tokens = list(_MEMORY.finditer(text))
    if not tokens or "".join(token[0] for token in tokens) != text:
        raise ValueError(text)
    if len(tokens) > 1:
        raise NoCounterpart("it adds several sources, or writes to several destinations")
    letter, index = tokens[0]["letter"], int(tokens[0]["index"] or 0)
    if letter == "N":
        raise NoCounterpart("it only reads or only writes (null memory): no bytes move between two")
    if letter == "M":
        raise NoCounterpart("where the pages of managed memory (M) are is not known")
    if index >= MOST_INDEX:
        raise NoCounterpart(f"there is no machine with {index + 1:,} GPUs or NUMA nodes")
    if letter == "P":
        return Memory("pinned", Place("numa", 0), {NEAR: f"gpu:{index}"})
    if letter == "U":
        kind, variant = _of_u(run)
    elif letter in _LETTERS:
        kind, variant = _LETTERS[letter]
    else:
        raise NoCounterpart(f"the memory {letter} is not known")
    return Memory(kind, Place("gpu" if kind == "device" else "numa", index), variant)


def _of_u(run: ToolRun) -> tuple[str, dict[str, str]]:
    if run.release == (0, 0):
        raise NoCounterpart(
            "U is unpinned host memory before version 1.66 and uncached memory of a GPU since, and "
            "the file does not name its version"
        )
    return ("device", {"cached": "no"}) if run.release >= (1, 66) else ("pageable", {})


def _executor(kind: str, run: ToolRun) -> str:
    if kind in _WITHOUT:
        raise NoCounterpart(f"{_WITHOUT[kind]} moves it, which has no counterpart here")
    if kind not in _EXECUTORS:
        raise NoCounterpart(f"the executor {kind} is not known")
    executor = _EXECUTORS[kind]
    by_runtime = executor == "sm" and run.is_set("USE_HIP_CALL")  # as before version 1.11
    return "copy-engine" if by_runtime else executor


def _parameters(executor: str, index: int, source: Memory, to: Memory) -> dict[str, str]:
    """Which of two ends the executor is at, where there is a choice."""
    own = Place("numa" if executor == "cpu" else "gpu", index)
    ends = [memory.place for memory in (source, to) if NEAR not in memory.variant]
    if own not in ends:
        who = f"the CPUs of numa:{index}" if executor == "cpu" else f"gpu:{index}"
        raise NoCounterpart(f"{who}, at neither end, moves it: that has no counterpart here")
    if source.place == to.place or source.place.kind != to.place.kind:
        return {}
    at_source = own == source.place
    if executor == "copy-engine":
        return {"api": "async"} | ({} if at_source else {"by": "destination"})
    return {"side": "push"} if at_source else {}


def _counts(executor: str, count: str, sub: str) -> dict[str, str]:
    """Sub-executors, and which engine or chiplet if one is named."""
    found: dict[str, str] = {}
    count = count.lstrip("0") or count
    if executor == "sm":
        found["cus"] = count or "unknown"
    elif count not in ("", "1"):
        found["threads" if executor == "cpu" else "parts"] = count
    if sub != "*":
        found["chiplet" if executor == "sm" else "engine"] = sub
    return found


def _settings(executor: str, run: ToolRun) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, parameter, usual, only in _SETTINGS:
        value = run.settings.get(name, usual)
        if value != usual and only in ("", executor) and re.fullmatch(r"[\w.+-]{1,40}", value):
            found[parameter] = value
    if executor == "sm" and run.is_set("CU_MASK"):
        mask = re.sub(r"\(.*?\)|[^0-9,-]", "", run.described.get("CU_MASK", ""))
        found["mask"] = mask.replace(",", "+")[:100] or "yes"
    if executor == "copy-engine" and run.is_set("USE_HSA_DMA"):
        found["api"] = "hsa"
    return found
