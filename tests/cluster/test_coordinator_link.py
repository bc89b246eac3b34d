"""The agent's end of the encrypted connection."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from waywiser.cluster.connection.coordinator_link import CoordinatorLink
from waywiser.cluster.connection.run_certificate import RunCertificate
from waywiser.measure.supervise.channel import ChannelClosed, ProtocolError
from waywiser.measure.supervise.deadline import NEVER, Deadline

LONG = 300.0


@contextmanager
def linked() -> Iterator[tuple[CoordinatorLink, ssl.SSLSocket]]:
    """A link, and the other end of its channel."""
    own = RunCertificate()
    ours, theirs = socket.socketpair()
    theirs.settimeout(LONG)
    found: list[str] = []
    with CoordinatorLink(ours) as link:
        opening = threading.Thread(target=lambda: found.append(link.open(Deadline(LONG))))
        opening.start()
        with own.context.wrap_socket(theirs, server_side=True) as channel:
            opening.join()
            assert found == [own.fingerprint]
            yield link, channel


def test_lines_come_one_by_one_and_the_rest_later() -> None:
    with linked() as (link, other):
        other.sendall(b"one\ntwo\nthr")
        deadline = Deadline(LONG)
        assert link.next(deadline) == b"one"
        assert link.next(deadline) == b"two"
        other.sendall(b"ee\nmore")
        assert link.next(deadline) == b"three"
        other.sendall(b" words")
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(ChannelClosed, match="the coordinator closed the connection"):
            link.next(deadline)
        assert link.is_torn


def test_a_line_that_is_too_long_is_an_error() -> None:
    with linked() as (link, other):
        other.sendall(b"x" * 100_000)
        with pytest.raises(ProtocolError, match="more than 65536 bytes"):
            link.next(Deadline(LONG))


def test_several_threads_send_while_one_receives() -> None:
    count, size, threads = 20, 40_000, 4
    with linked() as (link, other):
        heard = bytearray()

        def echo() -> None:
            """Sends as much as it hears, in lines, so that both directions are full."""
            while len(heard) < count * size * threads:
                data = other.recv(1 << 16)
                heard.extend(data)
                other.sendall(bytes(len(data) - 1) + b"\n")

        def send(letter: bytes) -> None:
            for _ in range(count):
                link.send(letter * (size - 1) + b"\n", NEVER)

        received = 0
        work = [threading.Thread(target=echo)]
        work += [threading.Thread(target=send, args=(bytes([97 + n]),)) for n in range(threads)]
        for thread in work:
            thread.start()
        while received < count * size * threads:
            received += len(link.next(NEVER)) + 1
        for thread in work:
            thread.join()
        lines = bytes(heard).split(b"\n")[:-1]
        assert len(lines) == count * threads
        assert all(set(line) == {line[0]} for line in lines)


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x03"])
def test_a_handshake_has_a_deadline(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs, CoordinatorLink(ours) as link:
        theirs.sendall(data)
        with pytest.raises(TimeoutError):
            link.open(Deadline(0.05))


def test_a_message_to_who_does_not_read_has_a_deadline() -> None:
    with linked() as (link, _), pytest.raises(TimeoutError):
        link.send(bytes(1 << 22), Deadline(0.05))


def test_a_closed_link_is_an_error_of_the_system() -> None:
    with linked() as (link, _):
        link.close()
        with pytest.raises(OSError):
            link.send(b"x", NEVER)
        with pytest.raises(OSError):
            link.receive()
