"""Whatever a node states, in whatever way: it alone is excluded, and what is stored can be read."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cluster.lying_agents import (
    EXAMPLES,
    MANNERS,
    TOKEN,
    Lie,
    honest_node,
    joining_line,
    lies_about,
    lying_line,
    rail_answer,
    tag_of,
)
from cluster.surveyed_lies import survey_with
from waywiser.cluster.connection.admission import Admission
from waywiser.cluster.connection.checked_answers import checked
from waywiser.cluster.connection.protocol import (
    Answer,
    Answered,
    NodeNow,
    Rejection,
    Request,
    RequestFailed,
    Welcome,
    decode_from_agent,
    encode,
)
from waywiser.cluster.connection.rail_requests import MeasureRails, RailsMeasured
from waywiser.cluster.connection.rank_orders import pair_parts
from waywiser.cluster.connection.token_proof import JoinExchange
from waywiser.measure.supervise.channel import ProtocolError
from waywiser.profile.cluster_folder import ClusterFolder, read_cluster
from waywiser.profile.cluster_validation import LONGEST_STORED_TEXT, require_valid_node
from waywiser.words.cluster import ClusterNode, ClusterPlan

SOME = 200
"""Lies of each message in one run of the tests; `benchmarks/cluster_lies.py` tries all."""

PARTS = pair_parts(honest_node("n1"), honest_node("n2"), 1 << 20, "nccl")
MEASURE = MeasureRails("test", "key", 0, 2, 4, PARTS, 1, 10.0, watched=True)


def drawn(lies: list[Lie]) -> list[Lie]:
    return random.Random(len(lies)).sample(lies, min(SOME, len(lies)))


def texts_of(value: Any) -> list[str]:
    """All texts of a struct that are reasons."""
    names = getattr(value, "__struct_fields__", ())
    own = [getattr(value, n) for n in names if n in ("reason", "printed", "stuck", "doing")]
    return own + [text for name in names for text in texts_of(getattr(value, name))]


@pytest.mark.parametrize(
    ("request_", "answer"),
    [*EXAMPLES, (MEASURE, rail_answer(MEASURE))],
    ids=lambda value: type(value).__name__,
)
def test_a_lie_in_an_answer_costs_its_request_or_is_possible(
    request_: Request, answer: Answer
) -> None:
    assert checked(request_, answer) == answer
    found = 0
    for lie in drawn(lies_about(answer, tag_of(answer))):
        try:
            message = decode_from_agent(lying_line(Answered(7, answer), lie))
        except ProtocolError as error:
            assert len(str(error)) < 2000
            found += 1
            continue
        assert isinstance(message, Answered)
        taken = checked(request_, message.answer)
        assert all(len(text) <= LONGEST_STORED_TEXT + 3 for text in texts_of(taken)), lie
        if isinstance(taken, RequestFailed):
            found += 1
        elif isinstance(taken, NodeNow):
            require_valid_node(replace(taken.node, counters={}))
        encode(Answered(7, taken))
    assert found


def test_an_answer_of_another_kind_is_none() -> None:
    every = [*EXAMPLES, (MEASURE, rail_answer(MEASURE))]
    for request, right in every:
        for _, answer in every:
            taken = checked(request, answer)
            if isinstance(right, RequestFailed):
                continue
            assert type(taken) in (type(right), RequestFailed)
            if type(answer) not in (type(right), RequestFailed):
                assert isinstance(taken, RequestFailed)
                assert "something else" in taken.reason


@pytest.mark.parametrize(
    "wrong",
    [
        {"times": ()},
        {"sent": ()},
        {"sent": (1, 2, 3)},
        {"counted": ({},)},
        {"sent": (-1, 2)},
        {"counted": ({"eth0": -1}, {})},
        {"setup_seconds": -1.0},
    ],
)
def test_a_measurement_that_lacks_a_part_is_none(wrong: Mapping[str, Any]) -> None:
    answer = rail_answer(MEASURE)
    assert isinstance(checked(MEASURE, answer), RailsMeasured)
    assert isinstance(checked(MEASURE, replace(answer, **wrong)), RequestFailed)


def test_who_joins_with_a_lie_is_excluded_or_can_be_stored(tmp_path: Path) -> None:
    exchange = JoinExchange("c" * 64, "0" * 32, "5" * 32, "n4")
    admission = Admission(TOKEN, exchange.certificate, ["n4", "n5"])
    stored: dict[str, ClusterNode] = {}
    outcomes = set()
    for number, lie in enumerate(drawn(lies_about(honest_node("n4"), "join"))):
        decision = admission.decide(exchange.challenge, joining_line(exchange, lie), {})
        if decision.is_stranger:
            assert not is_json(lie.value), "it has the token"
            continue
        assert decision.node is not None and decision.node.name == "n4"
        outcomes.add(decision.node.state)
        if isinstance(decision.answer, Rejection):
            assert decision.node.state == "excluded"
            assert decision.answer.reason and len(decision.answer.reason) < 2000
        else:
            assert isinstance(decision.answer, Welcome)
            assert decision.node.state == "joined" and not decision.node.new_errors
        if number % 20 == 0:  # it syncs files, which takes long on some machines
            stored[f"n{number}"] = replace(decision.node, name=f"n{number}")
    assert outcomes == {"joined", "excluded"}
    with ClusterFolder.create(tmp_path / "c", ClusterPlan("mpi", 1)) as folder:
        for node in stored.values():
            folder.add_node(node)
    found = read_cluster(tmp_path / "c")
    assert found.nodes == tuple(stored.values()) and not found.damaged


def is_json(value: Any) -> bool:
    return value != "\ud800" and not (isinstance(value, float) and not math.isfinite(value))


HARMLESS = (
    Lie("join", ("counters", "eth0 rx_errors"), 10**400),
    Lie(
        "measure-rails",
        ("loss",),
        {"failure": {"kind": "interrupted", "reason": ""}, "cause": "own"},
    ),
    Lie("measure-rails", manner="twice"),
)
"""The counter is left out, nobody is blamed for a test that was stopped, the second answer is late.
"""

SURVEYED = (
    Lie("join", ("rails", 0, "index"), 2**20 - 1),
    Lie("join", ("counters", "eth0 rx_errors"), 10**400),
    Lie("node", ("node", "counters", "eth0 rx_errors"), 2**64 - 1),
    Lie("node", ("node", "rails", 1, "index"), 65535),
    Lie("check", ("profile", "bytes"), 1 << 40),
    Lie("check", ("profile", "bytes"), -1),
    Lie("part", ("content",), ""),
    Lie("part", ("content",), "QUJD" * 90_000),
    Lie("ready-rails", ("key",), ""),
    Lie("ready-rails", (), {"type": "measure-rails"}),
    Lie("measure-rails", ("sent",), []),
    Lie("measure-rails", ("counted",), [{}]),
    Lie("measure-rails", ("times",), []),
    Lie("measure-rails", ("setup_seconds",), 1e300),
    Lie(
        "measure-rails",
        ("loss",),
        {"failure": {"kind": "interrupted", "reason": ""}, "cause": "own"},
    ),
    Lie("measure-rails", ("loss",), {"failure": {"kind": "skipped", "reason": ""}, "cause": "own"}),
    Lie("measure-rails", (), {"type": "ready-rails"}),
    *(Lie("measure-rails", manner=manner) for manner in MANNERS),
    *(Lie("check", manner=manner) for manner in ("silent", "half", "closed")),
)


@pytest.mark.parametrize("lie", SURVEYED, ids=lambda lie: f"{lie.tag} {lie.path or lie.manner}")
def test_a_survey_ends_and_names_the_liar(tmp_path: Path, lie: Lie) -> None:
    survey = survey_with(tmp_path / "c", lie)
    assert survey.error is None
    assert survey.wrong() == []
    assert survey.is_liar_named() or lie in HARMLESS


def test_a_survey_of_honest_nodes_blames_none(tmp_path: Path) -> None:
    survey = survey_with(tmp_path / "c", None)
    assert survey.error is None
    assert survey.wrong() == []
    assert survey.standings() == dict.fromkeys(("n1", "n2", "n3", "n4"), "ok")
