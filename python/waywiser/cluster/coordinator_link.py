"""The agent's end of the encrypted connection to the coordinator."""

from __future__ import annotations

import select
import socket
import threading
import time
from math import inf

from waywiser.cluster.secure_channel import SecureChannel
from waywiser.words.closeable import Closeable

_READ_BYTES = 1 << 16

LOOK_SECONDS = 1.0
"""Seconds between two looks for a signal while nothing comes."""


class CoordinatorLink(Closeable):
    """Takes over a connected socket. One thread receives, any may send. Each method raises
    `OSError`, which has `TimeoutError`, and `waywiser.cluster.secure_channel.ChannelError`.
    Deadlines are on the clock of ``time.monotonic``."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._channel = SecureChannel()
        self._using = threading.Lock()
        """Held by who uses the channel, which is no more than computing."""
        self._sending = threading.Lock()
        """Held by who sends: what the channel makes is sent in its order."""
        self._ahead = b""

    def open(self, deadline: float) -> str:
        """Shakes hands. Returns the fingerprint of the coordinator's certificate."""
        self.send(b"", deadline)
        while not self._channel.is_open:
            data = self._received(deadline)
            if not data:
                raise ConnectionResetError("the coordinator closed the connection")
            try:
                self._ahead += self._channel.receive(data)
            finally:
                self.send(b"", deadline)
        return self._channel.certificate

    def receive(self, deadline: float = inf) -> bytes:
        """What comes next; empty at the end of the connection."""
        found, self._ahead = self._ahead, b""
        while not found:
            data = self._received(deadline)
            if not data:
                return b""
            with self._using:
                found = self._channel.receive(data)
        return found

    def line(self, longest: int, deadline: float) -> bytes:
        """The next line, and nothing of what follows it; without its end if the connection ends
        or the line is longer."""
        line = b""
        while b"\n" not in line and len(line) <= longest and (more := self.receive(deadline)):
            line += more
        line, end, self._ahead = line.partition(b"\n")
        return line + end

    def send(self, data: bytes, deadline: float = inf) -> None:
        with self._sending:
            with self._using:
                unsent = memoryview(self._channel.send(data) if data else self._channel.unsent())
            while unsent:
                try:
                    unsent = unsent[self._socket.send(unsent) :]
                except (BlockingIOError, InterruptedError):
                    self._wait(select.POLLOUT, deadline)

    def close(self) -> None:
        self._socket.close()

    def _received(self, deadline: float) -> bytes:
        """Bytes of the network; empty at the end of the connection."""
        while True:
            self._wait(select.POLLIN, deadline)
            try:
                return self._socket.recv(_READ_BYTES)
            except (BlockingIOError, InterruptedError):
                pass

    def _wait(self, event: int, deadline: float) -> None:
        """The wait is divided: Python sees a signal that came just before a system call only
        after it."""
        descriptor = self._socket.fileno()
        if descriptor < 0:
            raise ConnectionAbortedError("the connection was closed")
        poll = select.poll()
        poll.register(descriptor, event)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the coordinator does not answer in time")
            if poll.poll(min(left, LOOK_SECONDS) * 1e3):
                return
            if self._socket.fileno() != descriptor:  # its number may be that of another file now
                raise ConnectionAbortedError("the connection was closed")
