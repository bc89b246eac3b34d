"""Who may join, decided over a line."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_agents import OWN_NONCE, TOKEN, greeting

from waywiser.cluster.connection.admission import Admission, AdmissionDecision
from waywiser.cluster.connection.protocol import JoinRequest, Rejection, Welcome, encode
from waywiser.cluster.connection.token_proof import (
    JoinExchange,
    agent_proof,
    coordinator_proof,
    is_proof,
)
from waywiser.words.cluster import ClusterNode, Rail

CERTIFICATE = "c" * 64
NONCE = "0" * 32


def decide(
    line: bytes, expected: tuple[str, ...] = (), connected: tuple[str, ...] = ()
) -> AdmissionDecision:
    return Admission(TOKEN, CERTIFICATE, expected).decide(NONCE, line.rstrip(b"\n"), connected)


def reason(decision: AdmissionDecision) -> str:
    assert isinstance(decision.answer, Rejection)
    return decision.answer.reason


def test_who_has_the_token_is_welcome_and_shown_that_the_coordinator_has_it() -> None:
    found = decide(greeting(CERTIFICATE, NONCE, "n1"))
    exchange = JoinExchange(CERTIFICATE, NONCE, OWN_NONCE, "n1")
    assert found.answer == Welcome("n1", coordinator_proof(TOKEN, exchange))
    assert found.node == ClusterNode("n1")
    assert not found.is_stranger


def test_what_an_agent_says_of_its_state_does_not_count() -> None:
    found = decide(greeting(CERTIFICATE, NONCE, "n1", node=ClusterNode("n7", "stuck", "why")))
    assert found.node == ClusterNode("n1")


@pytest.mark.parametrize(
    ("given_name", "expected", "name"),
    [
        ("n1", ("n1", "n2"), "n1"),
        ("n1", ("n1.a", "n2.a"), "n1.a"),
        ("n1.b", ("n1", "n2"), "n1"),
        ("n1.a", ("n1.a", "n1.b"), "n1.a"),
        ("n1", ("n1.a", "n1.b"), ""),
        ("n1.a", ("n1.b", "n2"), ""),
        ("n3", ("n1", "n2"), ""),
        ("10.0.0.2", ("10.0.0.1", "10.0.0.2"), "10.0.0.2"),
        ("10.0.0.3", ("10.0.0.1", "10.0.0.2"), ""),
        ("10.0.0.3", ("10.0.0.1", "n2"), ""),
    ],
)
def test_names_of_the_list(given_name: str, expected: tuple[str, ...], name: str) -> None:
    found = decide(greeting(CERTIFICATE, NONCE, given_name), expected)
    if name:
        assert found.node == ClusterNode(name)
    else:
        assert "not in the list" in reason(found)


NO_NAMES = [
    *("", ".", "..", "a/b", "n1\n", "-n", "n 1", "n1.", "n1..", "\0", "\0n1", "n1\0", "n\x001"),
    *("x" * 201, "x" * 60_000, "n\u0661", "\uff4e1", "n1\u200b", "\u202en1", "n\u0131", "n\x1b1"),
]


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("expected", [(), ("n1", "n2")])
def test_names_that_are_none(name: str, expected: tuple[str, ...]) -> None:
    found = decide(greeting(CERTIFICATE, NONCE, name), expected)
    assert "is no name of a node" in reason(found)
    assert found.node is None


@pytest.mark.parametrize("name", ["N1", "n01", "n1-", "n1_", "cafe\u0301"])
def test_a_name_is_that_of_the_list_or_none(name: str) -> None:
    assert decide(greeting(CERTIFICATE, NONCE, name), ("n1", "caf\u00e9")).node is None


@pytest.mark.parametrize(
    ("mark", "other"),
    [
        (b'"node":', b'"na\\u0000me":"n2","node":'),
        (b'"node":', b'"nam\\u200be":"n2","node":'),
        (b'"node":', b'"\\u000bname":"n2","proof":"x","node":'),
        (b'"name":"n1","nonce"', b'"n\\u0000ame":"n2","name":"n1","nonce"'),
    ],
)
def test_a_greeting_with_two_names_is_never_that_of_the_other(mark: bytes, other: bytes) -> None:
    """Characters that are removed from texts of agents are in the keys too."""
    line = greeting(CERTIFICATE, NONCE, "n1")
    assert mark in line
    found = decide(line.replace(mark, other, 1), ("n1", "n2"))
    assert found.node is None or found.node.name == "n1"


@pytest.mark.parametrize("nonce", ["", "5" * 31, "5" * 31 + "\0", "A" * 32, "\u0665" * 32])
def test_a_nonce_without_its_form_is_that_of_a_stranger(nonce: str) -> None:
    proof = agent_proof(TOKEN, JoinExchange(CERTIFICATE, NONCE, nonce, "n1"))
    assert decide(encode(JoinRequest("n1", nonce, proof, ClusterNode("n1")))).is_stranger


NAME_TEXT = st.sampled_from([*NO_NAMES, "n1", "n2", "N2", "n2.x"])


@given(NAME_TEXT, NAME_TEXT, st.text(st.sampled_from("05\0n"), max_size=40))
def test_the_proof_of_one_name_is_never_that_of_another(
    proved: str, name: str, between: str
) -> None:
    """Whatever of the proved text is written into other fields."""
    proof = agent_proof(TOKEN, JoinExchange(CERTIFICATE, NONCE, OWN_NONCE, proved))
    for said, nonce in ((name, OWN_NONCE), (f"{name}{between}{OWN_NONCE}\0{proved}", OWN_NONCE)):
        line = encode(JoinRequest(said, nonce, proof, ClusterNode(name)))
        found = decide(line, ("n1", "n2"))
        assert found.node is None or said == proved


def test_impossible_facts_are_rejected() -> None:
    found = decide(
        greeting(CERTIFICATE, NONCE, "n1", node=ClusterNode("n1", rails=(Rail(0), Rail(0))))
    )
    assert "impossible: one rail twice" in reason(found)


def test_a_connected_node_keeps_its_name() -> None:
    found = decide(greeting(CERTIFICATE, NONCE, "n1"), connected=("n1",))
    assert isinstance(found.answer, Rejection)
    assert not found.answer.final


def test_another_version_is_a_node_only_with_the_token_and_a_name_of_the_list() -> None:
    def newer(name: str, token: str = TOKEN) -> bytes:
        proof = agent_proof(token, JoinExchange(CERTIFICATE, NONCE, OWN_NONCE, name))
        said = {"v": 3, "type": "join", "name": name, "nonce": OWN_NONCE, "proof": proof, "new": {}}
        return msgspec.json.encode(said)

    found = decide(newer("n1"), ("n1.a",))
    assert found.node is not None
    assert (found.node.name, found.node.state) == ("n1.a", "excluded")
    assert decide(newer("n3"), ("n1",)).node is None
    assert decide(newer("../n"), ()).node is None
    assert decide(newer("n1", "another token 123")).is_stranger


def test_a_proof_is_of_one_side_one_token_and_one_exchange() -> None:
    exchange = JoinExchange("c", "d", "n", "n1")
    right = agent_proof(TOKEN, exchange)
    others = [
        coordinator_proof(TOKEN, exchange),
        agent_proof(TOKEN + "0", exchange),
        *(
            agent_proof(TOKEN, msgspec.structs.replace(exchange, **{field: "x"}))
            for field in exchange.__struct_fields__
        ),
        "",
        right.upper(),
        "\ud800",
    ]
    assert is_proof(right, right)
    assert not any(is_proof(other, right) for other in others)
    assert len({right, *others}) == len(others) + 1


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_line_without_the_token_is_that_of_a_stranger(line: bytes) -> None:
    assert decide(line).is_stranger


@given(st.data())
@settings(max_examples=300)
def test_a_damaged_greeting_is_decided_over(data: st.DataObject) -> None:
    """It is accepted only if it means the same."""
    whole = greeting(
        CERTIFICATE, NONCE, "n1", node=ClusterNode("n1", versions={"kernel": "6"})
    ).rstrip(b"\n")
    at = data.draw(st.integers(0, len(whole) - 1))
    line = data.draw(
        st.sampled_from(
            [
                whole[:at],
                whole[:at] + whole[at + 1 :],
                whole[:at]
                + bytes([whole[at] ^ 1 << data.draw(st.integers(0, 7))])
                + whole[at + 1 :],
                whole[:at] + data.draw(st.binary(min_size=1, max_size=3)) + whole[at:],
            ]
        )
    )
    found = decide(line, ("n1", "n2"))
    if isinstance(found.answer, Welcome):
        assert found.node is not None
        assert found.node.name == "n1"
