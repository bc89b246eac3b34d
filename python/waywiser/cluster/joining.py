"""How an agent joins: it tries until the coordinator is up, and each shows the other its token."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from waywiser.cluster.connection import keep_alive
from waywiser.cluster.coordinator import parse_address
from waywiser.cluster.protocol import (
    JOIN_LINE_BYTES,
    JoinRequest,
    Rejection,
    Welcome,
    decode_any_version,
    decode_to_agent,
    encode,
)
from waywiser.cluster.token_proof import agent_proof, coordinator_proof, is_proof, new_nonce
from waywiser.measure.probe.protocol import ProtocolError
from waywiser.words import Value, WaywiserError
from waywiser.words.cluster import ClusterNode

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
"""Seconds between two tries; they double."""

_TRY_SECONDS = 30.0
"""Seconds for one try: a coordinator of 10,000 nodes may be busy."""


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


def join(joining: Joining, deadline: float, log: Callable[[str], None]) -> socket.socket:
    """The connection to the coordinator. ``deadline`` is on the clock of ``time.monotonic``.
    Raises `AgentError`."""
    address = parse_address(joining.where)
    wait, said, reason = _FIRST_WAIT, "", ""
    while True:
        try:
            return _join_once(joining, address, max(deadline - time.monotonic(), 1.0))
        except OSError as error:
            reason = error.strerror or str(error)
        except JoinRejected:
            raise
        except AgentError as error:
            reason = error.what
        if time.monotonic() + wait > deadline:
            raise AgentError(
                f"the coordinator cannot be joined: {reason}",
                where=joining.where,
                remedy="see whether the address is right and reached from here, and whether the "
                "run still waits; --join-seconds waits longer",
            )
        if reason != said:
            log(f"{joining.where}: {reason}; trying again")
            said = reason
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


def _join_once(joining: Joining, address: tuple[str, int], seconds: float) -> socket.socket:
    connection = socket.create_connection(address, timeout=min(seconds, _TRY_SECONDS))
    try:
        keep_alive(connection)
        challenge = decode_any_version(_line(connection))
        if challenge is None or challenge.type != "challenge" or not challenge.nonce:
            raise AgentError("the program at this address is not a coordinator")
        name, nonce = joining.node.name, new_nonce()
        proof = agent_proof(joining.token, challenge.nonce, nonce, name)
        connection.sendall(encode(JoinRequest(name, nonce, proof, joining.node)))
        right = coordinator_proof(joining.token, challenge.nonce, nonce, name)
        _require_welcome(_line(connection), right, joining.where)
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_welcome(line: bytes, proof: str, where: str) -> None:
    try:
        answer = decode_to_agent(line)
    except ProtocolError as error:
        other = decode_any_version(line)
        if other is None or other.type != "rejection":
            raise AgentError(f"the coordinator sent {error.what}") from error
        answer = Rejection(other.reason, other.remedy, other.final)
    if isinstance(answer, Rejection):
        kind = JoinRejected if answer.final else AgentError
        raise kind(
            f"the coordinator rejected this agent: {answer.reason}",
            where=where,
            remedy=answer.remedy,
        )
    if not isinstance(answer, Welcome) or not is_proof(answer.proof, proof):
        raise JoinRejected("the coordinator does not have the token of this agent", where=where)


def _line(connection: socket.socket) -> bytes:
    """The next line, and nothing of what follows it. Raises `AgentError`, `OSError`."""
    line = b""
    while len(line) <= JOIN_LINE_BYTES:
        ahead = connection.recv(JOIN_LINE_BYTES, socket.MSG_PEEK)
        if not ahead:
            raise AgentError("the coordinator closed the connection")
        line += connection.recv(ahead.find(b"\n") + 1 or len(ahead))
        if line.endswith(b"\n"):
            return line[:-1]
    raise AgentError("the program at this address is not a coordinator")
