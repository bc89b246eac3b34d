"""How an agent joins: it tries until the coordinator is up, and each shows the other that it has
the token, in a channel that no other can read or change."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from waywiser.cluster.connection.connection import keep_alive
from waywiser.cluster.connection.coordinator import parse_address
from waywiser.cluster.connection.coordinator_link import CoordinatorLink
from waywiser.cluster.connection.protocol import (
    LINE_BYTES,
    JoinRequest,
    Rejection,
    Welcome,
    decode_any_version,
    decode_to_agent,
    encode,
)
from waywiser.cluster.connection.secure_channel import ChannelError
from waywiser.cluster.connection.token_proof import (
    JoinExchange,
    agent_proof,
    coordinator_proof,
    divide_token,
    is_nonce,
    is_proof,
    new_nonce,
)
from waywiser.measure.supervise import Deadline, ProtocolError
from waywiser.words import ClusterNode, Value, WaywiserError

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
"""Seconds between two tries; they double."""

_TRY_SECONDS = 30.0
"""Seconds for one try: a coordinator of 10,000 nodes may be busy."""


_NO_COORDINATOR = "the program at this address is not a coordinator"


class AgentError(WaywiserError):
    """The agent could not join, or lost the coordinator."""

    exit_code = 1


class JoinRejected(AgentError):
    """The coordinator does not want this agent."""

    exit_code = 2


class Joining(Value, frozen=True):
    """What an agent joins with."""

    where: str
    """``HOST:PORT`` of the coordinator."""
    token: str
    node: ClusterNode


def join(joining: Joining, deadline: Deadline, log: Callable[[str], None]) -> CoordinatorLink:
    """The connection to the coordinator. Raises `AgentError`."""
    address = parse_address(joining.where)
    wait, said = _FIRST_WAIT, ""
    while True:
        try:
            seconds = min(max(deadline.left, 1.0), _TRY_SECONDS)
            return _join_once(joining, address, Deadline(seconds))
        except OSError as error:
            reason, remedy = error.strerror or str(error) or "the connection ended", ""
        except ChannelError as error:
            reason, remedy = f"the coordinator sent {error.what}", ""
        except ProtocolError:  # a line that is too long
            reason, remedy = _NO_COORDINATOR, ""
        except JoinRejected:
            raise
        except AgentError as error:
            reason, remedy = error.what, error.remedy
        if deadline.left < wait:
            raise AgentError(
                f"the coordinator cannot be joined: {reason}",
                where=joining.where,
                remedy=remedy
                or "see whether the address is right and reached from here, and whether the "
                "run still waits; --join-seconds waits longer",
            )
        if reason != said:
            hint = f" ({remedy})" if remedy else ""
            log(f"{joining.where}: {reason}{hint}; trying again")
            said = reason
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


def _join_once(joining: Joining, address: tuple[str, int], deadline: Deadline) -> CoordinatorLink:
    connection = socket.create_connection(address, timeout=max(deadline.left, 0.1))
    link = CoordinatorLink(connection)
    try:
        keep_alive(connection)
        certificate = _certificate(link, joining, deadline)
        challenge = decode_any_version(link.next(deadline))
        if challenge is None or challenge.type != "challenge" or not is_nonce(challenge.nonce):
            raise AgentError(_NO_COORDINATOR)
        name = joining.node.name
        exchange = JoinExchange(certificate, challenge.nonce, new_nonce(), name)
        proof = agent_proof(joining.token, exchange)
        link.send(encode(JoinRequest(name, exchange.nonce, proof, joining.node)), deadline)
        right = coordinator_proof(joining.token, exchange)
        _require_welcome(link.next(deadline), right, joining)
        link.allow_lines(LINE_BYTES)
    except BaseException:
        link.close()
        raise
    return link


def _certificate(link: CoordinatorLink, joining: Joining, deadline: Deadline) -> str:
    """The fingerprint of the certificate at the other end: that in the token, if it has one."""
    try:
        certificate = link.open(deadline)
    except ChannelError as error:
        raise AgentError(
            f"the program at this address sent {error.what}: it is no coordinator, or one of "
            "another version of Waywiser"
        ) from error
    expected = divide_token(joining.token)[1]
    if expected and certificate != expected:
        raise JoinRejected(
            "the certificate of the coordinator is not that in the token of this agent",
            where=joining.where,
            remedy="give the agent the token of this run, and connect it to the coordinator "
            "without a proxy that ends TLS",
        )
    return certificate


def _require_welcome(line: bytes, proof: str, joining: Joining) -> None:
    """Raises `AgentError`; `JoinRejected` only if the peer is the coordinator of the token, and not
    a program that an agent without a fingerprint has met in its place."""
    try:
        answer = decode_to_agent(line)
    except ProtocolError as error:
        other = decode_any_version(line)
        if other is None or other.type != "rejection":
            raise AgentError(f"the coordinator sent {error.what}") from error
        answer = Rejection(other.reason, other.remedy, other.final, other.proof)
    given = answer.proof if isinstance(answer, Welcome | Rejection) else ""
    is_coordinator = is_proof(given, proof)
    is_known = is_coordinator or bool(divide_token(joining.token)[1])
    if isinstance(answer, Rejection):
        kind = JoinRejected if answer.final and is_known else AgentError
        raise kind(
            f"the coordinator rejected this agent: {answer.reason}",
            where=joining.where,
            remedy=answer.remedy,
        )
    if not isinstance(answer, Welcome) or not is_coordinator:
        kind = JoinRejected if is_known else AgentError
        raise kind(
            "the coordinator does not have the token of this agent, or a program between them "
            "ends TLS",
            where=joining.where,
        )
