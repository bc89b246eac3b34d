"""The token, and what its proofs cover."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.cluster.connection.token_proof import (
    SHORTEST_TOKEN,
    TOKEN_VARIABLE,
    JoinExchange,
    TokenError,
    agent_proof,
    coordinator_proof,
    divide_token,
    encode_parts,
    is_nonce,
    new_nonce,
    new_run_token,
    new_token,
    token_of,
    with_certificate,
)

TOKEN = "0123456789abcdef"

TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\0\x00a8"), max_size=12)
"""Surrogates and NUL included."""


def decoded(data: bytes) -> list[str]:
    """The parts of an encoding."""
    parts = []
    while data:
        length = int.from_bytes(data[:8], "big")
        parts.append(data[8 : 8 + length].decode("utf-8", "surrogatepass"))
        data = data[8 + length :]
    return parts


@given(st.lists(TEXT, max_size=6))
def test_an_encoding_is_that_of_one_list_of_parts(parts: list[str]) -> None:
    assert decoded(encode_parts(*parts)) == parts


@given(st.text(st.sampled_from("ab\0"), max_size=8), st.lists(st.integers(0, 8), max_size=4))
def test_the_same_text_divided_otherwise_has_another_encoding(text: str, cuts: list[int]) -> None:
    ends = sorted(min(cut, len(text)) for cut in cuts)
    parts = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    assert (encode_parts(*parts) == encode_parts(text)) == (parts == [text])


EXCHANGE = st.builds(JoinExchange, *[st.text(st.sampled_from("an1\0"), max_size=3)] * 4)


@given(EXCHANGE, EXCHANGE)
def test_a_proof_is_of_one_exchange_and_one_side(one: JoinExchange, other: JoinExchange) -> None:
    assert (agent_proof(TOKEN, one) == agent_proof(TOKEN, other)) == (one == other)
    assert agent_proof(TOKEN, one) != coordinator_proof(TOKEN, other)


@pytest.mark.parametrize("field", JoinExchange.__struct_fields__)
def test_a_part_cannot_be_taken_for_its_neighbour(field: str) -> None:
    """The parts joined by NUL would be the same text."""
    exchange = JoinExchange("c", "d", "n", "n1")
    longer = msgspec.structs.replace(exchange, **{field: f"{getattr(exchange, field)}\0x"})
    assert agent_proof(TOKEN, longer) != agent_proof(TOKEN, exchange)


def test_the_proof_of_a_token_with_a_certificate_is_that_of_the_token() -> None:
    exchange = JoinExchange("c", "d", "n", "n1")
    whole = with_certificate(TOKEN, "0" * 64)
    assert agent_proof(whole, exchange) == agent_proof(TOKEN, exchange)


@pytest.mark.parametrize(
    "text",
    [
        *("", "0" * 31, "0" * 33, "0" * 31 + "A", "0" * 31 + "g", "0" * 32 + "\n", "\u0663" * 32),
        *("0" * 32 + "\0", "\0" + "0" * 31, " " + "0" * 31, "0x" + "0" * 30),
    ],
)
def test_texts_that_are_no_nonce(text: str) -> None:
    assert not is_nonce(text)
    assert is_nonce(new_nonce())


@pytest.mark.parametrize(
    ("token", "secret", "certificate"),
    [
        (with_certificate(TOKEN, "a" * 64), TOKEN, "a" * 64),
        (with_certificate("a@sha256:b", "a" * 64), "a@sha256:b", "a" * 64),
        (TOKEN, TOKEN, ""),
        (f"{TOKEN}@sha256:", f"{TOKEN}@sha256:", ""),
        (f"{TOKEN}@sha256:{'A' * 64}", f"{TOKEN}@sha256:{'A' * 64}", ""),
        (f"{TOKEN}@sha256:{'a' * 63}", f"{TOKEN}@sha256:{'a' * 63}", ""),
    ],
)
def test_the_parts_of_a_token(token: str, secret: str, certificate: str) -> None:
    assert divide_token(token) == (secret, certificate)


def test_a_token_is_long_and_stays_out_of_messages() -> None:
    assert token_of({TOKEN_VARIABLE: f" {'x' * SHORTEST_TOKEN}\n"}) == "x" * SHORTEST_TOKEN
    for environment in (
        {},
        {TOKEN_VARIABLE: "secret"},
        {TOKEN_VARIABLE: with_certificate("secret", "a" * 64)},
    ):
        with pytest.raises(TokenError) as caught:
            token_of(environment)
        assert "secret" not in str(caught.value)
        assert TOKEN_VARIABLE in str(caught.value)
    assert len(new_token()) >= SHORTEST_TOKEN
    assert new_token() != new_token()


def test_a_run_takes_the_token_of_its_environment_or_a_new_one() -> None:
    assert new_run_token({TOKEN_VARIABLE: TOKEN}) == TOKEN
    assert new_run_token({}) != new_run_token({TOKEN_VARIABLE: ""})
    with pytest.raises(TokenError, match="fewer than"):
        new_run_token({TOKEN_VARIABLE: "short"})


def test_the_token_of_another_run_is_none_of_this_run() -> None:
    """The line that a survey prints for its agents has it."""
    with pytest.raises(TokenError, match="unset WAYWISER_CLUSTER_TOKEN"):
        new_run_token({TOKEN_VARIABLE: with_certificate(TOKEN, "a" * 64)})
