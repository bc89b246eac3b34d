"""The token that a coordinator and its agents have in common, and the proofs that each has it.

Nobody sends the token: a proof is a keyed hash of both nonces, so that a greeting that was heard on
the network is of no use in another connection.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping

from waywiser.words import WaywiserError

TOKEN_VARIABLE = "WAYWISER_CLUSTER_TOKEN"
"""The environment of coordinator and agents: what they have in common and others do not know."""

SHORTEST_TOKEN = 16
"""Characters; a shorter one can be guessed."""


class TokenError(WaywiserError):
    """The token is missing or can be guessed."""


def new_nonce() -> str:
    return secrets.token_hex(16)


def agent_proof(token: str, challenge: str, nonce: str, name: str) -> str:
    """The proof of an agent that it has the token."""
    return _proof(token, "agent", challenge, nonce, name)


def coordinator_proof(token: str, challenge: str, nonce: str, name: str) -> str:
    """The proof of a coordinator, to the agent that gave that nonce and name."""
    return _proof(token, "coordinator", challenge, nonce, name)


def is_proof(given: str, right: str) -> bool:
    """Compares in a time that does not depend on what is equal."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())


def _proof(token: str, *parts: str) -> str:
    text = "\0".join(("waywiser-cluster", *parts)).encode("utf-8", "surrogatepass")
    return hmac.new(token.encode("utf-8", "surrogateescape"), text, hashlib.sha256).hexdigest()


def token_of(environment: Mapping[str, str] = os.environ) -> str:
    """The token of this process. Raises `TokenError`."""
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if len(token) < SHORTEST_TOKEN:
        what = f"has fewer than {SHORTEST_TOKEN} characters" if token else "is not set"
        raise TokenError(
            f"{TOKEN_VARIABLE} {what}",
            remedy=f"give coordinator and agents the same: export {TOKEN_VARIABLE}="
            "$(openssl rand -hex 16)",
        )
    return token


def new_token() -> str:
    """A token for agents that this process starts itself."""
    return secrets.token_hex(16)
