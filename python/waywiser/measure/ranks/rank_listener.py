"""The port at which the ranks of a launch connect, until all have said who they are."""

from __future__ import annotations

import hmac
import selectors
import socket
from contextlib import ExitStack
from typing import NamedTuple

from waywiser.measure.probe.protocol import Greeting, decode_from_worker
from waywiser.measure.ranks.mpi_library import MpiError
from waywiser.measure.supervise import (
    GREETING_SECONDS,
    Connection,
    Deadline,
    Listener,
    ProtocolError,
    listening_socket,
)
from waywiser.measure.supervise.channel import LONGEST_LINE_BYTES


class GreetedRank(NamedTuple):
    """A process that knows the secret of the launch."""

    channel: Connection
    greeting: Greeting


_GREETING_BYTES = 1 << 16
"""The longest line of who is not known."""


class RankListener(Listener[Connection]):
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

    def take_in(self, accepted: socket.socket, host: str, until: Deadline) -> Connection:
        """Waits for its first line."""
        return Connection(accepted, host, until, self.selector, _GREETING_BYTES)

    def state_reason(self, connection: Connection, reason: str) -> None:
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

    def _heard(self, connection: Connection) -> GreetedRank | None:
        """The rank at the other end, if its line has come; drops who does not know the secret."""
        try:
            connection.receive(_GREETING_BYTES)
            if not connection.heard:
                return None
            greeting = decode_from_worker(connection.heard.popleft())
        except BlockingIOError:
            return None
        except (OSError, ProtocolError):
            self.reject(connection, "it sent no greeting")
            return None
        secret = greeting.secret if isinstance(greeting, Greeting) else ""
        given = secret.encode("utf-8", "surrogatepass")
        if not isinstance(greeting, Greeting) or not hmac.compare_digest(given, self._secret):
            self.reject(connection, "it does not know the secret")
            return None
        self.let_go(connection)
        connection.hand_over()
        connection.allow_lines(LONGEST_LINE_BYTES)
        return GreetedRank(connection, greeting)

    def close(self) -> None:
        super().close()
        self.selector.close()
