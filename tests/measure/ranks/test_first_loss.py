"""The order in which connections end."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from waywiser.measure.ranks.first_loss import FirstLoss


def test_the_connection_that_ends_first_is_named_whatever_was_said_before() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        there = [socket.create_connection(listener.getsockname()) for _ in range(8)]
        here = [stack.enter_context(listener.accept()[0]) for _ in there]
        losses = stack.enter_context(FirstLoss(here))
        assert losses.first() is None
        for each in reversed(there):
            each.sendall(b"a word")
        assert losses.first() is None
        for number in (5, 0, 7, 1, 2, 3, 4, 6):
            there[number].close()
            if number == 5:
                here[5].recv(100)
                assert here[5].recv(1) == b""
        assert losses.first() == 5
