"""The port at which the ranks of a launch connect, until all have said who they are."""

from __future__ import annotations

import hmac
import selectors
import socket
from contextlib import ExitStack, suppress

from waywiser.measure.probe.listener import GREETING_SECONDS, Listener, listening_socket
from waywiser.measure.probe.protocol import Lines, ProtocolError
from waywiser.measure.ranks.greeting import MOST_LINE_BYTES, Greeting, from_line
from waywiser.measure.ranks.mpi_library import MpiError
from waywiser.words import Value
from waywiser.words.closeable import Closeable


class GreetedRank(Value, frozen=True):
    """A process that knows the secret of the launch."""

    connection: socket.socket
    greeting: Greeting
    more: bytes
    """What came with the greeting."""


class UnknownConnection(Closeable):
    """A connection without a greeting. Takes over the socket."""

    def __init__(
        self, connection: socket.socket, host: str, until: float, selector: selectors.BaseSelector
    ) -> None:
        self.socket = connection
        self.host = host
        self.until = until
        self._selector = selector
        self._lines = Lines(MOST_LINE_BYTES)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, self)

    def first_line(self) -> tuple[bytes, bytes] | None:
        """The first line, and what came with it; None while it is unfinished. Raises `OSError` and
        `waywiser.measure.probe.protocol.ProtocolError` if none comes any more."""
        with suppress(BlockingIOError, InterruptedError):
            data = self.socket.recv(MOST_LINE_BYTES)
            if not data:
                raise ConnectionResetError
            if lines := self._lines.feed(data):
                rest = (*lines[1:], self._lines.unfinished)
                return lines[0], b"\n".join(rest)
        return None

    def hand_over(self) -> socket.socket:
        """The socket, of which this object knows nothing any more."""
        self._selector.unregister(self.socket)
        self.socket.setblocking(True)
        return self.socket

    def close(self) -> None:
        if self.socket.fileno() >= 0:
            self._selector.unregister(self.socket)
            self.socket.close()


class RankListener(Listener[UnknownConnection]):
    """Listens from the start on, at ``host``: an empty one is all addresses of this machine, for
    ranks of other nodes. Raises `MpiError`."""

    def __init__(self, host: str, secret: str) -> None:
        self._secret = secret.encode()
        self.rejected = 0
        """Connections that were closed: they did not know the secret, or said nothing."""

        def listen(port: int) -> socket.socket:
            try:
                return listening_socket(host, port)
            except OSError as error:
                raise MpiError(
                    f"ranks cannot connect to this machine: {error}",
                    where=host or "all addresses",
                    remedy="see whether the limit of open files is reached: ulimit -n",
                ) from error

        with ExitStack() as stack:
            selector = stack.enter_context(selectors.DefaultSelector())
            super().__init__(selector, listen, 0, GREETING_SECONDS)
            stack.pop_all()

    def take_in(self, accepted: socket.socket, host: str, until: float) -> UnknownConnection:
        """Waits for its first line."""
        return UnknownConnection(accepted, host, until, self.selector)

    def state_reason(self, connection: UnknownConnection, reason: str) -> None:
        """Counts it. Nothing is said: a stranger need not know what listens here."""
        self.rejected += 1

    def greeted(self, seconds: float) -> tuple[list[GreetedRank], bool]:
        """The ranks that say who they are within this time, or by what comes first; and whether
        anything came."""
        events = self.selector.select(seconds)
        found = []
        for key, _ in events:
            if key.fileobj is self.listener:
                self.accept()
            elif key.data in self and (rank := self._heard(key.data)):
                found.append(rank)
        self.reject_overdue()
        return found, bool(events)

    def _heard(self, connection: UnknownConnection) -> GreetedRank | None:
        """The rank at the other end, if its line has come; drops who does not know the secret."""
        try:
            line = connection.first_line()
        except (OSError, ProtocolError):
            self.reject(connection, "it sent no line")
            return None
        if line is None:
            return None
        greeting = from_line(line[0], Greeting)
        given = greeting.secret.encode("utf-8", "surrogatepass") if greeting else b""
        if greeting is None or not hmac.compare_digest(given, self._secret):
            self.reject(connection, "it does not know the secret")
            return None
        self.let_go(connection)
        return GreetedRank(connection.hand_over(), greeting, line[1])

    def close(self) -> None:
        super().close()
        self.selector.close()
