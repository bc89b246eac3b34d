"""The call with which a program makes a transfer: ``cudaMemcpyAsync, pinned host memory``.

Executors declare their calls (`waywiser.machine.traits.Call`). The traits of a profile say which
kind of memory needs no name. A transfer by an executor without a call is described by the executor
and its settings.
"""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.machine.traits import DECLARED, Traits
from waywiser.words import Memory, Transfer, count, format_settings, whole_number, with_units


def call_text(transfers: Sequence[Transfer], traits: Traits = DECLARED) -> str:
    """The call that makes the transfers, with its settings, and the memory that it needs."""
    single = list(dict.fromkeys(_call(transfer, traits) for transfer in transfers))
    text = " and ".join(single)
    first = transfers[0].path
    if len(transfers) == 2 and transfers[1].path.is_back_of(first):
        text += " in both directions at once"
    elif len(transfers) > 1:
        text = f"{len(transfers)} × {text} at once"
    of_ranks = traits.is_between_ranks(first)
    named = (_memory(end, traits, of_ranks or end.place.kind == "rank") for end in first.ends)
    memories = dict.fromkeys(filter(None, named))
    return f"{text}, {' to '.join(memories)}" if memories else text


def _call(transfer: Transfer, traits: Traits) -> str:
    call = traits.call(transfer)
    by_multiprocessors = traits.by_multiprocessors(transfer)
    layout = with_units(f" as {transfer.layout}") if transfer.layout else ""
    if by_multiprocessors:
        return f"{with_units(by_multiprocessors)}{layout}"
    if call is None:
        return f"{transfer.path.executor}{_settings(transfer.parameters)}{layout}"
    settings = {**call.defaults, **transfer.parameters}
    shown = {name: value for name, value in settings.items() if name not in call.settings}
    threads = shown.pop("threads", "")
    with_threads = f" in {_threads(threads)}" if threads else ""
    return f"{call.text}{_settings(shown)}{with_threads}{layout}"


def _settings(settings: dict[str, str]) -> str:
    return with_units(format_settings(settings))


def _threads(number: str) -> str:
    threads = whole_number(number)
    return f"{number} threads" if threads is None else count(threads, "thread")


def _memory(memory: Memory, traits: Traits, at_rank: bool) -> str:
    """A memory that a program chooses; empty for the plain memory of a GPU. That of a rank is named
    by its kind: its place does not say whether it is memory of the host or of a GPU."""
    kind = f"{memory.kind}{_settings(memory.variant)}"
    places = traits.memory(memory.kind).places if at_rank else (memory.place.kind,)
    if places == ("numa",):
        return f"{kind} host memory"
    if at_rank and places != ("gpu",):
        return f"{kind} memory"
    if memory.place.kind == "file":
        return str(memory.place) if kind == memory.place.kind else f"{kind} {memory.place}"
    return "" if kind == traits.reference_memory("gpu", "gpu") else f"{kind} GPU memory"
