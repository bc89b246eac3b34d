"""The worker's side of the conversation, the same for everything that can answer an order.

A `Measurer` is what differs: the native library (`waywiser.measure.probe.worker`) or a model
(`waywiser.measure.probe.simulate`).
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, runtime_checkable

from waywiser.machine.met_limit import met_limit
from waywiser.measure.probe.inbox import Inbox
from waywiser.measure.probe.protocol import (
    LOCATED,
    Abort,
    Connect,
    Connected,
    End,
    Failed,
    FromWorker,
    Hello,
    LeaveRanks,
    Locate,
    Located,
    MadeKey,
    MakeKey,
    MeasuredVisit,
    Observe,
    Observed,
    Ping,
    Pong,
    Prepare,
    Prepared,
    Progressed,
    RanksLeft,
    Ready,
    Result,
    Start,
    ToWorker,
    encode,
)
from waywiser.measure.supervise import NEVER, LineChannel, ProtocolError, die_with, end_now
from waywiser.measure.supervise.lifeline import end_first_without_memory
from waywiser.words import LIMIT, Failure, Locality, Order, Transfer, WaywiserError

PROGRESS_SECONDS = 0.1
"""Seconds between two progress lines: enough for a person, and too seldom to disturb the
measurement."""

Estimate = Callable[[int, float, float, float], None]
"""Called with n, median, low, high in seconds; low and high may be NaN."""


_STAGES = {
    Hello: "getting ready",
    Locate: "locating memory",
    Observe: "observing who copies",
    MakeKey: "making a key",
    Connect: "connecting",
    LeaveRanks: "leaving other ranks",
    Prepare: "preparing",
    Start: "measuring",
}


class OrderFailed(Exception):
    """An order came to nothing; ``fatal`` when this process cannot go on."""

    def __init__(self, kind: str, reason: str, *, fatal: bool = False) -> None:
        super().__init__(reason)
        self.failure = Failure(kind, " ".join(reason.split()))
        self.fatal = fatal


def located(request: Locate, found: Locality) -> Located:
    """The answer that repeats a record. Raises `OrderFailed` if it is one of a failure."""
    if found.failure is not None:
        raise OrderFailed(found.failure.kind, found.failure.reason)
    return Located(request.id, *(getattr(found, name) for name in LOCATED))


class Measurer(Protocol):
    """Answers orders; all methods raise `OrderFailed`."""

    def locate(self, request: Locate) -> Located: ...

    def observe(self, request: Observe) -> Observed: ...

    def prepare(self, order: Order, host_timed: Sequence[Transfer] = ()) -> None: ...

    def measure(self, order: Order, estimate: Estimate) -> MeasuredVisit: ...

    def underway(self) -> str:
        """Returns what a measurement waits for; empty if unknown. Any thread may call it."""


@runtime_checkable
class ConnectingMeasurer(Measurer, Protocol):
    """One that measures between ranks, which each connection chooses anew."""

    def make_key(self, request: MakeKey) -> MadeKey: ...

    def connect(self, request: Connect) -> Connected: ...

    def leave(self) -> None: ...

    def abort(self) -> None:
        """Ends what waits for other ranks. Any thread may call it."""


class _Speaker:
    """Speaks to the supervisor, on a channel of its own: drivers print to standard output. Threads
    may use it at once."""

    def __init__(self, channel: LineChannel, waiting: Callable[[], str]) -> None:
        self._channel = channel
        self._waiting = waiting
        self.stage, self.step = "getting ready", 0
        """As in `Pong`."""
        self.measurer: Measurer | None = None

    def put(self, message: FromWorker) -> None:
        self._channel.send(encode(message), NEVER)

    def at(self, stage: str) -> None:
        """Notes what is done next."""
        self.stage, self.step = stage, self.step + 1

    def heed(self, message: Ping | Abort) -> None:
        """By the inbox's thread, whatever the measuring thread does."""
        if isinstance(message, Ping):
            self._answer(message)
        elif isinstance(self.measurer, ConnectingMeasurer):
            self.measurer.abort()

    def _answer(self, ping: Ping) -> None:
        waits = self._waiting()
        known = waits or (self.measurer.underway() if self.measurer else "")
        stage = f"{self.stage}, {known}" if known else self.stage
        with suppress(OSError):  # the listener is gone
            self.put(Pong(ping.id, stage, self.step, bool(waits)))


def parser(description: str) -> argparse.ArgumentParser:
    """The arguments that the supervisor gives to every worker."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--read-fd", type=int, required=True, help="orders come from here")
    arguments.add_argument("--write-fd", type=int, required=True, help="answers go here")
    arguments.add_argument("--parent", type=int, default=0, help="end when this process does")
    return arguments


def serve(
    arguments: argparse.Namespace,
    make: Callable[[Hello], tuple[Measurer, Ready]],
    *,
    waiting: Callable[[], str] = str,
) -> None:
    """Talks to the supervisor until it says stop. Never returns when the supervisor is gone.
    ``waiting`` as in `converse`."""
    die_with(arguments.parent)
    end_first_without_memory()
    for descriptor in (arguments.read_fd, arguments.write_fd):
        os.set_inheritable(descriptor, False)  # what a driver starts must not hold them open
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to handle
    converse(LineChannel(arguments.read_fd, arguments.write_fd), make, waiting=waiting)


def converse(
    channel: LineChannel,
    make: Callable[[Hello], tuple[Measurer, Ready]],
    *,
    end: Callable[[], None] = end_now,
    waiting: Callable[[], str] = str,
) -> bool:
    """Talks to the supervisor over the channel until it says stop: then True. ``end``
    ends the process when the supervisor is gone. ``waiting`` is asked by another thread what the
    worker does for which it needs another member; empty if nothing. The process ends afterwards:
    the garbage collector does not look through all of it once more, for a seventh of the CPU time
    of a worker that has started and ended."""
    speaker = _Speaker(channel, waiting)
    try:
        inbox = Inbox(channel, speaker.heed, end)
        hello = inbox.get()
        if not isinstance(hello, Hello):
            raise ProtocolError(f"{type(hello).__name__.lower()!r} before 'hello'")
        measurer, ready = make(hello)
        speaker.measurer = measurer
        speaker.put(ready)
        return _answer(inbox, speaker, measurer)
    except (WaywiserError, OrderFailed) as error:
        speaker.put(_last(0, error))
    except (OSError, RuntimeError, MemoryError) as error:
        limit = met_limit(error)
        if limit is None:
            raise
        speaker.put(_last(0, OrderFailed(LIMIT, str(limit))))
    finally:
        gc.freeze()
    return False


def _last(order: int, error: WaywiserError | OrderFailed) -> Failed:
    """What a worker says that cannot go on."""
    if not isinstance(error, OrderFailed):
        kind = "protocol" if isinstance(error, ProtocolError) else "crash"
        error = OrderFailed(kind, str(error))
    return Failed(order, error.failure, fatal=True)


def _answer(inbox: Inbox, speaker: _Speaker, measurer: Measurer) -> bool:
    """Whether the supervisor said stop, and not the worker that it cannot go on."""
    prepared: Prepare | None = None
    put = speaker.put
    while not isinstance(message := inbox.get(), End):
        speaker.at(_STAGES.get(type(message), speaker.stage))
        try:
            if isinstance(message, Locate):
                put(measurer.locate(message))
            elif isinstance(message, Observe):
                put(measurer.observe(message))
            elif isinstance(message, MakeKey | Connect | LeaveRanks):
                put(_connect(message, measurer))
            elif isinstance(message, Prepare):
                prepared = None
                measurer.prepare(message.order, message.host_timed)
                prepared = message
                put(Prepared(message.id))
            else:
                put(_start(message, prepared, measurer, speaker))
        except OrderFailed as lost:
            put(Failed(_order_id(message), lost.failure, lost.fatal))
            if lost.fatal:
                return False
        except WaywiserError as error:
            put(_last(_order_id(message), error))
            return False
        speaker.at("waiting for an order")
    return True


def _connect(
    message: MakeKey | Connect | LeaveRanks, measurer: Measurer
) -> MadeKey | Connected | RanksLeft:
    if not isinstance(measurer, ConnectingMeasurer):
        raise OrderFailed("not-supported", "the ranks of this worker are chosen when it starts")
    if isinstance(message, MakeKey):
        return measurer.make_key(message)
    if isinstance(message, LeaveRanks):
        measurer.leave()
        return RanksLeft(message.id)
    return measurer.connect(message)


def _order_id(message: ToWorker) -> int:
    of_order = Locate | Observe | MakeKey | Connect | LeaveRanks | Prepare | Start
    return message.id if isinstance(message, of_order) else 0


def _start(
    message: ToWorker, prepared: Prepare | None, measurer: Measurer, speaker: _Speaker
) -> Result:
    if not isinstance(message, Start) or prepared is None or prepared.id != message.id:
        raise ProtocolError(f"{type(message).__name__.lower()!r} without its 'prepare'")
    due = 0.0

    def estimate(n: int, median: float, low: float, high: float) -> None:
        nonlocal due
        speaker.at("measuring")
        now = time.monotonic()
        if now < due:
            return
        due = now + PROGRESS_SECONDS
        interval = (None, None) if low != low else (low, high)  # NaN is the only x != x
        speaker.put(Progressed(message.id, n, median, *interval))

    return Result(message.id, measurer.measure(prepared.order, estimate))
