"""Where the ranks of a BenchPress file are: as the file states it, else by rules.

The launcher of IBM's systems prints the placement below the results::

    rank: 1: { host: 2; cpu: {4-7} ; gpu: {0,1} ; mem: {0-16301} } : app 0

Ranks whose memory overlaps are in one socket; a file whose ranks name no memory does not state the
sockets. Files without these lines name neither nodes nor sockets: then nodes follow from the rows,
and two sockets in each node are assumed, with half of the ranks and half of the GPUs each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from waywiser.exchange.imports.errors import Malformed
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
    memory: tuple[tuple[int, int], ...]
    """Ranges of its memory, ends included; empty if the file does not say."""
    gpus: tuple[int, ...]


class RankPlace(Value, frozen=True):
    node: int
    socket: int | None
    """None if the file does not state it."""
    gpus: tuple[int, ...] = ()


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
            fields["host"], _ranges(fields.get("mem", "")), _numbers(fields.get("gpu", ""))
        )
        if stated.setdefault(rank, found) != found:
            line = text.count("\n", 0, match.start()) + 1
            raise Malformed(f"rank {rank} is placed twice", where=f"{where}:{line}")
    hosts = sorted({each.host for each in stated.values()}, key=lambda host: (len(host), host))
    sockets = _sockets(stated)
    return {
        rank: RankPlace(hosts.index(each.host), sockets.get(rank), each.gpus)
        for rank, each in stated.items()
    }


def _sockets(stated: Mapping[int, StatedRank]) -> dict[int, int]:
    """Rank -> socket: groups of overlapping memory within a host, in the order of their memory."""
    by_host: dict[str, list[int]] = defaultdict(list)
    for rank, each in stated.items():
        by_host[each.host].append(rank)
    found: dict[int, int] = {}
    for ranks in by_host.values():
        if not all(stated[rank].memory for rank in ranks):
            continue
        last, socket = -1, -1
        for rank in sorted(ranks, key=lambda rank: stated[rank].memory):
            begin, end = stated[rank].memory[0][0], stated[rank].memory[-1][1]
            if begin > last:
                socket += 1
            last = max(last, end)
            found[rank] = socket
    return found


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
