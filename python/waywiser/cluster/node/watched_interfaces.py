"""Whether bytes crossed the interface that they should have: its counters around a test."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from waywiser.cluster.connection.rail_requests import BytesCounted, CountBytes
from waywiser.machine import SystemFiles, find_interfaces
from waywiser.machine.interfaces import InterfaceBytes, read_bytes
from waywiser.words import Rail, RailTime

WATCHED = frozenset({"hangs"})
"""Phases in which counters are read: each node sends in one of its tests. A second is lost if they
come late, or if the bytes take another path."""

LATE_SECONDS = 1.2
"""Some drivers read the counters of the hardware once in a second."""


class WatchedInterfaces:
    """The byte counters of the interfaces of rails."""

    def __init__(self, rails: Sequence[Rail], files: SystemFiles | None = None) -> None:
        self._files = files or SystemFiles()
        names = {rail.interface.name for rail in rails if rail.interface is not None}
        known = {each.interface.name: each for each in find_interfaces(self._files)}
        self._found = {name: known[name] for name in sorted(names) if name in known}
        self._before: dict[str, InterfaceBytes] = {}

    def begin(self) -> None:
        self._before = self._read()

    def end(self, least: int, late_seconds: float = LATE_SECONDS) -> dict[str, int]:
        """The bytes that each has sent since `begin`. If one has less than ``least``, the counters
        are read again later. An interface whose counters were reset meanwhile is skipped."""
        sent = self._sent()
        if any(value < least for value in sent.values()):
            time.sleep(late_seconds)
            sent = self._sent()
        return sent

    def _sent(self) -> dict[str, int]:
        now = self._read()
        since = {name: now[name].since(self._before[name]) for name in now if name in self._before}
        return {name: each.sent for name, each in since.items() if each is not None}

    def _read(self) -> dict[str, InterfaceBytes]:
        read = {name: read_bytes(each, self._files) for name, each in self._found.items()}
        return {name: each for name, each in read.items() if each is not None}


def count_bytes(request: CountBytes) -> BytesCounted:
    """The handler of the request."""
    files = SystemFiles()
    read = {each.interface.name: read_bytes(each, files) for each in find_interfaces(files)}
    return BytesCounted({name: each.sent for name, each in read.items() if each is not None})


def with_crossed(
    times: Sequence[RailTime],
    rails: Mapping[str, Sequence[Rail]],
    sent: Mapping[str, int],
    counted: Mapping[str, Mapping[str, int]],
) -> tuple[RailTime, ...]:
    """The times with the share of the bytes that the sender's interface counted, at most 1: it
    counts other bytes too. ``rails`` are those of each node, ``sent`` what each of its rails sent
    at least, ``counted`` what its interfaces counted."""
    return tuple(_with_crossed(time, times, rails, sent, counted) for time in times)


def _with_crossed(
    time: RailTime,
    times: Sequence[RailTime],
    rails: Mapping[str, Sequence[Rail]],
    sent: Mapping[str, int],
    counted: Mapping[str, Mapping[str, int]],
) -> RailTime:
    own = rails.get(time.sender, ())
    name = _interface(own, time.rail)
    known = counted.get(time.sender, {}).get(name)
    users = [
        each for each in times if each.sender == time.sender and _interface(own, each.rail) == name
    ]
    expected = sent.get(time.sender, 0) * len(users)
    if not name or known is None or not expected:
        return time
    return replace(time, crossed=min(known / expected, 1.0))


def _interface(rails: Sequence[Rail], number: int) -> str:
    found = next((rail.interface for rail in rails if rail.index == number), None)
    return found.name if found is not None else ""
