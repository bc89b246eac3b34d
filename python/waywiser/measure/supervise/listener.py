"""A port at which processes connect, and the connections that have not said yet who they are.

Who may connect is often not known before: the port may be open to all hosts. So the number of such
connections has a limit, and each has a time in which it says who it is.
"""

from __future__ import annotations

import errno
import resource
import selectors
import socket
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Generic, TypeVar

from waywiser.measure.supervise.channel import Cipher, LineChannel
from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Closeable

GREETING_SECONDS = 30.0
"""Seconds for who connects to say who it is; on a busy machine an honest process may take
seconds."""

_BACKLOG = 4096
"""Connections that wait to be taken in, as all processes may come at once; the kernel may allow
fewer."""

_FREE_DESCRIPTORS = 256
"""Descriptors that these connections leave to the rest of the process, or half of its limit."""

_ACCEPTED_AT_ONCE = 256
"""Connections taken in before those that are known are served again."""

_NO_ROOM_SECONDS = 0.05
"""Seconds to wait for a descriptor that is free."""

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Listen = Callable[[int], socket.socket]
"""Returns a socket that listens at the port; 0 is one that is free."""


class Connection(LineChannel):
    """A connection that has not said who it is. Takes over the socket, and registers it with the
    selector; one thread receives, that of the selector. ``until`` its greeting may come."""

    def __init__(
        self,
        accepted: socket.socket,
        host: str,
        until: Deadline,
        selector: selectors.BaseSelector,
        longest_bytes: int,
        cipher: Cipher | None = None,
    ) -> None:
        super().__init__(accepted, longest_bytes=longest_bytes, cipher=cipher, peer=host)
        self.connection = accepted
        self.host = host
        self.until = until
        self.selector: selectors.BaseSelector | None = selector
        accepted.setblocking(False)
        selector.register(accepted, selectors.EVENT_READ, self)

    def hand_over(self) -> None:
        """The selector knows nothing of it any more."""
        if self.selector is not None and not self.is_closed:
            self.selector.unregister(self.connection)
        self.selector = None

    def close(self) -> None:
        self.hand_over()
        super().close()


_Stranger = TypeVar("_Stranger", bound=Connection)


def listening_socket(host: str, port: int = 0) -> socket.socket:
    """A socket that listens at this address; an empty host is all addresses of this machine, port 0
    one that is free. Raises `OSError`, and `UnicodeError` for what is no name of a host."""
    if not host and socket.has_dualstack_ipv6():
        with suppress(OSError):  # IPv6 may be switched off all the same
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


class Listener(Closeable, Generic[_Stranger]):
    """One thread uses it, that of the selector. The port is open from the start on."""

    most = 16384
    """Connections that have not said who they are; beyond it the oldest is closed."""

    def __init__(
        self, selector: selectors.BaseSelector, listen: Listen, port: int, greeting_seconds: float
    ) -> None:
        self.selector = selector
        self._listen = listen
        self._greeting_seconds = greeting_seconds
        self._connections: dict[_Stranger, None] = {}
        self._room = 0.0
        self.listener: socket.socket | None = None
        """None while the port is closed."""
        self.port = port
        self.open()

    @abstractmethod
    def take_in(self, accepted: socket.socket, host: str, until: Deadline) -> _Stranger:
        """The connection of a socket, registered with the selector as the last that may fail.
        Raises `OSError`."""

    @abstractmethod
    def state_reason(self, connection: _Stranger, reason: str) -> None:
        """Says to a connection why it is closed, if the protocol has words for it."""

    def __contains__(self, connection: _Stranger) -> bool:
        return connection in self._connections

    def open(self) -> None:
        """Opens the port if it is closed. Raises what ``listen`` raises: another process has it."""
        if self.listener is None:
            self.listener = self._listen(self.port)
            self.listener.setblocking(False)
            self.port = self.listener.getsockname()[1]
            self.selector.register(self.listener, selectors.EVENT_READ)
            self._room = min(self.most, _free_descriptors())

    def close(self) -> None:
        """Closes the port, and the connections."""
        if self.listener is not None:
            self.selector.unregister(self.listener)
            self.listener.close()
            self.listener = None
        for connection in tuple(self._connections):
            self.drop(connection)

    def accept(self) -> None:
        """Takes in connections that wait."""
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
            until = Deadline(self._greeting_seconds)
            host = str(peer[0]).removeprefix("::ffff:")
            try:
                connection = self.take_in(accepted, host, until)
            except OSError:  # the selector may have no room, or the connection ended
                accepted.close()
                self._make_room()
                return
            self._connections[connection] = None
            if len(self._connections) > self._room:
                self._make_room()

    def let_go(self, connection: _Stranger) -> None:
        """It has said who it is: it counts no longer, and belongs to the caller."""
        del self._connections[connection]

    def reject(self, connection: _Stranger, reason: str) -> None:
        """States the reason, and closes the connection."""
        self.state_reason(connection, reason)
        self.drop(connection)

    def drop(self, connection: _Stranger) -> None:
        """Closes the connection without a word."""
        del self._connections[connection]
        connection.close()

    def reject_overdue(self) -> None:
        """Ends those that had enough time to say who they are."""
        for connection in tuple(self._connections):  # in the order of their times
            if not connection.until.is_over:
                return
            self.reject(connection, "it did not say in time who it is")

    def seconds_to_overdue(self) -> float | None:
        """None if there are none."""
        first = next(iter(self._connections), None)
        return None if first is None else first.until.left

    def _make_room(self) -> None:
        """Closes the connection that has said nothing for the longest time."""
        oldest = next(iter(self._connections), None)
        if oldest is None:
            time.sleep(_NO_ROOM_SECONDS)
        else:
            self.reject(oldest, "there are too many connections that say nothing")


def _free_descriptors() -> float:
    """How many descriptors these connections may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return inf
    return max(limit - _FREE_DESCRIPTORS, limit // 2)
