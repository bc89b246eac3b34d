"""TLS between two ends without a socket."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.cluster.connection.run_certificate import RunCertificate
from waywiser.cluster.connection.secure_channel import ChannelError, SecureChannel

certificate = cache(RunCertificate)


def opened() -> tuple[SecureChannel, SecureChannel]:
    """A server and a client that have shaken hands."""
    server, client = SecureChannel(certificate().context), SecureChannel()
    server.receive(client.unsent())
    client.receive(server.unsent())
    server.receive(client.unsent())
    assert server.is_open and client.is_open
    return server, client


def test_both_ends_say_and_hear() -> None:
    server, client = opened()
    assert client.certificate == certificate().fingerprint
    assert client.receive(server.send(b"an order")) == b"an order"
    assert server.receive(client.send(b"an answer")) == b"an answer"
    assert client.send(b"") == b""


def test_what_is_said_before_the_channel_is_open_is_sent_then() -> None:
    server, client = SecureChannel(certificate().context), SecureChannel()
    assert server.send(b"early ") == b""
    server.send(b"words")
    server.receive(client.unsent())
    hello = server.unsent()
    assert b"early" not in hello
    client.receive(hello)
    server.receive(client.send(b""))
    assert client.receive(server.unsent()) == b"early words"


def test_no_connection_is_resumed() -> None:
    server, client = opened()
    assert server.unsent() == b""
    assert client._tls is not None and client._tls.session is not None
    assert not client._tls.session.has_ticket


@given(st.binary(max_size=70_000), st.data())
@settings(max_examples=20)
def test_bytes_arrive_whole_however_they_are_divided(data: bytes, draws: st.DataObject) -> None:
    server, client = opened()
    sent = server.send(data)
    found = b""
    while sent:
        size = draws.draw(st.integers(1, len(sent)))
        found += client.receive(sent[:size])
        sent = sent[size:]
    assert found == data


def test_a_handshake_may_come_a_byte_at_a_time() -> None:
    server, client = SecureChannel(certificate().context), SecureChannel()
    for _ in range(2):
        for end, other in ((server, client), (client, server)):
            for byte in other.unsent():
                end.receive(bytes([byte]))
    assert server.is_open and client.is_open


@given(st.binary(min_size=1, max_size=2000), st.booleans(), st.booleans())
def test_other_bytes_are_a_channel_error(data: bytes, is_server: bool, as_tls: bool) -> None:
    end = SecureChannel(certificate().context) if is_server else SecureChannel()
    if as_tls:
        data = b"\x16\x03\x03" + len(data).to_bytes(2, "big") + data
    try:
        assert end.receive(data) == b""
    except ChannelError as error:
        assert len(str(error)) < 200
    assert not end.is_open
    end.send(b"x")
    end.receive(b"\x16")


def test_a_changed_byte_is_never_heard() -> None:
    """It ends the channel, or no end hears anything, or it was one that means nothing."""
    generator = random.Random(3)
    for _ in range(60):
        server, client = SecureChannel(certificate().context), SecureChannel()
        changed = generator.randrange(4)
        heard = []
        with suppress(ChannelError):
            for number, (end, other) in enumerate([(server, client), (client, server)] * 2):
                data = bytearray(other.send(b"words") if number > 1 else other.unsent())
                if data and number == changed:
                    data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
                heard.append(end.receive(bytes(data)) if data else b"")
        assert set(heard) <= {b"", b"words"}
        assert changed < 2 or len(heard) <= changed or heard[changed] == b""


def test_a_long_handshake_is_not_kept() -> None:
    """The first message of a client may have 128 KiB, as TLS itself sees it."""
    server = SecureChannel(certificate().context)
    record = b"\x16\x03\x01\x04\x00" + bytes(1024)
    begin = b"\x16\x03\x01\x00\x04\x01\x01\x00\x00"
    assert server.receive(begin) == b""
    with pytest.raises(ChannelError, match="too long"):
        for _ in range(20):
            server.receive(record)


def test_an_end_that_failed_says_so_and_nothing_more() -> None:
    server, client = opened()
    order = bytearray(server.send(b"an order"))
    order[-1] ^= 1
    with pytest.raises(ChannelError, match="TLS does not allow"):
        client.receive(bytes(order))
    alert = client.unsent()
    assert alert
    assert client.send(b"words") == b""
    assert client.receive(server.send(b"a later order")) == b""
    with pytest.raises(ChannelError):
        server.receive(alert)


def test_a_replayed_record_is_no_order() -> None:
    server, client = opened()
    order = server.send(b"an order")
    assert client.receive(order) == b"an order"
    with pytest.raises(ChannelError):
        client.receive(order)


def test_records_of_another_channel_are_no_orders() -> None:
    _, client = opened()
    other, _ = opened()
    with pytest.raises(ChannelError):
        client.receive(other.send(b"an order"))


@pytest.mark.parametrize("program", ["HTTP", "SSH", "nothing"])
def test_a_plain_peer_is_named_as_such(program: str) -> None:
    said = {"HTTP": b"GET / HTTP/1.1\r\n\r\n", "SSH": b"SSH-2.0\r\n", "nothing": b"\0"}[program]
    for end in (SecureChannel(certificate().context), SecureChannel()):
        with pytest.raises(ChannelError, match="something that is not TLS"):
            end.receive(said)
