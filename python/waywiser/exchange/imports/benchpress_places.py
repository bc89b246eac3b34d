"""Where the ranks of a BenchPress file are: as the file states it, else by rules.

The launcher of IBM's systems prints the placement below the results::

    rank: 1: { host: 2; cpu: {4-7} ; gpu: {0,1} ; mem: {0-16301} } : app 0

Ranks whose memory overlaps are in one socket, and memory of all nodes says nothing: then the socket
follows the CPUs. A file whose ranks name no memory does not state the sockets. Files without these
lines name neither nodes nor sockets: then nodes follow from the rows, and two sockets in each node
are assumed, with half of the ranks and half of the GPUs each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from waywiser.exchange.imports.foreign_file import Malformed
from waywiser.words import Memory, Place, Value

SOCKETS = 2
"""Sockets of a node, as the program assumes them."""

ASSUMED = (
    f"the node and the socket are assumed: {SOCKETS} sockets in a node, with equal shares of its "
    "ranks and GPUs"
)
STATED = "the node and the socket are as the file states them for each rank"
NODE_STATED = f"the node is as the file states it; the socket is assumed: {SOCKETS} in a node"

_PLACEMENT = re.compile(r"^\s*rank:\s*(?P<rank>[0-9]{1,6}):?\s*\{(?P<rest>.*)\}", re.MULTILINE)
_FIELD = re.compile(r"(?P<key>host|cpu|gpu|mem):\s*(?P<value>[^;]*?)\s*(?:;|$)")
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")


class StatedRank(Value, frozen=True):
    """One rank as the file places it."""

    host: str
    cpus: tuple[int, ...]
    """Empty if the file does not say."""
    memory: tuple[tuple[int, int], ...]
    """Ranges of its memory, ends included; empty if the file does not say."""
    gpus: tuple[int, ...]


class RankPlace(Value, frozen=True):
    node: int
    socket: int | None
    """None if the file does not state it."""
    gpus: tuple[int, ...] = ()
    position: int | None = None
    """Which rank of its node it is by its CPUs, from 0; None if the file does not say."""


def stated_places(text: str, where: str) -> dict[int, RankPlace]:
    """Rank -> its place; empty for a file that states none. Raises `Malformed` for a rank that is
    placed twice, at different places."""
    stated: dict[int, StatedRank] = {}
    for match in _PLACEMENT.finditer(text):
        fields = {each["key"]: each["value"] for each in _FIELD.finditer(match["rest"])}
        if not fields.get("host"):
            continue
        rank = int(match["rank"])
        found = StatedRank(
            fields["host"],
            _numbers(fields.get("cpu", "")),
            _ranges(fields.get("mem", "")),
            _numbers(fields.get("gpu", "")),
        )
        if stated.setdefault(rank, found) != found:
            line = text.count("\n", 0, match.start()) + 1
            raise Malformed(f"rank {rank} is placed twice", where=f"{where}:{line}")
    hosts = sorted({each.host for each in stated.values()}, key=lambda host: (len(host), host))
    sockets, positions = _sockets(stated), _positions(stated)
    return {
        rank: RankPlace(hosts.index(each.host), sockets.get(rank), each.gpus, positions.get(rank))
        for rank, each in stated.items()
    }


def _positions(stated: Mapping[int, StatedRank]) -> dict[int, int]:
    """Rank -> which of its host it is, in the order of CPUs; empty if ranks share CPUs."""
    found: dict[int, int] = {}
    for host in {each.host for each in stated.values()}:
        own = {rank: each for rank, each in stated.items() if each.host == host}
        cpus = [cpu for each in own.values() for cpu in each.cpus]
        if all(each.cpus for each in own.values()) and len(set(cpus)) == len(cpus):
            found |= {rank: n for n, rank in enumerate(_by_cpus(own))}
    return found


def _sockets(stated: Mapping[int, StatedRank]) -> dict[int, int]:
    """Rank -> socket, for the ranks of each host whose memory or CPUs show it."""
    by_host: dict[str, dict[int, StatedRank]] = defaultdict(dict)
    for rank, each in stated.items():
        by_host[each.host][rank] = each
    found: dict[int, int] = {}
    for ranks in by_host.values():
        found |= _sockets_of_host(ranks)
    return found


def _sockets_of_host(ranks: Mapping[int, StatedRank]) -> dict[int, int]:
    """The socket follows the CPUs. Memory shows which CPUs are of one socket, if it is of one NUMA
    node: memory of several says nothing. Ranks whose memory is of several nodes have the socket of
    the ranks whose CPUs are next to theirs; if memory shows nothing, a clear gap between CPUs may.
    """
    single = {rank: each for rank, each in ranks.items() if len(each.memory) == 1}
    if len(single) == len(ranks):
        return _by_memory(single)
    if not all(each.cpus and each.memory for each in ranks.values()):
        return {}
    known = _by_memory(single)
    if single and len(set(known.values())) == _nodes(ranks):
        return {
            rank: known[rank] if rank in known else known[_next_to(each, single)]
            for rank, each in ranks.items()
        }
    return _by_gap(ranks) if _nodes(ranks) == SOCKETS else {}


def _nodes(ranks: Mapping[int, StatedRank]) -> int:
    """The number of ranges of memory that do not overlap."""
    count, last = 0, -1
    for begin, end in sorted(span for each in ranks.values() for span in each.memory):
        count += begin > last
        last = max(last, end)
    return count


def _by_memory(ranks: Mapping[int, StatedRank]) -> dict[int, int]:
    """Groups of overlapping memory, in the order of their memory."""
    found: dict[int, int] = {}
    last, socket = -1, -1
    for rank in sorted(ranks, key=lambda rank: ranks[rank].memory):
        begin, end = ranks[rank].memory[0]
        if begin > last:
            socket += 1
        last = max(last, end)
        found[rank] = socket
    return found


def _next_to(one: StatedRank, others: Mapping[int, StatedRank]) -> int:
    """The rank whose CPUs are the nearest."""
    return min(
        others,
        key=lambda rank: min(
            abs(a - b)
            for a in (one.cpus[0], one.cpus[-1])
            for b in (others[rank].cpus[0], others[rank].cpus[-1])
        ),
    )


def _by_gap(ranks: Mapping[int, StatedRank]) -> dict[int, int]:
    """Two sockets with as many ranks each, if one gap between CPUs is wider than every other and
    divides them so; nothing otherwise."""
    ordered = _by_cpus(ranks)
    gaps = [ranks[after].cpus[0] - ranks[before].cpus[-1] for before, after in pairwise(ordered)]
    middle = len(ordered) // SOCKETS
    others = [gap for n, gap in enumerate(gaps, 1) if n != middle]
    if len(ordered) < 2 * SOCKETS or len(ordered) % SOCKETS or gaps[middle - 1] <= max(others):
        return {}
    return {rank: int(n >= middle) for n, rank in enumerate(ordered)}


def _by_cpus(ranks: Mapping[int, StatedRank]) -> list[int]:
    """Ranks in the order of their CPUs."""
    return sorted(ranks, key=lambda rank: (ranks[rank].cpus, rank))


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    found = [(int(a), int(b or a)) for a, b in _RANGE.findall(text)]
    return tuple(sorted((min(pair), max(pair)) for pair in found))


def _numbers(text: str) -> tuple[int, ...]:
    """Every number of a set like ``{0-2,5}``."""
    return tuple(
        number
        for first, last in _ranges(text)
        for number in range(first, min(last, first + 1024) + 1)
    )


class NodePlaces(Value, frozen=True):
    """How ranks and GPUs lie in nodes."""

    ranks: int
    """Ranks of one node; 0 if not known."""
    gpus: int
    """GPUs of one node that the table shows."""
    stated: Mapping[int, RankPlace] = {}

    def host(self, rank: int) -> Memory:
        """Host memory of a rank."""
        return Memory("pinned", Place("rank", rank), self._of_rank(rank))

    def device_of(self, rank: int, gpu: int) -> Memory:
        """Memory of the GPU that a rank uses."""
        own = self.stated[rank].gpus if rank in self.stated else ()
        index = own[0] if len(own) == 1 else gpu
        return Memory("device", Place("rank", rank), self._of_rank(rank) | {"gpu": str(index)})

    def device(self, gpu: int) -> Memory:
        """Memory of a GPU of the first node, whichever rank copies."""
        return Memory(
            "device", Place("gpu", gpu), {"node": "0", "socket": str(self._socket_of_gpu(gpu))}
        )

    def note(self, ranks: set[int]) -> str:
        """What the places of ``ranks`` rest on."""
        if not ranks or not ranks <= self.stated.keys():
            return ASSUMED
        known = all(self.stated[rank].socket is not None for rank in ranks)
        return STATED if known else NODE_STATED

    def _of_rank(self, rank: int) -> dict[str, str]:
        node, own = divmod(rank, self.ranks) if self.ranks else (0, 0)
        socket = _half(own, self.ranks)
        if stated := self.stated.get(rank):
            node = stated.node
            if stated.position is not None:
                socket = _half(stated.position, self.ranks)
            socket = socket if stated.socket is None else stated.socket
        return {"node": str(node), "socket": str(socket)}

    def _socket_of_gpu(self, gpu: int) -> int:
        """That of the ranks which see the GPU, if they are in one socket."""
        sockets = {each.socket for each in self.stated.values()
                   if each.node == 0 and gpu in each.gpus}  # fmt: skip
        found = sockets.pop() if len(sockets) == 1 else None
        return _half(gpu, self.gpus) if found is None else found


def _half(index: int, count: int) -> int:
    return min(SOCKETS * index // count, SOCKETS - 1) if count else 0
