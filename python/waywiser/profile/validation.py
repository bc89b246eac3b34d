"""Whether values that decode are possible: a column of SQLite takes anything, and so does JSON.

Files come from anyone. What reads them trusts what it is given, so what no survey can have stored
is found here, where the file and the place in it are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from itertools import chain
from math import isnan
from typing import Any

import msgspec
from msgspec.structs import replace

from waywiser.machine import Machine
from waywiser.words import (
    Health,
    LinkEvidence,
    Locality,
    Observation,
    Operation,
    Place,
    Samples,
    Transfer,
    Visit,
    WhoCopies,
    WordError,
    Workload,
    single_line,
)

MOST = 2**62
"""More than any count or number of bytes of a machine, and what 64 bits can still add."""

MOST_INDEX = 2**20
"""More GPUs, nodes, CPUs or blocks than there are anywhere."""

LEAST_SECONDS, MOST_SECONDS = 1e-15, 1e9
"""Limits of a latency, and of all times of a visit together."""


NO_NAME = "a word in it cannot be written into the name of a series"


class InvalidRecord(ValueError):
    """What is impossible, in a clause."""


def require_valid(value: object) -> None:
    """Raises `InvalidRecord` for a value that decoded and that no survey can have stored."""
    check = _CHECKS.get(type(value))
    if check is not None:
        check(value)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidRecord(what)


def _workload(value: Workload) -> None:
    operation, transfers = value.operation, value.transfers
    _require(bool(transfers) != (operation is not None), "neither transfers nor an operation")
    for transfer in transfers:
        if not 0 < transfer.bytes <= MOST:
            raise InvalidRecord(f"a transfer of {transfer.bytes} bytes")
        if why := _why_no_transfer(msgspec.json.encode(replace(transfer, bytes=0))):
            raise InvalidRecord(why)
    if operation is not None:
        text = str(operation)
        _require(single_line(text) == text and _reads_back(operation), NO_NAME)
    for place in value.places:
        _place(place)


@lru_cache(maxsize=4096)
def _why_no_transfer(json: bytes) -> str:
    """What is wrong with a transfer, whatever its size; empty if nothing is. Its text must mean it
    alone: curves and reports look it up by that."""
    transfer = msgspec.json.decode(json, type=Transfer)
    for name in ("chunk", "stride"):
        text = transfer.parameters.get(name, "0")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            return f"{name}={text}"
    workload = Workload((transfer,))
    text = str(workload)
    return "" if single_line(text) == text and _reads_back(workload) else NO_NAME


def _link_end(text: str) -> None:
    """The other end of a link is a GPU, or in words."""
    if text.partition(":")[0] == "gpu":
        try:
            place = Place.parse(text)
            _require(not place.is_several, f"a link to {text}")
            _place(place)
        except WordError as error:
            raise InvalidRecord(error.what) from error


def _reads_back(value: Workload | Operation) -> bool:
    try:
        return type(value).parse(str(value)) == value
    except WordError:
        return False


def _place(place: Place) -> None:
    _require(0 <= place.index < MOST_INDEX, f"place {place.index}")


def _machine(value: Machine) -> None:
    for what, indices in (
        ("GPU", [gpu.index for gpu in value.gpus]),
        ("NUMA node", [node.index for node in value.numa]),
        ("package", [package.index for package in value.packages]),
    ):
        _indices(what, indices)
        _require(len(set(indices)) == len(indices), f"one {what} twice")
    for node in value.numa:
        _indices("CPU", node.cpus)
        _counts("bytes of a node", (node.memory_bytes,))
        _indices("NUMA node", [access.by for access in node.stated])
        for access in node.stated:
            _counts("of a node's memory", (access.bytes_per_second, access.seconds))
    for package in value.packages:
        _counts("cores", (package.cores, package.cpus))
    for cache in value.caches:
        _counts("bytes of a cache", (cache.bytes,))
    for gpu in value.gpus:
        link = gpu.pcie
        _counts("lanes of a link", (link.generation_now, link.width_now, link.generation_max,
                                    link.width_max, link.gb_per_s_now))  # fmt: skip
        for lane in gpu.nvlinks:
            _link_end(lane.to)
            _counts("lanes of a link", (lane.lanes, lane.gb_per_s_per_lane, lane.gb_per_s_together))
        _counts("of a GPU", (gpu.memory_bytes, gpu.memory_free_bytes, gpu.memory_bus_bits,
                             gpu.clock_memory_mhz, gpu.clock_memory_max_mhz))  # fmt: skip

    for seen in value.traits.who_copies:
        _who_copies(seen)


def _who_copies(value: WhoCopies) -> None:
    _indices("GPU", (value.gpu,))
    _require(are_moments([value.started]), f"{value.started[:40]!r} is no moment")
    _counts("of an observation", (value.seconds,))
    for copy in value.copies:
        _workload(Workload((copy.transfer,)))
    for seen in (value.kernel, value.fill, *(copy.seen for copy in value.copies)):
        _observation(seen)


def _observation(value: Observation) -> None:
    _counts("of an observation", (value.alone_seconds, value.held_seconds, value.after_seconds))


def _locality(value: Locality) -> None:
    _require(are_moments([value.started]), f"{value.started[:40]!r} is no moment")
    _indices("GPU", value.gpus)
    _times(value.sweeps)
    rounds = {len(block.copies) for block in value.blocks}
    _require(len(rounds) <= 1, "blocks of unequal rounds")
    for block in value.blocks:
        for copies in block.copies:
            _require(len(copies) == len(value.gpus), "a round that is not of all GPUs")
            _positive(copies)
        for reads in block.reads:
            _require(len(reads) == len(value.cpus), "a sweep that is not of all CPUs")
            _positive(reads)


def _samples(value: Samples) -> None:
    """Checks many samples: each column at once."""
    _times(value.span)
    _times(chain.from_iterable(value.transfers))
    _times(chain.from_iterable(chain.from_iterable(value.lanes)))
    _times(chain.from_iterable(value.alone))
    for taken_or_not in (value.host, value.skew):
        _times(time for time in taken_or_not if not isnan(time))
    _require(min(value.repetitions, default=1) >= 1, "a sample of no repetition")
    _require(max(value.repetitions, default=1) <= MOST, "more repetitions than there is time for")
    _require(min(value.flags, default=0) >= 0, "flags below zero")


def _visit(value: Visit) -> None:
    _indices("block", (value.block,))
    _counts("of a visit", (value.setup_seconds, value.sampling_seconds, value.elapsed_seconds,
                           value.buffer_bytes, value.held_bytes))  # fmt: skip
    for buffer in value.buffers:
        _times(buffer.gpu_seconds)
        _require(0 <= buffer.fraction_on_place <= 1, "a share of pages")
    for state in value.gpu_states:
        _indices("GPU", (state.index,))
        _counts("lanes of a link", (state.pcie_generation, state.pcie_width))
    if value.evidence is not None:
        _evidence(value.evidence)


def _evidence(value: LinkEvidence) -> None:
    _counts("of evidence", (value.executions, value.seconds, value.idle_seconds))
    for gpu in value.gpus:
        _indices("GPU", (gpu.index,))


def _health(value: Health) -> None:
    for gpu in value.gpus:
        _indices("GPU", (gpu.index,))
        _counts("errors", gpu.counters.values())


def _indices(what: str, indices: Iterable[int]) -> None:
    for index in indices:
        if not 0 <= index < MOST_INDEX:  # of many, and the text is dear
            raise InvalidRecord(f"{what} {index}")


def are_moments(texts: Iterable[str]) -> bool:
    """Whether all texts are moments of ISO 8601."""
    try:
        return all(map(datetime.fromisoformat, texts))
    except ValueError:
        return False


def _counts(what: str, values: Iterable[float]) -> None:
    for value in values:
        if not 0 <= value <= MOST:
            raise InvalidRecord(f"{shown(value)} {what}")


def shown(value: float) -> str:
    """A number of a message: an integer may have more digits than a float takes."""
    if isinstance(value, int):
        return str(value) if abs(value) <= 2**64 else "a number of more than 64 bits"
    return f"{value:g}"


def _times(values: Iterable[float]) -> None:
    """Their sum also shows what is no number."""
    total = sum(map(abs, values))
    if not total <= MOST_SECONDS:
        raise InvalidRecord(f"times of {total:g} s")


def _positive(values: Iterable[float]) -> None:
    for value in values:
        if not LEAST_SECONDS <= value <= MOST_SECONDS:
            raise InvalidRecord(f"a time of {value:g} s")


_CHECKS: dict[type, Callable[[Any], None]] = {
    Workload: _workload,
    Machine: _machine,
    Locality: _locality,
    Visit: _visit,
    Health: _health,
    Samples: _samples,
}
