"""Messages between ranks, and copies between ranks and GPUs, as models of messages read them.

A locality is where the two ends of a message are: on one socket, on one node, or on two nodes. The
variants of the memories at ``rank:N`` say it (`waywiser.exchange.imports.benchpress`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Literal

from waywiser.model import job_scatter
from waywiser.model.curve import CurveTimes
from waywiser.profile.series_summary import SeriesSummary
from waywiser.stats.order import median
from waywiser.stats.scatter import CurveBlocks
from waywiser.words import Memory, Transfer, Value

Locality = Literal["on-socket", "on-node", "off-node"]
MOST_JOBS = 1000
"""Jobs of one pair that a curve takes."""
LOCALITIES: tuple[Locality, ...] = ("on-socket", "on-node", "off-node")


class MessageKind(Value, frozen=True):
    """What messages may have in common."""

    source: str
    """The kind of memory: ``pinned``, ``device``."""
    destination: str
    locality: Locality
    test: str
    """What was measured, by the name that the executor's setting ``test`` has; empty for a copy."""

    @property
    def kind(self) -> tuple[str, str, Locality, str]:
        return self.source, self.destination, self.locality, self.test


class MessageTimes(MessageKind, frozen=True):
    """The measured times of one workload of equal messages, with one for each job."""

    count: int
    """Messages that start together."""
    bytes: int
    """Bytes of each message."""
    ranks: tuple[int, int]
    """The places of the first message."""
    seconds: tuple[float, ...]
    """Until the last message arrived; one for each job."""

    @property
    def least(self) -> float:
        return min(self.seconds)


def locality_of(transfer: Transfer) -> Locality | None:
    """Returns None if the ends do not say where they are."""
    here, there = (_where(end) for end in transfer.path.ends)
    if not all((*here, *there)):
        return None
    if here[0] != there[0]:
        return "off-node"
    return "on-socket" if here[1] == there[1] else "on-node"


def _where(memory: Memory) -> tuple[str, str]:
    return memory.variant.get("node", ""), memory.variant.get("socket", "")


def messages_of(series: Iterable[SeriesSummary]) -> list[MessageTimes]:
    """The messages and copies of a profile whose ends are at ranks."""
    return [found for each in series if (found := _message(each)) is not None]


def _message(series: SeriesSummary) -> MessageTimes | None:
    """Returns None if the series is not of equal messages of ranks."""
    transfers = series.workload.transfers
    if not transfers or not any(place.kind == "rank" for place in series.workload.places):
        return None
    first = transfers[0]
    locality = locality_of(first)
    if locality is None or any(each.bytes != first.bytes for each in transfers):
        return None
    if not series.blocks:
        return None
    source, destination = first.path.ends
    return MessageTimes(
        source=source.kind,
        destination=destination.kind,
        locality=locality,
        test=first.parameters.get("test", ""),
        count=len(transfers),
        bytes=first.bytes,
        ranks=(source.place.index, destination.place.index),
        seconds=tuple(block.median for block in series.blocks),
    )


SHOWN_SIZES = 3
"""The largest sizes together, and the smallest, show whether pairs differ."""
LEAST_RATIO = 1.15
"""Pairs of one locality differ by at least this factor, to be two classes."""
APART = 2.0
"""The gap between two classes is at least so many times as wide as either is in itself."""


class MessageClass(MessageKind, frozen=True):
    """Pairs of ranks, or a rank and a GPU, that take the same time."""

    pairs: tuple[tuple[int, int], ...]
    of: int
    """Classes of this locality: more than one where its pairs differ."""

    @property
    def name(self) -> str:
        places = ", ".join(f"{a}-{b}" for a, b in self.pairs) if self.of > 1 else self.locality
        within = f" ({self.locality})" if self.of > 1 else ""
        return f"{self.source} -> {self.destination} {places}{within}"


def classes_of(messages: Iterable[MessageTimes]) -> list[MessageClass]:
    """The single messages and copies by locality; one whose pairs take different times is divided
    where the times have a gap, so that no model is fitted to two kinds of path at once."""
    groups: dict[tuple[str, str, Locality, str], dict[tuple[int, int], dict[int, float]]] = {}
    for each in messages:
        if each.count == 1 and each.test in ("", "ping-pong"):
            pairs = groups.setdefault(each.kind, {})
            pairs.setdefault(each.ranks, {})[each.bytes] = median(each.seconds)
    found = []
    for key, pairs in sorted(groups.items()):
        parts = _divided(pairs)
        found += [MessageClass(*key, tuple(sorted(part)), len(parts)) for part in parts]
    return found


def _divided(
    pairs: Mapping[tuple[int, int], Mapping[int, float]],
) -> list[list[tuple[int, int]]]:
    sizes = sorted(set.intersection(*(set(times) for times in pairs.values())))
    for chosen in (sizes[-SHOWN_SIZES:], sizes[:SHOWN_SIZES]):
        if not chosen:
            break
        level = {
            pair: median([math.log(times[size]) for size in chosen])
            for pair, times in pairs.items()
        }
        ordered = sorted(level, key=lambda pair: level[pair])
        gaps = [level[b] - level[a] for a, b in pairwise(ordered)]
        if not gaps:
            break
        at = max(range(len(gaps)), key=lambda n: gaps[n])
        low, high = ordered[: at + 1], ordered[at + 1 :]
        width = max(level[part[-1]] - level[part[0]] for part in (low, high))
        if gaps[at] >= max(math.log(LEAST_RATIO), APART * width):
            return [
                part
                for half in (low, high)
                for part in _divided({pair: pairs[pair] for pair in half})
            ]
    return [list(pairs)]


def curve_of(
    found: MessageClass, messages: Iterable[MessageTimes], *, least: bool = False
) -> CurveTimes:
    """The curve of a class: its pairs and jobs are its blocks. With ``least`` each size has the
    minimum of them all, as the published rule takes it."""
    times: dict[int, dict[int, float]] = {}
    for each in messages:
        if each.kind == found.kind and each.count == 1 and each.ranks in found.pairs:
            first = found.pairs.index(each.ranks) * MOST_JOBS
            blocks = times.setdefault(each.bytes, {})
            blocks |= {first + n: seconds for n, seconds in enumerate(each.seconds[:MOST_JOBS])}
    sizes = sorted(times)
    scatter = job_scatter.of_sizes([times[n] for n in sizes], lambda block: block % MOST_JOBS)
    lowest = tuple(min(times[n].values()) for n in sizes)
    if least:
        scatter = ()
        times = {size: {0: min(blocks.values())} for size, blocks in times.items()}
    blocks_of = CurveBlocks(sizes, [times[size] for size in sizes], [0.0] * len(sizes))
    return CurveTimes(found.name, "link", blocks_of, scatter, lowest)
