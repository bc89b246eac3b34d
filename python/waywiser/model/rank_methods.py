"""Methods that move messages between GPUs of two nodes, measured from end to end.

A test of another tool measures steps, and names itself (``test=ping-pong``). A method of this
program is an executor with its settings: each of its workloads is one number and size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from waywiser.curves import Point
from waywiser.model.count_table import CountTimes
from waywiser.model.messages import locality_of
from waywiser.model.strategy_steps import GPU
from waywiser.words import Transfer, Workload, format_settings


def methods_of(series: Iterable[Point]) -> dict[str, CountTimes]:
    """The times of each method, by bytes and number of messages of one sender."""
    found: dict[str, dict[tuple[int, int], tuple[float, ...]]] = {}
    for each in series:
        number = _messages_of_a_sender(each.workload)
        if number and each.blocks:
            first = each.workload.transfers[0]
            own, key = found.setdefault(_method(first), {}), (first.bytes, number)
            own[key] = own.get(key, ()) + tuple(block.median for block in each.blocks)
    return dict(found)


def _method(transfer: Transfer) -> str:
    return transfer.path.executor + format_settings(transfer.parameters)


def _messages_of_a_sender(workload: Workload) -> int:
    """The number, if all messages are equal, between GPUs of two nodes, by one method, and as many
    from each sender; else 0."""
    if len({(each.bytes, _method(each)) for each in workload.transfers}) != 1:
        return 0
    senders: defaultdict[int, int] = defaultdict(int)
    for each in workload.transfers:
        of_gpus = all(end.kind == GPU and end.place.kind == "rank" for end in each.path.ends)
        if not of_gpus or locality_of(each) != "off-node" or "test" in each.parameters:
            return 0
        senders[each.path.source.place.index] += 1
    counts = set(senders.values())
    return counts.pop() if len(counts) == 1 else 0
