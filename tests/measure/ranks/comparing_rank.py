"""A rank of a test that measures messages in turn by the native library and by plain C.

    python comparing_rank.py BRIDGE PLAIN MACHINE SIZES

``PLAIN`` is ``benchmarks/plain_mpi.c`` as a library, ``MACHINE`` JSON with two ranks. Both measure
in this process and in turn, so that what disturbs one disturbs the other: rank 0 says the shortest
sample of each size that both have found, when they agree for some rounds or after many.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from typing import Any

import msgspec

from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.machine.native_words import native_machine, native_transfer
from waywiser.measure.ranks.rank import connect_back, end_with, say_joined
from waywiser.measure.supervise.deadline import NEVER
from waywiser.words import Transfer

SAMPLES = 5
"""The samples of each program in a round."""

LEAST_ROUNDS, MOST_ROUNDS = 9, 3000

AGREED_ROUNDS = 3
"""Rounds in a row whose shortest samples agree."""

WITHIN = 0.05


class Comparison:
    """The shortest samples of one size, in seconds of half a round trip."""

    def __init__(self, size: int, messenger: Any, session: Any, plain: ctypes.CDLL) -> None:
        self.own = self.plain = float("inf")
        transfer = Transfer.parse(f"pageable@rank:0 -> pageable@rank:1 by mpi of {size}")
        self._transfer = native_transfer(transfer)
        self._messenger, self._session, self._library = messenger, session, plain
        self._buffer = ctypes.create_string_buffer(size + 4096)
        self._size = size
        self._rule = native.load().StopRule(
            minimum=SAMPLES, maximum=SAMPLES, slow_minimum=SAMPLES,
            minimum_seconds=0.0, soft_seconds=0.0,
        )  # fmt: skip

    def round(self) -> None:
        samples = self._session.measure([self._transfer], rule=self._rule)["samples"]
        self.own = min([self.own, *samples["span"]])
        trips = int(self._messenger.maximum([max(samples["repetitions"], default=1)])[0])
        address = -ctypes.addressof(self._buffer) % 4096 + ctypes.addressof(self._buffer)
        for _ in range(SAMPLES):
            found = self._library.round_trips(
                ctypes.c_void_p(address), self._size, trips, self._messenger.rank
            )
            self.plain = min(self.plain, found)

    @property
    def agrees(self) -> bool:
        return abs(self.own / self.plain - 1) <= WITHIN


def compared(messenger: Any, session: Any, plain: ctypes.CDLL, sizes: list[int]) -> list[Any]:
    comparisons = [Comparison(size, messenger, session, plain) for size in sizes]
    agreed = 0
    for rounds in range(1, MOST_ROUNDS + 1):
        for comparison in comparisons:
            comparison.round()
        agreed = agreed + 1 if all(each.agrees for each in comparisons) else 0
        enough = rounds >= LEAST_ROUNDS and agreed >= AGREED_ROUNDS
        if messenger.maximum([float(enough and messenger.rank == 0)])[0]:
            break
    return [rounds, *([each.own, each.plain] for each in comparisons)]


def main(bridge_file: str, plain_file: str, machine_json: str, sizes: str) -> None:
    channel = connect_back()
    end_with(channel)
    machine = msgspec.json.decode(machine_json, type=Machine)
    library = native.load()
    bridge = library.Bridge(bridge_file)
    messenger = bridge.join()
    os.sched_setaffinity(0, machine.ranks[messenger.rank].cpus)
    say_joined(channel, bridge, messenger)
    plain = ctypes.CDLL(plain_file)
    plain.round_trips.restype = ctypes.c_double
    session = library.Session(native_machine(machine), messenger=messenger)
    found = compared(messenger, session, plain, json.loads(sizes))
    channel.send(json.dumps(found).encode() + b"\n", NEVER)
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
