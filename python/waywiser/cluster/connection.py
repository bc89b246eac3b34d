"""The coordinator's end of one encrypted connection: lines in, lines out, never waiting."""

from __future__ import annotations

import selectors
import socket
import ssl
import sys
from collections import deque
from contextlib import suppress

from waywiser.cluster.protocol import JOIN_LINE_BYTES, LINE_BYTES, ToAgent, encode
from waywiser.cluster.secure_channel import ChannelError, SecureChannel
from waywiser.cluster.token_proof import new_nonce
from waywiser.measure.probe.protocol import Lines
from waywiser.words.closeable import Closeable

_READ_BYTES = 1 << 16

KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""A host that is gone without a word, or cannot be reached any more, is noticed in 30 s. The kernel
answers for a process that is busy or stopped."""


def keep_alive(connection: socket.socket) -> None:
    """Lets the kernel notice that the other host is gone; sends small lines at once."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        for name, value in KEEPALIVE.items():
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Connection(Closeable):
    """Takes over the socket, and registers it with the selector. One thread uses it."""

    def __init__(
        self,
        connection: socket.socket,
        host: str,
        until: float,
        selector: selectors.BaseSelector,
        tls: ssl.SSLContext,
    ) -> None:
        self.socket = connection
        self.host = host
        self.until = until
        """When its greeting is overdue, on the clock of ``time.monotonic``."""
        self.nonce = new_nonce()
        self.name = ""
        """The name of the node, once it has joined."""
        self.has_spoken = False
        """Whether it said anything in the channel, or something that is no channel."""
        self._channel = SecureChannel(tls)
        self._lines = Lines(JOIN_LINE_BYTES)
        self._out: deque[memoryview] = deque()
        self._selector = selector
        connection.setblocking(False)
        keep_alive(connection)
        selector.register(connection, selectors.EVENT_READ, self)

    @property
    def is_closed(self) -> bool:
        return self.socket.fileno() < 0

    @property
    def is_silent(self) -> bool:
        """Whether not even a channel has begun."""
        return not self._channel.has_begun

    def admit(self, name: str) -> None:
        """Lines may be longer from now on."""
        self.name = name
        self._lines = Lines(LINE_BYTES)

    def receive(self) -> list[bytes] | None:
        """Whole lines that have arrived; None when nothing more can come. Raises
        `waywiser.measure.probe.protocol.ProtocolError` for a line that is too long, and
        `waywiser.cluster.secure_channel.ChannelError`."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        if not data:
            return None
        try:
            plain = self._channel.receive(data)
        except ChannelError:
            self.has_spoken = True
            raise
        finally:
            self._send(self._channel.unsent())
        self.has_spoken = self.has_spoken or bool(plain)
        return self._lines.feed(plain)

    def send(self, message: ToAgent | bytes) -> None:
        """Sends what can be sent at once, and keeps the rest for `flush`."""
        self._send(self._channel.send(message if isinstance(message, bytes) else encode(message)))

    def flush(self) -> None:
        """Sends more of what is kept; call when the socket is writable. A broken connection is
        noticed by `receive`."""
        try:
            while self._out:
                sent = self.socket.send(self._out[0])
                self._out[0] = self._out[0][sent:]
                if not self._out[0]:
                    self._out.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._out.clear()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)
        if self._selector.get_key(self.socket).events != events:
            self._selector.modify(self.socket, events, self)

    def _send(self, data: bytes) -> None:
        if data:
            self._out.append(memoryview(data))
            self.flush()

    def close(self) -> None:
        if not self.is_closed:
            self._selector.unregister(self.socket)
            self.socket.close()
