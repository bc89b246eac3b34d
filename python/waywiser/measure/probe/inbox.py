"""What the supervisor says to a worker, while it measures too."""

from __future__ import annotations

import queue
from collections.abc import Callable

from waywiser.measure.probe.protocol import Abort, End, Ping, ToWorker, decode_to_worker
from waywiser.measure.supervise import (
    ChannelClosed,
    LineChannel,
    ProtocolError,
    end_now,
    start_thread,
)

_READ_BYTES = 1 << 16


class Inbox:
    """What the supervisor says, read by a thread that also sees when it stops being there. The
    thread passes on to ``heed`` what cannot wait for the end of a measurement.

    The thread sleeps in ``read`` while a measurement runs and wakes for nothing else.
    """

    def __init__(
        self,
        channel: LineChannel,
        heed: Callable[[Ping | Abort], None],
        end: Callable[[], None] = end_now,
    ) -> None:
        self._channel = channel
        self._heed = heed
        self._end = end
        self._messages: queue.SimpleQueue[ToWorker | ProtocolError] = queue.SimpleQueue()
        start_thread(self._read, "inbox")

    def get(self) -> ToWorker:
        """The next message; waits for it. Raises `ProtocolError` for what is none."""
        message = self._messages.get()
        if isinstance(message, ProtocolError):
            raise message
        return message

    def _read(self) -> None:
        while True:
            try:
                for message in map(decode_to_worker, self._channel.taken()):
                    if isinstance(message, Ping | Abort):
                        self._heed(message)
                        continue
                    self._messages.put(message)
                    if isinstance(message, End):
                        return  # what follows is the end that was announced
                self._channel.receive(_READ_BYTES)
            except ProtocolError as error:
                self._messages.put(error)
            except ChannelClosed:
                break
        self._end()
