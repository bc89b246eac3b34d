"""One try of MPI with one kind of memory, by a rank of a launch of its own.

    python -m waywiser.measure.ranks.attempt

The launching process sends an `Attempt`. When MPI has started, the rank says that it has `Joined`,
and answers with an `Outcome` for each operation up to the first that fails.
"""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from waywiser.machine import native, native_machine, native_memory
from waywiser.measure.probe.protocol import Attempt, Outcome, decode_to_worker, encode
from waywiser.measure.ranks.bridge_file import loaded_bridge
from waywiser.measure.ranks.rank import RankError, connect_back, end_now, end_with, say_joined
from waywiser.measure.supervise import NEVER, ChannelClosed, LineChannel
from waywiser.words import WaywiserError, format_bytes

SIZES = (7, 4096, 1 << 20)
"""Bytes of a message: libraries send small and large ones in different ways."""


class Tried:
    """The memory and the messages of one rank."""

    def __init__(self, attempt: Attempt, library: Any) -> None:
        machine = native_machine(attempt.machine)
        memory = native_memory(attempt.memory)

        def allocate(size: int) -> Any:
            return library.PlacedMemory(memory, size, machine)

        self._allocate = allocate
        allocate(SIZES[-1])  # before MPI starts: a GPU is selected, and a reason against it known

    def send(self, messenger: Any) -> str:
        """Exchanges messages between ranks 0 and 1, there and back."""
        for size in SIZES:
            out, into = self._allocate(size), self._allocate(size)
            out.write(pattern(size, messenger.rank, 1 - messenger.rank))
            for sender in (0, 1):
                if messenger.rank == sender:
                    messenger.send(out, 1 - sender)
                else:
                    messenger.receive(into, sender)
            wrong = difference(into.read(), pattern(size, 1 - messenger.rank, messenger.rank))
            if wrong:
                return f"a message of {format_bytes(size)}: {wrong}"
        return ""

    def alltoallv(self, messenger: Any) -> str:
        """Exchanges messages of unequal sizes among all ranks."""
        ranks = range(messenger.size)
        for size in SIZES:
            sizes = [size + messenger.rank + 2 * to for to in ranks]
            received = [size + source + 2 * messenger.rank for source in ranks]
            out, into = self._allocate(sum(sizes)), self._allocate(sum(received))
            out.write(b"".join(pattern(sizes[to], messenger.rank, to) for to in ranks))
            messenger.alltoallv(out, sizes, into, received)
            right = b"".join(pattern(received[n], n, messenger.rank) for n in ranks)
            if wrong := difference(into.read(), right):
                return f"messages of {format_bytes(size)} and more: {wrong}"
        return ""


OPERATIONS: dict[str, Callable[[Tried, Any], str]] = {
    "send": Tried.send,
    "alltoallv": Tried.alltoallv,
}
"""What is tried, by name."""


def pattern(size: int, source: int, destination: int) -> bytes:
    """The bytes of the message from one rank to another."""
    return random.Random(1000 * source + destination).randbytes(size)


def difference(found: bytes, right: bytes) -> str:
    """What is wrong with the bytes, if anything."""
    if found == right:
        return ""
    wrong = sum(a != b for a, b in zip(found, right, strict=True))
    zeros = ", all zero" if not any(found) else ""
    return f"{wrong} of {len(right)} bytes are wrong{zeros}"


def _prepared(attempt: Attempt, library: Any) -> tuple[Tried | None, Outcome]:
    try:
        return Tried(attempt, library), Outcome()
    except (library.NotSupported, library.GpuError, MemoryError) as error:
        return None, Outcome(str(error.args[0] if error.args else error), unsupported=True)


def _answer(attempt: Attempt, library: Any, channel: LineChannel, bridge: Any) -> None:
    """Says what comes of each operation."""
    tried, outcome = _prepared(attempt, library)
    messenger = bridge.join()
    say_joined(channel, bridge, messenger)
    for number, name in enumerate(attempt.operations):
        if number:
            # A crash in this operation ends all ranks: each has answered the last one by then.
            messenger.barrier()
        if tried:
            try:
                outcome = Outcome(OPERATIONS[name](tried, messenger))
            except (library.MessengerError, library.GpuError) as error:
                outcome = Outcome(str(error.args[0]))
        channel.send(encode(outcome), NEVER)
        if outcome.problem:
            break
    if not outcome.problem:
        bridge.leave()
    while outcome.problem:  # until the launching process has heard all ranks and ends them
        signal.pause()


def main(arguments: Sequence[str] = ()) -> int:
    """The command."""
    try:
        channel = connect_back()
    except RankError as error:
        print(error, file=sys.stderr)
        return 2
    with channel:
        try:
            attempt = decode_to_worker(channel.next(NEVER))
        except ChannelClosed:
            end_now()  # the process that launched this rank is gone
        assert isinstance(attempt, Attempt)
        library = native.load()
        try:
            bridge = loaded_bridge(library, attempt.bridge)
        except (library.MessengerError, WaywiserError) as error:
            print(error, file=sys.stderr)
            return 2
        end_with(channel, lambda: str(bridge.stage))
        _answer(attempt, library, channel, bridge)
    return 0


if __name__ == "__main__":
    sys.exit(main())
