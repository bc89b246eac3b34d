"""Exchanges among ranks: what they are called, and with how many memories.

A strategy, the number of processes that take part, how they divide messages, and whether one call
makes all messages are methods of one exchange. How much each sends to each, and how much of that
differs, makes another exchange.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from waywiser.machine import DECLARED, Machine, memories_of
from waywiser.machine.ranks import COUNTS, NEIGHBOURS, OF_EXCHANGE
from waywiser.words import EXCHANGE, Transfer, Workload, format_settings
from waywiser.words.collective import said_by

STRATEGY, DIRECT = "strategy", "direct"
"""The parameter of an exchange that says how bytes get from GPU to GPU, and its value for messages
from and to memory as it is."""

BETWEEN = "exchange"
"""The parameter that says whether one call makes all messages, or each pair its own."""

USUAL = "3-step"
"""The strategy that is not written, in memory of GPUs."""

GPUS = "gpus"
"""What comparisons add: of several ranks that share GPUs, how many memories exchange."""

_COUNT_OF_GPUS = re.compile(rf"\[{GPUS}=\d+\]|(?<=\[){GPUS}=\d+,|,{GPUS}=\d+(?=[,\]])")


def as_measured(text: str) -> str:
    """The text or pattern of a path as a survey has it: without what comparisons add."""
    return _COUNT_OF_GPUS.sub("", text)


def is_exchange(transfer: Transfer) -> bool:
    """Whether it is one of a survey, which may be made by several methods."""
    return transfer.path.is_among_several and said_by(transfer.path.executor)


def what_is_exchanged(transfer: Transfer) -> str:
    """``alltoallv[counts=skewed]``: the exchange without its method. One with counts that are equal
    is the other executor's, too."""
    kept = {name: each for name, each in transfer.parameters.items() if name in OF_EXCHANGE}
    executor = transfer.path.executor
    if executor != EXCHANGE and not kept.keys() & {COUNTS, NEIGHBOURS}:
        executor = EXCHANGE
    return f"{executor}{format_settings(kept)}"


def strategy_of(transfer: Transfer) -> str:
    """``duplicate-pointer, per-gpu=2``: the method without who makes the messages, of which tables
    take the better."""
    usual = USUAL if DECLARED.is_of_gpu(transfer.path.source) else DIRECT
    other = (STRATEGY, BETWEEN, *OF_EXCHANGE)
    named = [f"{name}={each}" for name, each in transfer.parameters.items() if name not in other]
    return ", ".join([transfer.parameters.get(STRATEGY, usual), *named])


def among_memories(workload: Workload, machine: Machine) -> Workload:
    """An exchange among ranks that share GPUs with the number of these: it is another one than that
    of as many ranks with a memory each. Everything else as it is."""
    if workload.kind != "collective" or not is_exchange(workload.transfers[0]):
        return workload
    (transfer,) = workload.transfers
    memory = transfer.path.source
    count = memories_of(memory, machine)
    if count == len(memory.each):
        return workload
    settings = {**transfer.parameters, GPUS: str(count)}
    return replace(workload, transfers=(replace(transfer, parameters=settings),))
