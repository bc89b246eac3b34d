"""The lines between coordinator and agents."""

from __future__ import annotations

import random
from typing import get_args

import msgspec
import pytest

from damaged_lines import damaged
from waywiser.cluster.connection.protocol import (
    VERSION,
    Answer,
    Answered,
    BridgePath,
    CheckEnded,
    FilePart,
    JoinRequest,
    KillProcesses,
    Leave,
    NodeFile,
    PutBridge,
    Request,
    Requested,
    RequestFailed,
    RunningProcess,
    decode_any_version,
    decode_from_agent,
    decode_to_agent,
    encode,
)
from waywiser.measure.supervise.channel import ProtocolError
from waywiser.words.cluster import ClusterNode

TO_AGENT = (
    Requested(1, KillProcesses((RunningProcess(7, "123"), RunningProcess(8)))),
    Requested(2, PutBridge("0" * 64, bytes(range(256)))),
    Leave(),
)
FROM_AGENT = (
    JoinRequest("n1", "nonce", "proof", ClusterNode("n1", versions={"kernel": "6.8"})),
    Answered(1, CheckEnded(0, NodeFile("check.wwp", 5, "0" * 64))),
    Answered(2, FilePart(b"\0\n\xff")),
    Answered(3, BridgePath("/a")),
)


def test_messages_are_lines_that_mean_the_same() -> None:
    for to in TO_AGENT:
        line = encode(to)
        assert line.startswith(b'{"v":2,') and line.count(b"\n") == 1
        assert decode_to_agent(line.rstrip(b"\n")) == to
    for said in FROM_AGENT:
        assert decode_from_agent(encode(said).rstrip(b"\n")) == said


@pytest.mark.parametrize("union", [Request, Answer])
def test_tags_are_unique(union: object) -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(union)]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"v":2}',
        b'{"v":2,"type":"leave","more":1}',
        b'{"v":3,"type":"leave"}',
        b'{"type":"leave","v":2}',
        b'{"v":2,"type":"ask","id":1,"request":{"type":"none"}}',
        b'{"v":2,' + b"[" * 5000,
        b'{"v":2,\xff',
    ],
)
def test_lines_outside_the_protocol(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_to_agent(line)
    with pytest.raises(ProtocolError):
        decode_from_agent(line)


def test_damaged_lines_are_messages_or_outside_the_protocol() -> None:
    generator = random.Random(5)
    for message in (*TO_AGENT, *FROM_AGENT) * 300:
        line = damaged(encode(message), generator)
        decode_any_version(line)
        for decode in (decode_to_agent, decode_from_agent):
            try:
                decode(line)
            except ProtocolError as error:
                assert len(str(error)) < 1000


def test_text_of_an_agent_does_not_steer_a_terminal() -> None:
    said = Answered(1, RequestFailed("red \x1b[31m\nand more"))
    assert decode_from_agent(encode(said).rstrip(b"\n")) == Answered(
        1, RequestFailed("red [31m and more")
    )


def test_the_first_lines_of_another_version_are_understood() -> None:
    line = msgspec.json.encode({"v": 9, "type": "rejection", "reason": "why", "hint": [1]})
    found = decode_any_version(line)
    assert found is not None
    assert (found.v, found.type, found.reason, found.final) == (9, "rejection", "why", True)
    assert VERSION == 2
