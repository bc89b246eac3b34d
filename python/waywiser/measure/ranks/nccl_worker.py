"""A worker that is a rank of NCCL: it keeps its GPU from test to test, and joins other ranks anew
for each.

    python -m waywiser.measure.ranks.nccl_worker --gpu N --read-fd N --write-fd M [--parent PID]

It needs no launcher: one rank makes a key, the coordinator gives it to all of them, and NCCL
connects them. A test that fails ends the connection, not the worker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from waywiser.machine import Machine, PlacedRank, native_machine
from waywiser.measure.probe.environment import PROCESS_ENVIRONMENT
from waywiser.measure.probe.protocol import (
    OTHER_MEMBER,
    Connect,
    Connected,
    Hello,
    MadeKey,
    MakeKey,
    Ready,
)
from waywiser.measure.probe.serve import OrderFailed, parser, serve
from waywiser.measure.probe.worker import NativeMeasurer, ready_of, use_cpus
from waywiser.words import Order, Transfer

_KINDS = {"timeout": "timeout", "stopped": "interrupted", "remote": OTHER_MEMBER}
"""Kinds of failures of a connection that ended so; ``crash`` if it ended in another way."""


class NcclMeasurer(NativeMeasurer):
    """Measures between ranks of which each has one GPU of a node."""

    def __init__(self, hello: Hello, gpu: int) -> None:
        super().__init__(hello)
        self._gpu = gpu
        self._connection: Any = None

    def make_key(self, request: MakeKey) -> MadeKey:
        """A name by which ranks find each other."""
        try:
            return MadeKey(request.id, self._library.nccl_unique_id().hex())
        except Exception as error:
            raise self.failed(error) from error

    def connect(self, request: Connect) -> Connected:
        """Waits until all ranks have joined."""
        self.leave()
        began = time.monotonic()
        try:
            self._connection = self._library.NcclConnection(self._gpu, request.seconds)
            key = bytes.fromhex(request.key)
            self._messenger = self._connection.join(key, request.rank, request.size)
            ranks = ranks_with(self._hello.machine, self._gpu, request.size)
            self._machine = native_machine(replace(self._hello.machine, ranks=ranks))
        except Exception as error:
            raise self.failed(error) from error
        return Connected(request.id, time.monotonic() - began)

    def abort(self) -> None:
        """Ends what waits for other ranks."""
        connection = self._connection
        if connection is not None:
            connection.stop()

    def prepare(self, order: Order, host_timed: Sequence[Transfer] = ()) -> None:
        """Raises `OrderFailed` without a connection."""
        if self._messenger is None:
            raise OrderFailed("not-supported", "this rank is not connected with others")
        super().prepare(order, host_timed)

    def failed(self, error: Exception) -> OrderFailed:
        """A connection that ended is left, and others can be made."""
        if isinstance(error, self._library.MessengerError) and self._connection is not None:
            kind = _KINDS.get(self._connection.ended, "crash")
            self.leave()
            return OrderFailed(kind, str(error))
        return super().failed(error)

    def stage(self) -> str:
        """What the rank does for which it needs others; empty for nothing. Any thread may ask."""
        connection = self._connection
        return "" if connection is None else str(connection.stage)

    def leave(self) -> None:
        """Gives the memory back and leaves the ranks, in this order."""
        self._session = None
        self._messenger = None
        if self._connection is not None:
            self._connection.leave()
        self._connection = None


def ranks_with(machine: Machine, gpu: int, size: int) -> tuple[PlacedRank, ...]:
    """The ranks as one of them sees them, which has this GPU. Of the GPUs of others it knows
    nothing: they are on other nodes."""
    node = _node_of(machine, gpu)
    cpus = next((each.cpus for each in machine.numa if each.index == node), ())
    return tuple(PlacedRank(n, cpus, node, gpu, messages="nccl") for n in range(size))


def _node_of(machine: Machine, gpu: int) -> int:
    """The NUMA node of a GPU, or the first one if that is not known."""
    known = [node.index for node in machine.numa]
    own = next((each.numa for each in machine.gpus if each.index == gpu), -1)
    return own if own in known else known[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``python -m waywiser.measure.ranks.nccl_worker``."""
    words = parser("measures between GPUs of several nodes for a supervisor")
    words.add_argument("--gpu", type=int, required=True, help="the GPU of this rank")
    given = words.parse_args(arguments)
    os.environ.update(PROCESS_ENVIRONMENT)  # before NCCL loads, however this process started
    made: list[NcclMeasurer] = []

    def make(hello: Hello) -> tuple[NcclMeasurer, Ready]:
        use_cpus(hello.machine)
        made.append(NcclMeasurer(hello, given.gpu))
        return made[0], ready_of(hello)

    serve(given, make, waiting=lambda: made[0].stage() if made else "")


if __name__ == "__main__":
    main()
