"""Which of many connections was closed first."""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence

from waywiser.words import Closeable


class FirstLoss(Closeable):
    """Watches connections for their ends. The kernel keeps the order in which they came, so that
    no wait for them is needed: the end of one rank ends the others of its launch within
    milliseconds."""

    def __init__(self, connections: Sequence[socket.socket]) -> None:
        self._numbers = {each.fileno(): number for number, each in enumerate(connections)}
        self._epoll = select.epoll()
        for descriptor in self._numbers:
            self._epoll.register(descriptor, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def first(self) -> int | None:
        """The number of the first connection that has ended, when it is asked for the first time;
        None if all are well."""
        ended = self._epoll.poll(0, 1)
        return self._numbers[ended[0][0]] if ended else None

    def close(self) -> None:
        self._epoll.close()
