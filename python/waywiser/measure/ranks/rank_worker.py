"""A worker that is a rank: the native library measures messages between it and other ranks.

    python -m waywiser.measure.ranks.rank_worker BRIDGE [SHA256]

The launcher of an MPI library starts one for each rank. It connects back
(`waywiser.measure.ranks.rank`) and is then a worker as any other. While it is in no workload it
waits for orders, outside of MPI: a rank that waits in MPI would take a CPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from waywiser.machine import native, native_machine, native_memory
from waywiser.measure.probe.protocol import Hello, Ready
from waywiser.measure.probe.serve import converse
from waywiser.measure.probe.worker import NativeMeasurer, order_failed, ready_of
from waywiser.measure.ranks.bridge_file import bridge_here, loaded_bridge
from waywiser.measure.ranks.rank import RankError, connect_back, end_now
from waywiser.words import Memory, Place, WaywiserError


def joined(hello: Hello, bridge: Any) -> Any:
    """The messenger of this rank. Its GPU is selected before MPI starts. Raises
    `waywiser.measure.probe.serve.OrderFailed`."""
    library = native.load()
    own = hello.machine.rank(hello.rank)
    try:
        if own is not None:
            with suppress(OSError):  # not allowed everywhere; then it stays where it may be
                os.sched_setaffinity(0, own.cpus)
            if own.gpu >= 0:
                kind = hello.machine.traits.reference_memory("gpu", "gpu")
                memory = native_memory(Memory(kind, Place("gpu", own.gpu)))
                library.PlacedMemory(memory, 1, native_machine(hello.machine))
        return bridge.join()
    except Exception as error:
        raise order_failed(error, library) from error


def main(arguments: Sequence[str]) -> int:
    """The command."""
    try:
        channel = connect_back()
    except RankError as error:
        print(error, file=sys.stderr)
        return 2
    library = native.load()
    try:
        bridge = loaded_bridge(library, bridge_here(*arguments))
    except (library.MessengerError, WaywiserError) as error:
        print(error, file=sys.stderr)
        return 2

    def make(hello: Hello) -> tuple[NativeMeasurer, Ready]:
        messenger = joined(hello, bridge)
        ready = ready_of(hello, rank=messenger.rank, ranks=messenger.size)
        return NativeMeasurer(hello, messenger), ready

    with channel:
        if converse(channel, make, end=end_now, waiting=lambda: str(bridge.stage)):
            bridge.leave()
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
