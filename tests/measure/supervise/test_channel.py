"""Lines over pipes and sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from waywiser.measure.supervise.channel import ChannelClosed, LineChannel, ProtocolError
from waywiser.measure.supervise.deadline import NEVER, Deadline


@contextmanager
def channels() -> Iterator[tuple[LineChannel, LineChannel]]:
    """Both ends of a conversation over a socket, which do not block."""
    sockets = socket.socketpair()
    for each in sockets:
        each.setblocking(False)
    with LineChannel(sockets[0], longest_bytes=10) as one, LineChannel(sockets[1]) as other:
        yield one, other


def test_lines_are_taken_one_by_one_or_all_at_once() -> None:
    with channels() as (one, other):
        other.send(b"a\nb\nc\nunfin", NEVER)
        assert one.next(NEVER) == b"a"
        assert one.taken() == [b"b", b"c"]
        assert one.taken() == [] and one.is_torn
        other.send(b"ished\n", NEVER)
        assert one.next(NEVER) == b"unfinished" and not one.is_torn


def test_a_line_may_be_longer_once_that_is_allowed() -> None:
    with channels() as (one, other):
        one.allow_lines(20)
        other.send(b"x" * 20 + b"\n", NEVER)
        assert one.next(NEVER) == b"x" * 20
        other.send(b"x" * 21, NEVER)
        with pytest.raises(ProtocolError, match="more than 20 bytes"):
            one.next(NEVER)


def test_who_does_not_speak_or_read_is_waited_for_until_the_deadline() -> None:
    with channels() as (one, other):
        with pytest.raises(TimeoutError, match="the other end does not answer in time"):
            one.next(Deadline(0.01))
        with pytest.raises(BlockingIOError):
            one.receive()
        with pytest.raises(TimeoutError):
            other.send(b"x" * (1 << 24), Deadline(0.01))
        assert other.is_pending


def test_what_need_not_arrive_is_not_offered_to_a_full_channel() -> None:
    with channels() as (one, other):
        one.allow_lines(1 << 25)
        other.offer(b"first\n")
        with pytest.raises(TimeoutError):
            other.send(b"x" * (1 << 24) + b"\n", Deadline(0.01))
        other.offer(b"second\n")
        heard: list[bytes] = []
        while len(heard) < 2:
            other.flush()
            one.receive()
            heard += one.taken()
        assert heard == [b"first", b"x" * (1 << 24)] and not one.is_torn
        with pytest.raises(BlockingIOError):
            one.receive()


@pytest.mark.parametrize("how", ["close", "hang up"])
def test_the_end_of_a_conversation_is_an_error_at_the_other_end(how: str) -> None:
    with channels() as (one, other):
        other.send(b"last\n", NEVER)
        other.close() if how == "close" else other.hang_up()
        assert one.next(NEVER) == b"last"
        with pytest.raises(ChannelClosed):
            one.next(NEVER)
        one.offer(b"no reader is left\n")
        with pytest.raises(ChannelClosed):
            one.send(b"nor this\n", NEVER)


def test_the_descriptors_of_pipes_are_closed_once() -> None:
    read, write = os.pipe()
    channel = LineChannel(read, write)
    channel.close()
    again = os.pipe()  # which may have the same numbers
    channel.close()
    for descriptor in again:
        os.close(descriptor)
    with pytest.raises(ChannelClosed):
        channel.next(NEVER)
