"""What an agent joins, and what it does not."""

from __future__ import annotations

import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from joined_agents import TOKEN, AgentThread, Bare
from other_servers import relay, secure_server, server

from damaged_lines import damaged
from waywiser.cluster.connection import joining as joining_module
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.connection.joining import AgentError, Joining, JoinRejected, join
from waywiser.cluster.connection.protocol import (
    Alive,
    Answer,
    AskNode,
    Begin,
    Challenge,
    JoinRequest,
    KillLaunch,
    Rejection,
    Requested,
    Welcome,
    decode_from_agent,
    encode,
)
from waywiser.cluster.connection.run_certificate import RunCertificate
from waywiser.cluster.connection.token_proof import (
    JoinExchange,
    agent_proof,
    coordinator_proof,
    new_nonce,
    with_certificate,
)
from waywiser.measure.supervise.deadline import Deadline
from waywiser.words.cluster import ClusterNode

ANY = "127.0.0.1:0"
LONG = 300.0


def join_once(address: str, token: str = TOKEN) -> AgentError | None:
    """The error of one try; None if the agent joins."""
    try:
        join(Joining(address, token, ClusterNode("n1")), Deadline(0.0), lambda line: None).close()
    except AgentError as error:
        return error
    return None


def greeted(channel: ssl.SSLSocket) -> JoinRequest:
    """The first line of an agent."""
    with channel.makefile("rb") as file:
        line = file.readline()
    if not line:
        raise ConnectionResetError
    found = decode_from_agent(line.rstrip(b"\n"))
    assert isinstance(found, JoinRequest)
    return found


SAID = [
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b'{"v":1,"type":"challenge","nonce":"%s"}\n' % (b"0" * 32),
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"\x16\x03\x03\x00\x05hello",
    b"\x16" * 2_000_000,
    b"x" * 2_000_000,
    b"",
]


@pytest.mark.parametrize("said", SAID, ids=range(len(SAID)))
def test_an_agent_joins_no_program_without_tls(said: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)

    with server(serve) as address:
        error = join_once(address)
    assert error is not None and error.exit_code == 1
    assert "the coordinator cannot be joined" in str(error)


@pytest.mark.parametrize("said", [line for line in SAID if not line.startswith(b"\x16")])
def test_an_agent_joins_no_other_program_with_tls(said: bytes) -> None:
    with secure_server(lambda channel: channel.sendall(said)) as address:
        error = join_once(address)
    assert error is not None and error.exit_code == 1


def test_nothing_of_an_agent_is_sent_without_tls() -> None:
    """An older coordinator, or one who pretends to be."""
    heard: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        connection.sendall(b'{"v":1,"type":"challenge","nonce":"%s"}\n' % (b"0" * 32))
        while data := connection.recv(1 << 16):
            heard.append(data)

    with server(serve) as address:
        error = join_once(address)
    assert "not TLS" in str(error) and "another version of Waywiser" in str(error)
    sent = b"".join(heard)
    assert sent.startswith(b"\x16\x03")
    assert b"join" not in sent and b"n1" not in sent


def test_older_versions_of_tls_are_spoken_by_neither() -> None:
    own = RunCertificate()
    own.context.minimum_version = ssl.TLSVersion.TLSv1_2
    own.context.maximum_version = ssl.TLSVersion.TLSv1_2
    failures: list[object] = []

    def serve(connection: socket.socket) -> None:
        try:
            own.context.wrap_socket(connection, server_side=True)
        except ssl.SSLError as error:
            failures.append(error)

    with server(serve) as address:
        assert join_once(address) is not None
    assert failures

    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        host, _, port = coordinator.address.rpartition(":")
        with socket.create_connection((host, int(port))) as plain, pytest.raises(ssl.SSLError):
            old.wrap_socket(plain)


@pytest.mark.parametrize(
    "challenge",
    [
        *("", "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "\n", "0" * 31 + "\0", "\u0660" * 32),
        *(f"{'0' * 32}\0{'1' * 32}\0n2.", "x" * 32),
    ],
)
def test_a_challenge_without_its_form_is_not_answered(challenge: str) -> None:
    heard: list[bytes] = []

    def serve(channel: ssl.SSLSocket) -> None:
        channel.sendall(encode(Challenge(challenge)))
        heard.append(channel.recv(1 << 16))

    with secure_server(serve) as address:
        assert join_once(address) is not None
    assert heard == [b""]


def test_a_program_that_speaks_a_byte_at_a_time_does_not_hold_an_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("waywiser.cluster.connection.joining._TRY_SECONDS", 0.3)

    def drip(connection: socket.socket) -> None:
        record = b"\x16\x03\x03\x40\x00" + bytes(16384)
        for byte in record * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.01)

    with server(drip) as address:
        assert "does not answer in time" in str(join_once(address))


Proof = Callable[[JoinRequest, JoinExchange], str]

WITHOUT_TOKEN: dict[str, Proof] = {
    "its own": lambda said, exchange: said.proof,
    "another token": lambda said, exchange: coordinator_proof("another token 12", exchange),
    "no proof": lambda said, exchange: "",
    "no text": lambda said, exchange: "\u0660" * 64,
}
WITH_TOKEN: dict[str, Proof] = {
    "of an agent": lambda said, exchange: agent_proof(TOKEN, exchange),
    "for another name": lambda said, exchange: coordinator_proof(
        TOKEN, JoinExchange(exchange.certificate, exchange.challenge, exchange.nonce, "n2")
    ),
    "for another certificate": lambda said, exchange: coordinator_proof(
        TOKEN, JoinExchange("0" * 64, exchange.challenge, exchange.nonce, exchange.name)
    ),
    "with both nonces exchanged": lambda said, exchange: coordinator_proof(
        TOKEN,
        JoinExchange(exchange.certificate, exchange.nonce, exchange.challenge, exchange.name),
    ),
}


@pytest.mark.parametrize("what", {**WITHOUT_TOKEN, **WITH_TOKEN})
def test_a_coordinator_without_the_right_proof_gives_no_orders(what: str) -> None:
    ran: list[object] = []
    own = RunCertificate()

    def serve(connection: socket.socket) -> None:
        with own.context.wrap_socket(connection, server_side=True) as channel:
            challenge = new_nonce()
            channel.sendall(encode(Challenge(challenge)))
            said = greeted(channel)
            exchange = JoinExchange(own.fingerprint, challenge, said.nonce, said.name)
            proof = {**WITHOUT_TOKEN, **WITH_TOKEN}[what](said, exchange)
            order = encode(Requested(1, KillLaunch("x")))
            channel.sendall(order + encode(Welcome("n1", proof)) + order + encode(Begin()) + order)
            channel.recv(1)

    def run(request: object) -> Answer:
        ran.append(request)
        return Alive()

    with server(serve) as address:
        error = AgentThread(address, "n1", {KillLaunch: run}, seconds=0.0).join()
    assert error is not None
    assert ran == []


def test_a_coordinator_with_the_token_and_its_certificate_is_joined() -> None:
    """What the tests above vary."""
    assert _answer_of(lambda line: line) is None


def _answer_of(change: Callable[[bytes], bytes]) -> AgentError | None:
    """Joins a coordinator that has the token, and whose lines are changed."""
    own = RunCertificate()

    def serve(connection: socket.socket) -> None:
        with own.context.wrap_socket(connection, server_side=True) as channel:
            challenge = new_nonce()
            channel.sendall(change(encode(Challenge(challenge))))
            said = greeted(channel)
            exchange = JoinExchange(own.fingerprint, challenge, said.nonce, said.name)
            channel.sendall(change(encode(Welcome("n1", coordinator_proof(TOKEN, exchange)))))
            channel.recv(1)

    with server(serve) as address:
        return join_once(address)


def test_damaged_lines_of_a_coordinator_are_errors_of_the_agent() -> None:
    generator = random.Random(11)
    for _ in range(60):
        _answer_of(lambda line: damaged(line.rstrip(b"\n"), generator) + b"\n")


@pytest.mark.parametrize("has_token", [True, False])
@pytest.mark.parametrize("has_fingerprint", [True, False])
@pytest.mark.parametrize("version", [2, 7])
def test_a_rejection_is_final_if_it_is_of_the_coordinator(
    has_token: bool, has_fingerprint: bool, version: int
) -> None:
    """A program in its place cannot end an agent for good; its reason and remedy are repeated."""
    own = RunCertificate()

    def serve(connection: socket.socket) -> None:
        with own.context.wrap_socket(connection, server_side=True) as channel:
            challenge = new_nonce()
            channel.sendall(encode(Challenge(challenge)))
            said = greeted(channel)
            exchange = JoinExchange(own.fingerprint, challenge, said.nonce, said.name)
            proof = coordinator_proof(TOKEN, exchange) if has_token else "0" * 64
            line = encode(Rejection("the moon is full", "wait", proof=proof))
            channel.sendall(line.replace(b'{"v":2', b'{"v":%d' % version))

    with server(serve) as address:
        token = with_certificate(TOKEN, own.fingerprint) if has_fingerprint else TOKEN
        error = join_once(address, token)
    assert isinstance(error, JoinRejected) == (has_token or has_fingerprint)
    assert "the moon is full (wait)" in str(error)


def test_an_agent_joins_after_a_rejection_of_another_program() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        log: list[str] = []
        tries: list[str] = []
        parse = joining_module.parse_address

        def serve(channel: ssl.SSLSocket) -> None:
            channel.sendall(encode(Challenge(new_nonce())))
            greeted(channel)
            channel.sendall(encode((Rejection("no"), Welcome("n1", "0" * 64))[len(tries) % 2]))
            tries.append("")

        with secure_server(serve) as address:
            others = [parse(address)] * 2

            def connect(_: object, timeout: float) -> socket.socket:
                where = others.pop() if others else parse(coordinator.address)
                return socket.create_connection(where, timeout)

            joining = Joining(address, TOKEN, ClusterNode("n1"))
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(
                    joining_module, "socket", SimpleNamespace(create_connection=connect)
                )
                join(joining, Deadline(LONG), log.append).close()
    assert ["no" in log[0], "does not have the token" in log[1]] == [True, True]


# Relays that have no token


class Relay:
    """Ends TLS on both sides, and lets a test decide what it passes on."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.to_agent: list[bytes] = []
        """What the agent gets after the greeting that it sent."""
        self.answers: list[bytes] = []
        """What the coordinator said to the greeting."""
        self._address = coordinator.address

    def serve(self, channel: ssl.SSLSocket) -> None:
        upstream = Bare(self._address)
        try:
            channel.sendall(upstream.line())
            with channel.makefile("rb") as file:
                upstream.say(file.readline())
                self.answers.append(upstream.line())
                channel.sendall(self.answers[-1])
                channel.sendall(encode(Requested(99, KillLaunch("x"))))
                file.readline()
        finally:
            upstream.close()


def test_a_relay_that_ends_tls_neither_joins_nor_gives_orders() -> None:
    ran: list[object] = []
    log: list[str] = []

    def run(request: object) -> Answer:
        ran.append(request)
        return Alive()

    with Coordinator(ANY, TOKEN, ["n1"], log=log.append) as coordinator:
        between = Relay(coordinator)
        with secure_server(between.serve) as address:
            error = AgentThread(address, "n1", {KillLaunch: run}, seconds=0.0).join()
        assert error is not None and not isinstance(error, JoinRejected)
        assert "without a proxy" in str(error)
        assert ran == []
        assert b'"rejection"' in between.answers[0]
        assert "another token, or for another connection" in log[0]
        assert not coordinator.is_connected("n1")


def test_an_agent_with_the_token_of_the_run_shows_a_relay_nothing() -> None:
    heard: list[bytes] = []

    def serve(channel: ssl.SSLSocket) -> None:
        channel.sendall(encode(Challenge(new_nonce())))
        heard.append(channel.recv(1 << 16))

    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator, secure_server(serve) as address:
        error = join_once(address, coordinator.token)
    assert isinstance(error, JoinRejected)
    assert "not that in the token" in str(error)
    assert heard == [b""]


def test_the_token_of_a_run_is_of_no_other_run() -> None:
    with (
        Coordinator(ANY, TOKEN, ["n1"]) as first,
        Coordinator(ANY, TOKEN, ["n1"]) as second,
    ):
        error = join_once(second.address, first.token)
        assert isinstance(error, JoinRejected)
        assert join_once(first.address, first.token) is None
        assert not second.is_connected("n1")


def test_who_has_the_token_of_the_run_and_no_key_is_no_coordinator() -> None:
    """A node of the run, for example: the fingerprint in the token is not that of its own."""
    own = RunCertificate()
    with (
        Coordinator(ANY, TOKEN, ["n1"]) as coordinator,
        secure_server(lambda channel: channel.sendall(encode(Challenge(new_nonce())))) as address,
    ):
        assert isinstance(join_once(address, coordinator.token), JoinRejected)
        assert isinstance(
            join_once(coordinator.address, with_certificate(TOKEN, own.fingerprint)), JoinRejected
        )


def test_greetings_of_two_sessions_cannot_be_exchanged() -> None:
    """Two agents connect to a relay, which says what each said in the other connection."""
    log: list[str] = []
    with Coordinator(ANY, TOKEN, ["n1", "n2"], log=log.append) as coordinator:
        upstream = [Bare(coordinator.address), Bare(coordinator.address)]
        challenges = [each.line() for each in upstream]
        said: list[bytes] = []
        both = threading.Barrier(2)

        def serve(channel: ssl.SSLSocket) -> None:
            channel.sendall(challenges[both.wait()])
            with channel.makefile("rb") as file:
                said.append(file.readline())

        with secure_server(serve) as address:
            agents = [AgentThread(address, name, seconds=0.0) for name in ("n1", "n2")]
            errors = [agent.join() for agent in agents]
        answers = []
        for each, line in zip(upstream, said, strict=True):
            each.say(line)
            answers.append(each.line())
            each.close()
        assert all(errors)
        assert all(b'"rejection"' in answer for answer in answers)
        assert not any(coordinator.is_connected(name) for name in ("n1", "n2"))


def test_a_relay_below_tls_reads_nothing_and_does_no_harm() -> None:
    heard: list[bytes] = []

    def keep(data: bytes) -> bytes:
        heard.append(data)
        return data

    with (
        Coordinator(ANY, TOKEN, ["node-of-the-run"]) as coordinator,
        relay(coordinator.address, keep, keep) as address,
    ):
        agent = AgentThread(address, "node-of-the-run")
        assert [node.state for node in coordinator.admit(LONG)] == ["joined"]
        coordinator.begin_tests()
        assert coordinator.ask({"node-of-the-run": AskNode()}, LONG)
        coordinator.close()
        assert agent.join() is None
    sent = b"".join(heard)
    for word in (b"node-of-the-run", b"challenge", b"join", b"proof", TOKEN.encode()):
        assert word not in sent


def test_what_was_heard_of_a_session_is_of_no_use_in_another() -> None:
    heard: list[bytes] = []

    def keep(data: bytes) -> bytes:
        heard.append(data)
        return data

    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        with relay(coordinator.address, keep) as address:
            assert join_once(address) is None
        while coordinator.is_connected("n1"):
            time.sleep(0.01)
        host, _, port = coordinator.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=LONG) as replay:
            replay.sendall(b"".join(heard))
            try:
                while replay.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
        assert not coordinator.is_connected("n1")


@pytest.mark.parametrize(
    "injected",
    [
        encode(Requested(1, KillLaunch("x"))),
        b"\x17\x03\x03\x00\x40" + bytes(64),
        b"\x15\x03\x03\x00\x02\x02\x00",
    ],
)
def test_an_order_outside_the_channel_is_not_done(injected: bytes) -> None:
    ran: list[object] = []
    armed = threading.Event()

    def run(request: object) -> Answer:
        ran.append(request)
        return Alive()

    def inject(data: bytes) -> bytes:
        return data + injected if armed.is_set() else data

    handlers = {KillLaunch: run, AskNode: lambda request: Alive()}
    with (
        Coordinator(ANY, TOKEN, ["n1"]) as coordinator,
        relay(coordinator.address, to_agent=inject) as address,
    ):
        agent = AgentThread(address, "n1", handlers)
        coordinator.admit(LONG)
        coordinator.begin_tests()
        coordinator.ask({"n1": AskNode()}, LONG)
        armed.set()
        coordinator.ask({"n1": AskNode()}, LONG)
        assert "the coordinator is gone" in str(agent.join())
    assert ran == []


def test_a_changed_byte_ends_the_connection_and_no_order_is_done() -> None:
    ran: list[object] = []
    armed = threading.Event()

    def run(request: object) -> Answer:
        ran.append(request)
        return Alive()

    def change(data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if armed.is_set() else data

    with (
        Coordinator(ANY, TOKEN, ["n1"]) as coordinator,
        relay(coordinator.address, to_agent=change) as address,
    ):
        agent = AgentThread(address, "n1", {KillLaunch: run, AskNode: lambda _: Alive()})
        coordinator.admit(LONG)
        coordinator.begin_tests()
        coordinator.ask({"n1": AskNode()}, LONG)
        armed.set()
        coordinator.ask({"n1": KillLaunch("x")}, LONG)
        assert "the coordinator is gone" in str(agent.join())
    assert ran == []
