"""The agent's end of the encrypted connection to the coordinator."""

from __future__ import annotations

import select
import socket
from contextlib import suppress

from waywiser.cluster.connection.protocol import JOIN_LINE_BYTES
from waywiser.cluster.connection.secure_channel import SecureChannel
from waywiser.measure.supervise import Deadline, LineChannel


class CoordinatorLink(LineChannel):
    """Takes over a connected socket. Each method raises `OSError`, which has `TimeoutError`,
    `waywiser.cluster.connection.secure_channel.ChannelError`, and
    `waywiser.measure.supervise.channel.ProtocolError` for a line that is too long."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._secure = SecureChannel()
        super().__init__(
            connection,
            longest_bytes=JOIN_LINE_BYTES,
            cipher=self._secure,
            peer="the coordinator",
        )

    def open(self, deadline: Deadline) -> str:
        """Shakes hands. Returns the fingerprint of the coordinator's certificate."""
        self.send(b"", deadline)
        while not self._secure.is_open:
            self.wait(select.POLLIN, deadline)
            try:
                with suppress(BlockingIOError):
                    self.receive()
            finally:
                self.send(b"", deadline)
        return self._secure.certificate
