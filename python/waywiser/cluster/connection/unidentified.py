"""Listens at the port of the coordinator, and holds connections that are not identified yet."""

from __future__ import annotations

import selectors
import socket
import ssl
from collections.abc import Callable

from waywiser.cluster.connection.connection import AgentConnection
from waywiser.cluster.connection.protocol import Challenge, Rejection
from waywiser.measure.supervise import Deadline, Listen, Listener

_MOST_LOGGED = 1000

_SILENT = " (it sent nothing, as an agent of an older Waywiser does)"


class UnidentifiedConnections(Listener[AgentConnection]):
    """The thread of the connections uses it. The port is open from the start on."""

    most = 2048
    """Each may take 170 KB for its channel and a line of `JOIN_LINE_BYTES`: 350 MB together."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        listen: Listen,
        port: int,
        log: Callable[[str], None],
        greeting_seconds: float,
        tls: ssl.SSLContext,
    ) -> None:
        self._tls = tls
        self._log = log
        self._logged: set[tuple[str, str]] = set()
        super().__init__(selector, listen, port, greeting_seconds)

    def take_in(self, accepted: socket.socket, host: str, until: Deadline) -> AgentConnection:
        """Sends the challenge."""
        connection = AgentConnection(accepted, host, until, self.selector, self._tls)
        connection.say(Challenge(connection.nonce))
        return connection

    def state_reason(self, connection: AgentConnection, reason: str) -> None:
        """Sends and logs it. An agent may try again: others may have taken its place."""
        self._state(connection, Rejection(reason + _SILENT * connection.is_silent, final=False))

    def reject_with(self, connection: AgentConnection, rejection: Rejection) -> None:
        """Rejects a connection by this answer."""
        self._state(connection, rejection)
        self.drop(connection)

    def admit(self, connection: AgentConnection, name: str, serve: Callable[[float], None]) -> None:
        """It is known now; ``serve`` as in `AgentConnection.admit`."""
        self.let_go(connection)
        connection.admit(name, serve)

    def _state(self, connection: AgentConnection, rejection: Rejection) -> None:
        """Sends the rejection, and logs it once for each host and reason."""
        connection.say(rejection)
        connection.hang_up(socket.SHUT_WR)
        key = (connection.host, rejection.reason)
        if key not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(key)
            self._log(f"rejected a connection from {connection.host}: {rejection.reason}")
