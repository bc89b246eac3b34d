"""Workloads in the words of today, however an earlier version wrote them.

Imports wrote a collective that only moves bytes as the copies that it amounts to, started together,
and the size as that of one copy. Those of messages name the memory of a rank by a node and a GPU of
its number, and say that a message is timed there and back, which a survey does not write; those of
an exchange name the collective, and a survey the strategy. Profiles keep these words and their
identities; what compares profiles joins them by the words of today.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from waywiser.curves.exchanges import DIRECT, STRATEGY
from waywiser.machine import DECLARED
from waywiser.words import COLLECTIVE, EXCHANGE, Memory, Path, Place, Transfer, Workload
from waywiser.words.collective import ROOT

Edges = frozenset[tuple[int, int]]


def _all(count: int, root: int) -> Edges:
    return frozenset((a, b) for a in range(count) for b in range(count) if a != b)


def _from_root(count: int, root: int) -> Edges:
    return frozenset((root, n) for n in range(count) if n != root)


def _to_root(count: int, root: int) -> Edges:
    return frozenset((n, root) for n in range(count) if n != root)


FORMER: dict[str, tuple[str, Callable[[int, int], Edges], bool]] = {
    "all_gather": ("allgather", _all, True),
    "alltoall": ("alltoall", _all, True),
    "broadcast": ("broadcast", _from_root, False),
    "scatter": ("scatter", _from_root, True),
    "gather": ("gather", _to_root, True),
}
"""The former name -> today's, who copies to whom, and whether a copy is one of as many parts of the
size as there are GPUs."""


TEST, THERE_AND_BACK = "test", "latency"
"""The setting of imported messages that says how they are timed, and its value that is usual."""


def in_words_of_today(workload: Workload) -> Workload:
    """The same workload for everything that an earlier version writes differently; itself if it is
    in the words of today."""
    if workload.kind == "collective":
        (transfer,) = workload.transfers
        today = _exchange(transfer) or _named(transfer)
        return workload if today == transfer else replace(workload, transfers=(today,))
    former = workload.copies
    settings = former[0].parameters if former else {}
    if TEST in settings and names_ranks(workload):
        return replace(workload, transfers=tuple(map(_at_ranks, former)))
    if settings.get(COLLECTIVE) not in FORMER:
        return workload
    found = _collective(former)
    return workload if found is None else replace(workload, transfers=(found,))


def _named(collective: Transfer) -> Transfer:
    """Adds the setting that names the collective, also if it is the default."""
    return replace(collective, parameters=collective.parameters | collective.collective_setting)


def _exchange(collective: Transfer) -> Transfer | None:
    """The exchange of a survey that an imported one among ranks is: a call for all messages, from
    and to memory as it is. None for everything else."""
    memory = collective.path.source
    if memory.place.kind != "rank" or collective.parameters.get(COLLECTIVE) != EXCHANGE:
        return None
    settings = {key: value for key, value in collective.parameters.items() if key != COLLECTIVE}
    if DECLARED.is_of_gpu(memory):
        settings = {STRATEGY: DIRECT, **settings}
    path = replace(collective.path, executor=EXCHANGE)
    return replace(collective, path=path, parameters=settings)


def names_ranks(workload: Workload) -> bool:
    """Whether the numbers of its nodes and GPUs are those of ranks."""
    copies = workload.copies
    return bool(copies) and TEST in copies[0].parameters and all(map(is_numbered_by_rank, copies))


def is_numbered_by_rank(message: Transfer) -> bool:
    """Whether it is a message that says how it is timed, and whose ends are not at ranks."""
    if TEST not in message.parameters:
        return False
    is_message = DECLARED.executor(message.path.executor).route == "between ranks"
    at_ranks = any(place.kind == "rank" for place in message.path.places)
    return is_message and not at_ranks


def _at_ranks(message: Transfer) -> Transfer:
    source, to = (replace(x, place=Place("rank", x.place.index)) for x in message.path.ends)
    settings = dict(message.parameters)
    if settings[TEST] == THERE_AND_BACK:
        del settings[TEST]
    path = replace(message.path, source=source, destination=to)
    return replace(message, path=path, parameters=settings)


def _collective(copies: Sequence[Transfer]) -> Transfer | None:
    """The collective that the copies amount to; None if they are none, as a choice of them."""
    first = copies[0]
    memory = first.path.source
    if any(
        (each.bytes, each.parameters, each.path.executor, each.layout)
        != (first.bytes, first.parameters, first.path.executor, None)
        or any(replace(end, place=memory.place) != memory for end in each.path.ends)
        or any(place.kind != memory.place.kind for place in each.path.places)
        for each in copies
    ):
        return None
    edges = [(source.index, to.index) for source, to in (each.path.places for each in copies)]
    count = len({index for edge in edges for index in edge})
    name, pairs, is_shared = FORMER[first.parameters[COLLECTIVE]]
    root = edges[0][1 if pairs is _to_root else 0]
    if len(edges) != len(set(edges)) or set(edges) != pairs(count, root):
        return None
    settings = {**first.parameters, COLLECTIVE: name}
    if pairs is not _all and root:
        settings[ROOT] = str(root)
    together = Memory(memory.kind, Place(memory.place.kind, 0, last=count - 1), memory.variant)
    size = first.bytes * count if is_shared else first.bytes
    return Transfer(Path(together, together, first.path.executor), size, settings)
