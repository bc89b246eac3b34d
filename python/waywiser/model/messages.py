"""Messages between ranks, and copies between ranks and GPUs, as models of messages read them.

A locality is where the two ends of a message are: on one socket, on one node, or on two nodes. In
results of other tools the variants of the memories at ``rank:N`` say it
(`waywiser.exchange.imports.benchpress`); in a survey the machine has the NUMA node of each rank.

A test of another tool names itself (``test=ping-pong``). In a survey a method is an executor with
its settings, and messages of each method have models of their own. Several of them are those of one
sender (the setting ``window``), one of it to each of several peers, or one of each of several pairs
of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec.structs import replace

from waywiser.curves import Point
from waywiser.machine import PlacedRank
from waywiser.machine.ranks import TEST, WINDOW, nodes_of
from waywiser.model import job_scatter
from waywiser.model.curve import CurveTimes
from waywiser.stats import CurveBlocks, median
from waywiser.words import Memory, Transfer, Value, Workload, format_settings, with_units

Locality = Literal["on-socket", "on-node", "off-node"]
LOCALITIES: tuple[Locality, ...] = ("on-socket", "on-node", "off-node")
ONE_SENDER = "messages"
"""The test in which one process sends all messages: these follow one another and reach no limit of
the node."""
ACTIVE_PAIRS, SHARES, PEERS = "pairs", "processes", "peers"
"""The tests of a survey in which each of several pairs of ranks sends one message; in which these
are the processes of two GPUs, as if one message were divided among them; and in which one rank
sends one message to each of several others."""
OF_SEVERAL = (ACTIVE_PAIRS, SHARES, PEERS)
OF_ONE = ("", "ping-pong")
"""Tests of one message, or copy, alone."""
AMONG = "among "
"""How the test of an exchange begins, with the number of its ranks after it."""


class OfMethod(Value, frozen=True, kw_only=True):
    """What one method of a survey was measured of."""

    method: str = ""
    """The executor with its settings; empty for a test of another tool, which names itself."""


class MessageKind(OfMethod, frozen=True):
    """What messages may have in common."""

    source: str
    """The kind of memory: ``pinned``, ``device``."""
    destination: str
    locality: Locality
    test: str
    """What was measured, by the name that the executor's setting ``test`` has; empty for a copy."""

    @property
    def kind(self) -> tuple[str, str, Locality, str, str]:
        return self.source, self.destination, self.locality, self.test, self.method


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

    @property
    def is_single(self) -> bool:
        """Whether it is one message, copy or exchange, which a curve is fitted to."""
        return self.count == 1 and (self.test in OF_ONE or self.test.startswith(AMONG))


def locality_of(transfer: Transfer, ranks: Sequence[PlacedRank] = ()) -> Locality | None:
    """Returns the locality of the ends, or None if it is not known. ``ranks`` are the machine's."""
    nodes = nodes_of(transfer.path)
    here, there = (end.variant.get("socket", "") for end in transfer.path.ends)
    if not nodes or not here or not there:
        return _locality_of_ranks(transfer, ranks)
    if nodes == "two nodes":
        return "off-node"
    return "on-socket" if here == there else "on-node"


def _locality_of_ranks(transfer: Transfer, ranks: Sequence[PlacedRank]) -> Locality | None:
    """All ranks of a survey are on one node, and a NUMA node counts as a socket."""
    known = {rank.index: rank.numa for rank in ranks}
    places = [single for place in transfer.path.places for single in place.each]
    if not places or any(each.kind != "rank" or each.index not in known for each in places):
        return None
    return "on-socket" if len({known[each.index] for each in places}) == 1 else "on-node"


def messages_of(series: Iterable[Point], ranks: Sequence[PlacedRank] = ()) -> list[MessageTimes]:
    """The messages and copies of a profile whose ends are at ranks; ``ranks`` are those of its
    machine."""
    found = []
    for each in series:
        known = message_of(each.workload, ranks)
        if known is not None and each.blocks:
            messages = known.count if len(each.workload.transfers) == 1 else 1
            seconds = tuple(block.median * messages for block in each.blocks)
            found.append(replace(known, seconds=seconds))
    return found


def message_of(workload: Workload, ranks: Sequence[PlacedRank] = ()) -> MessageTimes | None:
    """What a workload of equal messages of ranks is, without times; None if it is none."""
    transfers = workload.transfers
    if not transfers or not workload.is_of_ranks:
        return None
    first = transfers[0]
    locality = locality_of(first, ranks)
    if locality is None or any(each.bytes != first.bytes for each in transfers):
        return None
    ends = first.path.ends
    is_placed = not any(end.variant.get("node") for end in ends)
    if is_placed and any(_method(each) != _method(first) for each in transfers):
        return None
    if is_placed and len({each.path.source.place for each in transfers}) not in (1, len(transfers)):
        return None
    if first.path.is_among_several and not is_placed:
        return None
    return MessageTimes(
        source=ends[0].kind,
        destination=ends[1].kind,
        locality=locality,
        test=_survey_test(workload, ranks) if is_placed else first.parameters.get(TEST, ""),
        method=_method(first) if is_placed else "",
        count=_window(first) if is_placed and len(transfers) == 1 else len(transfers),
        bytes=first.bytes,
        ranks=_ranks_of(*ends),
        seconds=(),
    )


def _method(transfer: Transfer) -> str:
    """The executor with its settings, without the number of messages."""
    known = transfer.parameters
    settings = {k: v for k, v in known.items() if k != WINDOW or TEST in known}
    return transfer.path.executor + format_settings(settings)


def _window(transfer: Transfer) -> int:
    """The messages of one sender. A stream of messages in one direction has as many as it has: its
    time is that of one."""
    text = transfer.parameters.get(WINDOW, "1")
    return int(text) if text.isdecimal() and TEST not in transfer.parameters else 1


def _survey_test(workload: Workload, ranks: Sequence[PlacedRank]) -> str:
    """The name that a test of a survey has here; empty for one message."""
    first, *others = workload.transfers
    if first.path.is_among_several:
        return f"{AMONG}{len(first.path.source.place.each)} ranks"
    if others:
        return _test_of_several(workload, ranks)
    return ONE_SENDER if _window(first) > 1 else ""


def ranks_among(test: str) -> int:
    """The number of ranks in the test of an exchange."""
    return int(test.removeprefix(AMONG).split()[0])


def _test_of_several(workload: Workload, ranks: Sequence[PlacedRank]) -> str:
    gpus = {rank.index: rank.gpu for rank in ranks}
    ends = [each.path.places for each in workload.transfers]
    if len({source for source, _ in ends}) == 1:
        return PEERS
    between = {(gpus.get(a.index, -1), gpus.get(b.index, -1)) for a, b in ends}
    one, other = min(between)
    is_shared = len(between) == 1 and one != other and min(one, other) >= 0
    return SHARES if is_shared else ACTIVE_PAIRS


def _ranks_of(source: Memory, destination: Memory) -> tuple[int, int]:
    if source.place.is_several:
        numbers = [each.index for each in source.place.each]
        return numbers[0], numbers[-1]
    return source.place.index, destination.place.index


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
        method = f"by {with_units(self.method)} " if self.method else ""
        among = f"{self.test} " if self.test not in OF_ONE else ""
        return f"{self.source} -> {self.destination} {method}{among}{places}{within}"


def classes_of(messages: Iterable[MessageTimes]) -> list[MessageClass]:
    """The single messages and copies by locality; one whose pairs take different times is divided
    where the times have a gap, so that no model is fitted to two kinds of path at once."""
    groups: dict[tuple[str, str, Locality, str, str], dict[tuple[int, int], dict[int, float]]] = {}
    for each in messages:
        if each.is_single:
            pairs = groups.setdefault(each.kind, {})
            pairs.setdefault(each.ranks, {})[each.bytes] = median(each.seconds)
    found = []
    for key, pairs in sorted(groups.items()):
        parts = _divided(pairs)
        source, destination, locality, test, method = key
        found += [
            MessageClass(source, destination, locality, test, tuple(sorted(part)), len(parts),
                         method=method)
            for part in parts
        ]  # fmt: skip
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
            pair = found.pairs.index(each.ranks)
            seconds = enumerate(each.seconds[: job_scatter.MOST_JOBS])
            blocks = times.setdefault(each.bytes, {})
            blocks |= {job_scatter.block_of(pair, n): one for n, one in seconds}
    sizes = sorted(times)
    scatter = job_scatter.of_sizes([times[n] for n in sizes], job_scatter.job_of)
    jobs = len({job_scatter.job_of(block) for blocks in times.values() for block in blocks})
    lowest = () if found.method else tuple(min(times[n].values()) for n in sizes)
    if least:
        scatter = ()
        times = {size: {0: min(blocks.values())} for size, blocks in times.items()}
    blocks_of = CurveBlocks(sizes, [times[size] for size in sizes], [0.0] * len(sizes))
    return CurveTimes(found.name, "link", blocks_of, scatter, lowest, jobs)
