"""Who may connect as a rank: processes that know the secret, beside any number that do not."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tree import ROOT
from waywiser.measure.probe.protocol import Greeting, encode
from waywiser.measure.ranks.rank_listener import GreetedRank, RankListener
from waywiser.measure.supervise import listener as listener_module

SECRET = "0123456789abcdef"
LONG = 120.0


@pytest.fixture
def listener() -> Iterator[RankListener]:
    with RankListener("127.0.0.1", SECRET) as own:
        yield own


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def wait_for(listener: RankListener, comes: Callable[[list[GreetedRank]], bool]) -> None:
    """Serves the port until what has been heard is enough."""
    found: list[GreetedRank] = []
    end = time.monotonic() + LONG
    while not comes(found):
        assert time.monotonic() < end
        found += listener.greeted(0.05)[0]
    for rank in found:
        rank.channel.close()


def test_a_greeting_may_come_in_pieces(listener: RankListener) -> None:
    line = encode(Greeting(SECRET, 7, rank=3))
    with connected(listener.port) as rank:
        for at in range(len(line) - 1):
            rank.sendall(line[at : at + 1])
            assert listener.greeted(0.0)[0] == []
        rank.sendall(line[-1:])
        wait_for(listener, lambda found: [each.greeting.rank for each in found] == [3])


def test_what_comes_with_a_greeting_is_kept(listener: RankListener) -> None:
    with connected(listener.port) as rank:
        rank.sendall(encode(Greeting(SECRET, 7)) + b"second\nthird")
        wait_for(listener, lambda found: [kept(each) for each in found] == [([b"second"], True)])


def kept(rank: GreetedRank) -> tuple[list[bytes], bool]:
    """What came with the greeting: whole lines, and whether there is a part of another."""
    return list(rank.channel.heard), rank.channel.is_torn


@given(said=st.binary(max_size=300))
@example(encode(Greeting("a guess", 1)))
@example(b'{"secret":"\\ud800","pid":1}\n')
@example(b'{"secret":1e999,"pid":1}\n')
@example(b'{"v":1,"type":"greeting","secret":"\\ud800","pid":1}\n')
@example(b'{"v":1,"type":"stop"}\n')
@example(b"[" * 60_000 + b"\n")
@example(b"\xff" * 70_000)
@example(b"\n\n")
def test_others_are_no_ranks_whatever_they_say(said: bytes) -> None:
    with RankListener("127.0.0.1", SECRET) as listener, connected(listener.port) as other:
        with suppress(OSError):  # it was closed meanwhile
            other.sendall(said)
            other.shutdown(socket.SHUT_WR)
        wait_for(listener, lambda found: bool(found) or listener.rejected == 1)
        assert listener.rejected == 1


def test_who_says_nothing_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waywiser.measure.ranks.rank_listener.GREETING_SECONDS", 0.1)
    with RankListener("127.0.0.1", SECRET) as listener, connected(listener.port) as other:
        wait_for(listener, lambda found: listener.rejected == 1)
        assert other.recv(1) == b""


def test_beyond_a_number_the_oldest_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RankListener, "most", 3)
    with RankListener("127.0.0.1", SECRET) as listener, ExitStack() as stack:
        others = [stack.enter_context(connected(listener.port)) for _ in range(5)]
        wait_for(listener, lambda found: listener.rejected == 2)
        assert [other.recv(1) for other in others[:2]] == [b"", b""]
        others[2].sendall(encode(Greeting(SECRET, 1)))
        wait_for(listener, bool)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.ENOMEM, errno.EINVAL])
@pytest.mark.parametrize("silent", [0, 2])
def test_a_connection_for_which_the_selector_has_no_room_is_closed(
    monkeypatch: pytest.MonkeyPatch, error: int, silent: int
) -> None:
    """``fs.epoll.max_user_watches`` is such a limit. The oldest connection makes room."""
    monkeypatch.setattr(listener_module, "_NO_ROOM_SECONDS", 0.0)
    with RankListener("127.0.0.1", SECRET) as listener, ExitStack() as stack:
        others = [stack.enter_context(connected(listener.port)) for _ in range(silent)]
        while len(listener.selector.get_map()) <= silent:
            listener.greeted(0.05)

        def full(*_: object) -> None:
            raise OSError(error, os.strerror(error))

        with monkeypatch.context() as patched:
            patched.setattr(listener.selector, "register", full)
            unwatched = stack.enter_context(connected(listener.port))
            end = time.monotonic() + LONG
            unwatched.setblocking(False)
            while not is_ended(unwatched):
                assert time.monotonic() < end
                listener.greeted(0.0)
        assert listener.rejected == min(silent, 1)
        assert [other.recv(1) for other in others[:1]] == [b""] * min(silent, 1)
        with connected(listener.port) as rank:
            rank.sendall(encode(Greeting(SECRET, 1)))
            wait_for(listener, bool)


def is_ended(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False


FEW_DESCRIPTORS = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from waywiser.measure.ranks.rank_listener import RankListener

with RankListener("127.0.0.1", {SECRET!r}) as listener:
    print(listener.port, flush=True)
    found = []
    while not found:
        found, _ = listener.greeted(1.0)
        open("/dev/null").close()
    print(found[0].greeting.pid, listener.rejected > 100)
"""


def test_more_silent_connections_than_descriptors_keep_no_rank_out() -> None:
    """Meanwhile the process can open files."""
    with subprocess.Popen(
        [sys.executable, "-c", FEW_DESCRIPTORS],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "python")},
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        silent = [connected(port) for _ in range(150)]
        with connected(port) as rank:
            rank.sendall(encode(Greeting(SECRET, 4711)))
            assert process.stdout.readline() == "4711 True\n"
        for connection in silent:
            connection.close()
    assert process.returncode == 0
