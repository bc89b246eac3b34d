"""The token that a coordinator and its agents have in common, and the proofs that each has it.

The token is never sent: a proof is a keyed hash of all that identifies the connection. One that was
heard is of no use in another connection, nor in a channel with another certificate.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping

from waywiser.words import Value, WaywiserError

TOKEN_VARIABLE = "WAYWISER_CLUSTER_TOKEN"
"""The environment of coordinator and agents: what they have in common and others do not know."""

SHORTEST_TOKEN = 16
"""Characters; a shorter one can be guessed."""

_WITH_CERTIFICATE = re.compile(r"(.*)@sha256:([0-9a-f]{64})", re.DOTALL)
_NONCE = re.compile(r"[0-9a-f]{32}")


class TokenError(WaywiserError):
    """The token is missing, can be guessed, or is that of another run."""


class JoinExchange(Value, frozen=True):
    """What both ends of a connection know when an agent joins. The proofs cover all of it."""

    certificate: str
    """The fingerprint of the coordinator's certificate; a relay that ends the channel has another
    one."""
    challenge: str
    """The nonce of the coordinator."""
    nonce: str
    """That of the agent."""
    name: str
    """As the agent gives it."""


def new_nonce() -> str:
    return secrets.token_hex(16)


def is_nonce(text: str) -> bool:
    """Whether the text has the form of a nonce."""
    return _NONCE.fullmatch(text) is not None


def agent_proof(token: str, exchange: JoinExchange) -> str:
    """The proof of an agent that it has the token."""
    return _proof(token, "agent", exchange)


def coordinator_proof(token: str, exchange: JoinExchange) -> str:
    """The proof of a coordinator that it has the token."""
    return _proof(token, "coordinator", exchange)


def is_proof(given: str, right: str) -> bool:
    """Compares in a time that does not depend on what is equal."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())


def encode_parts(*parts: str) -> bytes:
    """The parts with their lengths, so that no other parts have the same encoding."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(8, "big") + part for part in encoded)


def _proof(token: str, side: str, exchange: JoinExchange) -> str:
    secret, _ = divide_token(token)
    text = encode_parts(
        "waywiser-cluster",
        side,
        exchange.certificate,
        exchange.challenge,
        exchange.nonce,
        exchange.name,
    )
    return hmac.new(secret.encode("utf-8", "surrogateescape"), text, hashlib.sha256).hexdigest()


def token_of(environment: Mapping[str, str] = os.environ) -> str:
    """The token of this process. Raises `TokenError`."""
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if len(divide_token(token)[0]) < SHORTEST_TOKEN:
        what = f"has fewer than {SHORTEST_TOKEN} characters" if token else "is not set"
        raise TokenError(
            f"{TOKEN_VARIABLE} {what}",
            remedy=f"give coordinator and agents the same: export {TOKEN_VARIABLE}="
            "$(openssl rand -hex 16)",
        )
    return token


def new_run_token(environment: Mapping[str, str] = os.environ) -> str:
    """The token of a run that begins: that of this process, else a new one. Raises `TokenError`."""
    if not environment.get(TOKEN_VARIABLE):
        return new_token()
    token = token_of(environment)
    if divide_token(token)[1]:
        raise TokenError(
            f"{TOKEN_VARIABLE} is the token that another run has made for its agents",
            remedy=f"unset {TOKEN_VARIABLE}, or give coordinator and agents a new one: export "
            f"{TOKEN_VARIABLE}=$(openssl rand -hex 16)",
        )
    return token


def new_token() -> str:
    """A token for agents that this process starts itself."""
    return secrets.token_hex(16)


def with_certificate(token: str, certificate: str) -> str:
    """The token for agents of the run with this certificate: they join no other."""
    return f"{token}@sha256:{certificate}"


def divide_token(token: str) -> tuple[str, str]:
    """The token, and the fingerprint of the certificate of its run; empty if it has none."""
    found = _WITH_CERTIFICATE.fullmatch(token)
    return (found[1], found[2]) if found else (token, "")
