"""The agent's end of the encrypted connection."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from waywiser.cluster.coordinator_link import CoordinatorLink
from waywiser.cluster.run_certificate import RunCertificate

LONG = 300.0


@contextmanager
def linked() -> Iterator[tuple[CoordinatorLink, ssl.SSLSocket]]:
    """A link, and the other end of its channel."""
    own = RunCertificate()
    ours, theirs = socket.socketpair()
    theirs.settimeout(LONG)
    found: list[str] = []
    with CoordinatorLink(ours) as link:
        opening = threading.Thread(target=lambda: found.append(link.open(time.monotonic() + LONG)))
        opening.start()
        with own.context.wrap_socket(theirs, server_side=True) as channel:
            opening.join()
            assert found == [own.fingerprint]
            yield link, channel


def test_lines_come_one_by_one_and_the_rest_later() -> None:
    with linked() as (link, other):
        other.sendall(b"one\ntwo\nthr")
        deadline = time.monotonic() + LONG
        assert link.line(100, deadline) == b"one\n"
        assert link.line(100, deadline) == b"two\n"
        other.sendall(b"ee\nmore")
        assert link.line(100, deadline) == b"three\n"
        other.sendall(b" words")
        other.shutdown(socket.SHUT_WR)
        found = b""
        while data := link.receive():
            found += data
        assert found == b"more words"


def test_a_line_ends_with_the_connection_or_where_it_is_too_long() -> None:
    with linked() as (link, other):
        other.sendall(b"x" * 50_000)
        assert link.line(100, time.monotonic() + LONG).startswith(b"x" * 101)
        other.shutdown(socket.SHUT_WR)
        assert b"\n" not in link.line(1 << 20, time.monotonic() + LONG)


def test_several_threads_send_while_one_receives() -> None:
    count, size, threads = 20, 40_000, 4
    with linked() as (link, other):
        heard = bytearray()

        def echo() -> None:
            """Sends as much as it hears, so that both directions are full."""
            while len(heard) < count * size * threads:
                data = other.recv(1 << 16)
                heard.extend(data)
                other.sendall(bytes(len(data)))

        def send(letter: bytes) -> None:
            for _ in range(count):
                link.send(letter * (size - 1) + b"\n")

        received = 0
        work = [threading.Thread(target=echo)]
        work += [threading.Thread(target=send, args=(bytes([97 + n]),)) for n in range(threads)]
        for thread in work:
            thread.start()
        while received < count * size * threads:
            received += len(link.receive())
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
            link.open(time.monotonic() + 0.05)


def test_a_message_to_who_does_not_read_has_a_deadline() -> None:
    with linked() as (link, _), pytest.raises(TimeoutError):
        link.send(bytes(1 << 22), time.monotonic() + 0.05)


def test_a_closed_link_is_an_error_of_the_system() -> None:
    with linked() as (link, _):
        link.close()
        with pytest.raises(OSError):
            link.send(b"x")
        with pytest.raises(OSError):
            link.receive()
