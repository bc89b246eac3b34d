"""The port of the coordinator, and the connections that have not said yet who they are."""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress

from waywiser.cluster.connection import Connection
from waywiser.cluster.protocol import Challenge, Rejection
from waywiser.words.closeable import Closeable

_MOST = 16384
"""Connections that have not said who they are; beyond it the oldest is closed."""

_ACCEPTED_AT_ONCE = 256
"""Connections taken in before those that are known are served again."""

_NO_ROOM_SECONDS = 0.05
"""Seconds to wait for a descriptor that is free."""

_MOST_LOGGED = 1000

_SILENT = " (it sent nothing, as an agent of an older Waywiser does)"

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Listen = Callable[[int], socket.socket]
"""Returns a socket that listens at the port; 0 is one that is free."""


class Strangers(Closeable):
    """The thread of the connections uses it. The port is open from the start on."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        listen: Listen,
        port: int,
        log: Callable[[str], None],
        greeting_seconds: float,
        tls: ssl.SSLContext,
    ) -> None:
        self._selector = selector
        self._tls = tls
        self._listen = listen
        self._log = log
        self._greeting_seconds = greeting_seconds
        self._logged: set[tuple[str, str]] = set()
        self._connections: dict[Connection, None] = {}
        self.listener: socket.socket | None = None
        """None while the port is closed."""
        self.port = port
        self.open()

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._connections

    def open(self) -> None:
        """Opens the port if it is closed. Raises `WaywiserError`: somebody else has it."""
        if self.listener is None:
            self.listener = self._listen(self.port)
            self.listener.setblocking(False)
            self.port = self.listener.getsockname()[1]
            self._selector.register(self.listener, selectors.EVENT_READ)

    def close(self) -> None:
        """Closes the port, and the connections."""
        if self.listener is not None:
            self._selector.unregister(self.listener)
            self.listener.close()
            self.listener = None
        for connection in tuple(self._connections):
            self.drop(connection)

    def accept(self) -> None:
        """Takes in connections that wait, and sends each its challenge."""
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                if self.listener is None:
                    return
                accepted, peer = self.listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._make_room()
                return
            until = time.monotonic() + self._greeting_seconds
            host = str(peer[0]).removeprefix("::ffff:")
            connection = Connection(accepted, host, until, self._selector, self._tls)
            self._connections[connection] = None
            connection.send(Challenge(connection.nonce))
            if len(self._connections) > _MOST:
                self._make_room()

    def admit(self, connection: Connection, name: str) -> None:
        """It is known now."""
        del self._connections[connection]
        connection.admit(name)

    def reject(
        self, connection: Connection, reason: str, rejection: Rejection | None = None
    ) -> None:
        """Says why, logs it once for each host and reason, and closes the connection."""
        if connection.is_silent:
            reason += _SILENT
        connection.send(rejection or Rejection(reason))
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_WR)
        self.drop(connection)
        if (connection.host, reason) not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add((connection.host, reason))
            self._log(f"rejected a connection from {connection.host}: {reason}")

    def drop(self, connection: Connection) -> None:
        """Closes the connection without a word."""
        del self._connections[connection]
        connection.close()

    def reject_overdue(self) -> None:
        """Ends those that had enough time to say who they are."""
        now = time.monotonic()
        for connection in tuple(self._connections):  # in the order of their times
            if connection.until > now:
                return
            self.reject(connection, "it did not say in time who it is")

    def seconds_to_overdue(self) -> float | None:
        """None if there are none."""
        first = next(iter(self._connections), None)
        return None if first is None else max(first.until - time.monotonic(), 0.0)

    def _make_room(self) -> None:
        """Closes the connection that has said nothing for the longest time."""
        oldest = next(iter(self._connections), None)
        if oldest is None:
            time.sleep(_NO_ROOM_SECONDS)
        else:
            self.reject(oldest, "there are too many connections that say nothing")
