"""The call with which a program makes a transfer: ``cudaMemcpyAsync, pinned host memory``.

``calls.json`` has the calls by executor. The traits of a profile say which kind of memory needs no
name. A transfer by an executor without a call is described by the executor and its settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from waywiser.hardware.traits import DECLARED, Traits
from waywiser.words import Memory, Transfer, Value, format_settings
from waywiser.words.number_format import count


class Call(Value, frozen=True, forbid_unknown_fields=True):
    """The call of an executor, for the transfers that it is for."""

    executor: str
    call: str
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """The call makes transfers with these settings."""
    between: tuple[str, ...] = ()
    """Kinds of the places that the transfer leads from and to; empty for any."""
    two_places: bool = False
    """The call makes no transfer within one place."""
    defaults: dict[str, str] = msgspec.field(default_factory=dict)
    """Settings that are shown if they have their default values too."""

    def makes(self, transfer: Transfer) -> bool:
        """Whether the call makes this transfer."""
        path = transfer.path
        places = path.places
        return (
            path.executor == self.executor
            and self.settings.items() <= transfer.parameters.items()
            and self.between in ((), (places[0].kind, places[1].kind))
            and not (self.two_places and places[0] == places[1])
        )


@cache
def calls() -> tuple[Call, ...]:
    """The calls of all executors; of several for a transfer the first one counts."""
    data = Path(__file__).with_suffix(".json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Call, ...])


def call_text(transfers: Sequence[Transfer], traits: Traits = DECLARED) -> str:
    """The call that makes the transfers, with its settings, and the memory that it needs."""
    single = list(dict.fromkeys(_call(transfer) for transfer in transfers))
    text = " and ".join(single)
    first = transfers[0].path
    if len(transfers) == 2 and transfers[1].path == first.opposite:
        text += " in both directions at once"
    elif len(transfers) > 1:
        text = f"{len(transfers)} × {text} at once"
    memories = dict.fromkeys(
        filter(None, (_memory(end, traits) for end in (first.source, first.destination)))
    )
    return f"{text}, {' to '.join(memories)}" if memories else text


def _call(transfer: Transfer) -> str:
    known = next((call for call in calls() if call.makes(transfer)), None)
    layout = f" as {transfer.layout}" if transfer.layout else ""
    if known is None:
        return f"{transfer.path.executor}{format_settings(transfer.parameters)}{layout}"
    settings = {**known.defaults, **transfer.parameters}
    rest = {name: value for name, value in settings.items() if name not in known.settings}
    threads = rest.pop("threads", "")
    with_threads = f" in {_threads(threads)}" if threads else ""
    return f"{known.call}{format_settings(rest)}{with_threads}{layout}"


def _threads(number: str) -> str:
    return count(int(number), "thread") if number.isdecimal() else f"{number} threads"


def _memory(memory: Memory, traits: Traits) -> str:
    """A memory that a program chooses; empty for the plain memory of a GPU."""
    kind = f"{memory.kind}{format_settings(memory.variant)}"
    if memory.place.kind == "numa":
        return f"{kind} host memory"
    if memory.place.kind == "file":
        return str(memory.place) if kind == memory.place.kind else f"{kind} {memory.place}"
    return "" if kind == traits.reference_memory("gpu", "gpu") else f"{kind} GPU memory"
