"""The order in which connections end."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from waywiser.measure.probe.environment import RANKS_VARIABLE
from waywiser.measure.ranks.first_loss import FirstLoss
from waywiser.measure.ranks.leftovers import name_of, remove_folders

RANK = """
import socket, sys, time
from waywiser.measure.ranks.rank import connect_back
channel = connect_back()
channel.receive()
others = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(8)]
time.sleep(600)
"""


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


def test_the_connection_of_a_killed_rank_ends_before_those_that_it_opened_later(
    tmp_path: Path,
) -> None:
    """By those its peers and its launcher notice the end, and end as well."""
    secret = secrets.token_hex(16)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": str(tmp_path),
            RANKS_VARIABLE: f"127.0.0.1:{port}:{secret}",
        }
        stack.callback(remove_folders, str(tmp_path / name_of(secret)))
        rank = subprocess.Popen([sys.executable, "-c", RANK, str(port)], env=environment)
        stack.callback(rank.wait)
        stack.callback(rank.kill)
        here = [stack.enter_context(listener.accept()[0])]
        here[0].sendall(b"x")
        here += [stack.enter_context(listener.accept()[0]) for _ in range(8)]
        losses = stack.enter_context(FirstLoss(here))
        assert losses.first() is None
        rank.kill()
        rank.wait()
        assert losses.first() == 0
