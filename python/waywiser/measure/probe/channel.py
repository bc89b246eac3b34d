"""What connects a supervisor with one worker: two pipes, or one socket.

The supervisor's end never blocks. A channel knows lines and messages, and nothing of the process
at the other end.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from waywiser.measure.probe.protocol import FromWorker, Lines, decode_from_worker
from waywiser.words.closeable import Closeable

READ_BYTES = 1 << 20
"""All that a pipe holds, unless an administrator has allowed larger pipes."""


class ChannelClosed(Exception):
    """The worker closed its end: nothing more comes, or nothing more is read."""


class Channel(Closeable):
    """Takes over the descriptors to which orders are written and from which answers are read, which
    may be one (a socket). One thread uses it."""

    def __init__(self, orders: int, answers: int) -> None:
        self.orders, self.answers = orders, answers
        self._lines = Lines()
        with ExitStack() as stack:
            for descriptor in {orders, answers}:
                stack.callback(os.close, descriptor)
                os.set_blocking(descriptor, False)
            self._descriptors = stack.pop_all()

    def write(self, line: memoryview) -> int:
        """How many bytes were taken; call when ``orders`` is writable. Raises `ChannelClosed`."""
        try:
            return os.write(self.orders, line)
        except (ConnectionError, TimeoutError) as error:
            raise ChannelClosed from error

    def read(self) -> list[FromWorker]:
        """What has arrived; call when ``answers`` is readable, or the worker is known to have
        ended. Raises `ChannelClosed` when nothing more can come, and `ProtocolError`."""
        try:
            data = os.read(self.answers, READ_BYTES)
        except (BlockingIOError, ConnectionError, TimeoutError):
            data = b""  # an ended worker's pipe that somebody else holds; a reset socket
        if not data:
            raise ChannelClosed
        return [decode_from_worker(line) for line in self._lines.feed(data)]

    @property
    def is_torn(self) -> bool:
        """Whether the last that came is a line without its end."""
        return bool(self._lines.unfinished)

    def close(self) -> None:
        self._descriptors.close()
