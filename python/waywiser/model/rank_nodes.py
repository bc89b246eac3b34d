"""How many processes and GPUs a node has, as the workloads of ranks show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from waywiser.curves import Point
from waywiser.words import Memory, Value, count


class RankNode(Value, frozen=True):
    """What is known of the nodes of a profile."""

    ranks: int
    """The most processes of one node that took part in one workload; 0 if none did."""
    gpus: int
    """The most GPUs of one node that took part in any; 0 if none did."""
    sender: tuple[int, int] | None
    """(GPU, rank) of the first sender of messages between GPUs; None if it is not stated."""

    @property
    def processes_of_a_gpu(self) -> int | None:
        """Equal shares of the processes of a node; None if either number is not known."""
        return self.ranks // self.gpus if self.ranks and self.gpus else None

    @property
    def text(self) -> str:
        ranks = count(self.ranks, "process") if self.ranks else "processes are not"
        gpus = count(self.gpus, "GPU") if self.gpus else "GPUs are not"
        return f"of a node {ranks} and {gpus} known"


def node_of(series: Iterable[Point]) -> RankNode:
    """The processes and GPUs of a node."""
    most_ranks = 0
    gpus: defaultdict[str, set[str]] = defaultdict(set)
    senders: set[tuple[int, int]] = set()
    for each in series:
        ranks: defaultdict[str, set[int]] = defaultdict(set)
        for transfer in each.workload.transfers:
            ends = transfer.path.ends
            for end in ends:
                node = end.variant.get("node", "")
                if end.place.kind == "rank":
                    ranks[node].add(end.place.index)
                if gpu := _gpu(end):
                    gpus[node].add(gpu)
            if all(end.place.kind == "rank" for end in ends) and _gpu(ends[0]).isdecimal():
                senders.add((ends[0].place.index, int(_gpu(ends[0]))))
        most_ranks = max([most_ranks, *(len(own) for node, own in ranks.items() if node)])
    first = min(senders, default=None)
    return RankNode(
        ranks=most_ranks,
        gpus=max((len(own) for node, own in gpus.items() if node), default=0),
        sender=(first[1], first[0]) if first is not None else None,
    )


def _gpu(memory: Memory) -> str:
    """The GPU that memory is of; empty if it is of none, or not stated."""
    if memory.place.kind == "gpu":
        return str(memory.place.index)
    return memory.variant.get("gpu", "")
