"""The text of gpu_copy, of Microsoft's SuperBench: a line for each path, as
``cpu_to_gpu0_by_dma_under_numa0 26.2``, in GB/s of 10^9.

A rate is the bytes of all copies over the time of the slowest. ``and`` (in older versions ``_bi``
at the end) is both directions at once, and its rate is their total. ``dma`` is the runtime's copy
(``cudaMemcpyAsync``), ``sm`` a kernel with as many blocks as the size needs, on the source's GPU
(``write``) or the destination's (``read``). Host memory is page-locked, on the node behind
``under``, where the calls are made too. The size is an option that the text does not repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, Malformed, clipped
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.words import MOST_BYTES, Memory, Path, Place, Transfer, Unsupported, Workload

_END = r"(?:cpu|gpu(?:[0-9]{1,4}|_all))"
TITLE = re.compile(rf"^[ \t]{{0,20}}{_END}_(?:to|and)_{_END}_\w{{0,20}}by_\w", re.MULTILINE)
"""What shows a text to be gpu_copy's."""

_LINE = re.compile(rf"^\s*(?P<tag>{_END}_(?:to|and)_{_END}\w*)\s*[:,]?\s*(?P<rate>\S*)\s*$")
_BEGUN = re.compile(r"^\s*[cg]pu[a-z0-9]{0,5}_\w*")
"""A line that begins as a path, damaged or not."""
_TAG = re.compile(
    rf"(?P<source>{_END})_(?P<way>to|and)_(?P<to>{_END})(?:_(?P<how>read|write))?"
    r"_by_(?:gpu[0-9]{1,4}_using_)?(?P<by>sm|dma)(?:_under_numa(?P<node>[0-9]{1,4}))?"
    r"(?:_(?P<old>uni|bi))?"
)
_RATE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:e[+-]?[0-9]{1,2})?")
_SIZE = re.compile(r"\bgpu_copy\b.*?--size[ =]([0-9]{1,15})\b")

BYTES = 64 * 2**20
"""The default size of its buffers in SuperBench."""

MOST_GPUS = 64
"""GPUs of all-to-all copies that are written as transfers between all of them."""

CUT_OFF = "…"
"""The figure of a last line that may be cut off."""

ASSUMED = "the size of its buffers is not in the text: 64 MiB, SuperBench's default, is assumed"
TOTAL = "the text has only the rate of all its transfers together"


class Tag(NamedTuple):
    """What the name of a line says."""

    name: str
    source: str
    to: str
    both: bool
    how: str
    """``read`` or ``write`` between two GPUs; empty for other copies."""
    kernel: bool
    node: int | None


def read(text: str, where: str) -> ForeignFile:
    """Raises `Malformed` for a text without one path; a damaged line is listed."""
    lines = text.splitlines()
    whole = text.endswith("\n")
    size = BYTES
    notes: tuple[str, ...] = (ASSUMED,)
    named = [int(n) for line in lines for n in re.findall(r"\bgpu([0-9]{1,4})_", line[:300])]
    measured: list[ForeignSeries] = []
    unsupported: dict[str, Unsupported] = {}
    for line in lines:
        if command := _SIZE.search(line[:2000]):
            size, notes = int(command[1]), ()
        elif row := _LINE.match(line[:300]):
            rate = row["rate"] if line is not lines[-1] or whole else CUT_OFF
            found = _of_row(row["tag"], rate, size, max(named, default=0) + 1, notes)
            if isinstance(found, ForeignSeries):
                measured.append(found)
            else:
                unsupported.setdefault(found.path, found)
        elif _BEGUN.match(line):
            path = clipped(line, 100)
            unsupported.setdefault(path, Unsupported(path, "its line cannot be read"))
    if not measured and not unsupported:
        raise Malformed("no line such as cpu_to_gpu0_by_dma_under_numa0 26.2", where=where)
    return ForeignFile(
        format="gpu-copy",
        tool="SuperBench gpu_copy",
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported.values()),
    )


def _of_row(
    text: str, rate: str, size: int, gpus: int, notes: tuple[str, ...]
) -> ForeignSeries | Unsupported:
    tag = _tag(text)
    if tag is None:
        return Unsupported(clipped(text, 100), "its name is damaged, or of an unknown copy")
    if rate == CUT_OFF:
        return Unsupported(tag.name, "the text ends in it without a line break: it may be cut off")
    if not _RATE.fullmatch(rate):
        return Unsupported(tag.name, f"its figure is {clipped(rate, 40) or 'missing'}")
    if not float(rate):
        return Unsupported(tag.name, "its figure is 0")
    try:
        transfers = tuple(_transfers(tag, size, gpus))
    except ValueError as reason:
        return Unsupported(tag.name, str(reason))
    if "gpu_all" in (tag.source, tag.to):
        part = (gpus - 1) * transfers[0].bytes  # of one GPU: the slowest has this rate
        notes = (*notes, f"{gpus} GPUs are assumed, as the text names no other")
    else:
        part = sum(transfer.bytes for transfer in transfers)
    seconds = part / (float(rate) * 1e9)
    if not is_time(seconds) or not 0 < size <= MOST_BYTES:
        return Unsupported(
            tag.name, f"its figure is {clipped(rate, 40)}: no rate of {size:,} bytes"
        )
    one = len(transfers) == 1
    return ForeignSeries(
        name=tag.name,
        family=f"copies by {'sm' if tag.kernel else 'dma'}",
        workload=Workload(transfers),
        mode="device",
        samples=summary(seconds, (seconds,) if one else ()),
        notes=notes if one else (*notes, TOTAL),
    )


def _tag(text: str) -> Tag | None:
    found = _TAG.fullmatch(text)
    if found is None:
        return None
    both = found["way"] == "and" or found["old"] == "bi"
    node = int(found["node"]) if found["node"] else None
    return Tag(text, found["source"], found["to"], both, found["how"] or "",
               found["by"] == "sm", node)  # fmt: skip


def _transfers(tag: Tag, size: int, gpus: int) -> Iterator[Transfer]:
    """Raises `ValueError` with the reason for a copy without a counterpart."""
    if "gpu_all" in (tag.source, tag.to):
        yield from _all_to_all(tag, size, gpus)
        return
    one = _transfer(tag, tag.source, tag.to, size)
    if not tag.both:
        yield one
        return
    back = _transfer(tag, tag.to, tag.source, size)
    yield from sorted((one, back), key=lambda each: _rank(each.path.source.place))


def _rank(place: Place) -> tuple[bool, int]:
    """Both orders of a pair are one workload: the host comes first, then the lower number."""
    return place.kind == "gpu", place.index


def _transfer(tag: Tag, source: str, to: str, size: int) -> Transfer:
    if source == to == "cpu":
        raise ValueError("no GPU is at an end of it")
    ends = [_memory(end, tag.node) for end in (source, to)]
    peers = all(end.kind == "device" for end in ends) and source != to
    parameters = {"grid": "by-size"} if tag.kernel else {}
    if peers and not tag.how:
        raise ValueError("which of both GPUs moves it is not said: neither read nor write")
    if peers and tag.kernel and tag.how == "write":
        parameters["side"] = "push"
    if peers and not tag.kernel:
        parameters |= {"api": "async"} | ({"by": "destination"} if tag.how == "read" else {})
    if tag.node is not None and "cpu" not in (source, to):
        parameters["submit"] = str(tag.node)
    return Transfer(Path(ends[0], ends[1], "sm" if tag.kernel else "copy-engine"), size, parameters)


def _memory(end: str, node: int | None) -> Memory:
    if end == "cpu":
        if node is None:
            raise ValueError("the NUMA node of its host memory is missing")
        return Memory("pinned", Place("numa", node))
    return Memory("device", Place("gpu", int(end.removeprefix("gpu"))))


def _all_to_all(tag: Tag, size: int, gpus: int) -> Iterator[Transfer]:
    """A buffer is shared among all GPUs: each pair has its part of it."""
    if not 2 <= gpus <= MOST_GPUS:
        raise ValueError(f"how many GPUs it is between is not known: the text names {gpus}")
    if not tag.kernel or tag.how != "write" or tag.both or tag.node is not None:
        raise ValueError("a copy between all GPUs by a kernel that writes is known, and no other")
    whole = [each == "gpu_all" for each in (tag.source, tag.to)]
    grid = "-to-".join("all" if each else "one" for each in whole)
    for source, to in _pairs(tag, range(gpus)):
        ends = (Memory("device", Place("gpu", source)), Memory("device", Place("gpu", to)))
        yield Transfer(Path(*ends, "sm"), size // gpus, {"grid": grid, "side": "push"})


def _pairs(tag: Tag, gpus: Sequence[int]) -> Iterator[tuple[int, int]]:
    for source in gpus:
        for to in gpus:
            chosen = tag.source in ("gpu_all", f"gpu{source}") and tag.to in ("gpu_all", f"gpu{to}")
            if source != to and chosen:
                yield source, to
