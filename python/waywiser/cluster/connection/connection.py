"""The coordinator's end of one encrypted connection: it never waits."""

from __future__ import annotations

import selectors
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress

from waywiser.cluster.connection.protocol import JOIN_LINE_BYTES, LINE_BYTES, Leave, ToAgent, encode
from waywiser.cluster.connection.secure_channel import ChannelError, SecureChannel
from waywiser.cluster.connection.token_proof import new_nonce
from waywiser.measure.supervise import ChannelClosed, Connection, Deadline, ProtocolError

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


class AgentConnection(Connection):
    """The connection of an agent, or of who may become one; then it is a
    `waywiser.measure.supervise.team.TeamMember`. One thread uses it."""

    def __init__(
        self,
        accepted: socket.socket,
        host: str,
        until: Deadline,
        selector: selectors.BaseSelector,
        tls: ssl.SSLContext,
    ) -> None:
        keep_alive(accepted)
        self.nonce = new_nonce()
        self.name = ""
        """The name of the node, once it has joined."""
        self.has_spoken = False
        """Whether it said anything in the channel, or something that is no channel."""
        self._secure = SecureChannel(tls)
        super().__init__(accepted, host, until, selector, JOIN_LINE_BYTES, self._secure)

    @property
    def is_silent(self) -> bool:
        """Whether not even a channel has begun."""
        return not self._secure.has_begun

    def admit(self, name: str, serve: Callable[[float], None]) -> None:
        """Lines may be longer from now on. ``serve`` waits so long for what comes by any
        connection."""
        self.name = name
        self._serve = serve
        self.allow_lines(LINE_BYTES)

    def receive(self, most_bytes: int = _READ_BYTES) -> None:
        """As of any channel; answers what TLS itself needs."""
        try:
            super().receive(most_bytes)
            self.has_spoken = self.has_spoken or bool(self.heard) or self.is_torn
        except (ChannelError, ProtocolError):
            self.has_spoken = True
            raise
        finally:
            self.put(b"")
            self.flush()

    def say(self, message: ToAgent | bytes) -> None:
        """Sends what can be sent at once, and keeps the rest for `flush`."""
        self.put(message if isinstance(message, bytes) else encode(message))
        self.flush()

    def flush(self) -> bool:
        """Sends more of what is kept; call when the socket is writable. A broken connection is
        noticed by `receive`."""
        with suppress(ChannelClosed):
            super().flush()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.is_pending else 0)
        if self.selector is not None and self.selector.get_key(self.connection).events != events:
            self.selector.modify(self.connection, events, self)
        return not self.is_pending

    def leave(self, deadline: Deadline) -> None:
        self.say(Leave())

    def await_end(self, deadline: Deadline) -> bool:
        """Whether the agent closes its connection by then."""
        while not self.is_closed and not deadline.is_over:
            self._serve(deadline.left)
        return self.is_closed
