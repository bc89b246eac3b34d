"""Lines on the wire: version first, strict, cut and joined whatever the pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_orders import a_machine, an_order

from waywiser.measure.probe.protocol import (
    Abort,
    Connect,
    Connected,
    End,
    Failed,
    Hello,
    LeaveRanks,
    Locate,
    Located,
    MadeKey,
    MakeKey,
    MeasuredVisit,
    Observe,
    Observed,
    Prepare,
    Prepared,
    Progressed,
    RanksLeft,
    Ready,
    Result,
    Start,
    decode_from_worker,
    decode_to_worker,
    encode,
)
from waywiser.measure.supervise.channel import Lines, ProtocolError, excerpt
from waywiser.words.records import BlockLatencies, Failure, Observation, Process, Samples

TO_WORKER = [
    Hello(a_machine(gpus=2), Process(), 1 << 30, 10.0, 1, 2, True, (0, 1)),
    Locate(0, an_order().workload.transfers[0].path.source, (0, 1)),
    Observe(0, 1, an_order().workload.transfers),
    Prepare(1, an_order({"do": "it"}, {}), an_order().workload.transfers),
    Start(1),
    MakeKey(0),
    Connect(0, "c0ffee", 1, 4, 15.0),
    LeaveRanks(0),
    Abort(),
    End(),
]
FROM_WORKER = [
    Ready(7, "cuda", {"hwloc": "2.9"}, ("GPU-0",)),
    Located(0, (0,), (1,), (0.1,), (BlockLatencies("verified", ((1e-6,),), ((1e-7,),)),), 0.3),
    Observed(0, Observation("waited"), Observation(reason="…"), (Observation("ended"),), 0.2),
    MadeKey(0, "c0ffee"),
    Connected(0, 0.25),
    RanksLeft(0),
    Prepared(1),
    Progressed(1, 5, 1e-6),
    Result(1, MeasuredVisit("device", "budget", Samples(span=(1e-6,), transfers=((1e-6,),)))),
    Failed(1, Failure("sticky", "…"), fatal=True),
]


@pytest.mark.parametrize("message", TO_WORKER)
def test_what_a_supervisor_says_arrives(message: object) -> None:
    assert decode_to_worker(encode(message).rstrip(b"\n")) == message  # type: ignore[arg-type]


@pytest.mark.parametrize("message", FROM_WORKER)
def test_what_a_worker_says_arrives(message: object) -> None:
    assert decode_from_worker(encode(message).rstrip(b"\n")) == message  # type: ignore[arg-type]


@pytest.mark.parametrize("message", TO_WORKER + FROM_WORKER)
def test_a_line_is_json_with_version_and_type_first(message: object) -> None:
    line = encode(message)  # type: ignore[arg-type]
    assert line.count(b"\n") == 1
    assert list(json.loads(line))[:2] == ["v", "type"]
    assert json.loads(line)["v"] == 1


def test_an_interval_that_is_not_known_yet_is_null() -> None:
    assert json.loads(encode(Progressed(1, 3, 1e-6)))["low"] is None


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "outside the protocol"),
        (b"hello", "outside the protocol: 'hello'"),
        (b'{"v":2,"type":"stop"}', "protocol version 2, this is version 1"),
        (b'{"type":"stop","v":1}', "does not begin with its version"),
        (b'{"v":1,"type":"dance"}', "dance"),
        (b'{"v":1,"type":"start","id":1,"more":2}', "more"),
        (b'{"v":1,"type":"start","id":"1"}', "Expected `int`"),
        (b'{"v":1,"type":"sta', "truncated"),
        (b'{"v":1,' + b"[" * 5000, "outside the protocol"),
        (b"\xff\xfe", "outside the protocol"),
        (b'{"v":1,"type":"\xff"}', "outside the protocol"),
        (b'{"v":1,"type":"prepared","id":1}', "prepared"),
    ],
)
def test_what_is_not_in_the_protocol_is_one_clear_line(line: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint) as caught:
        decode_to_worker(line)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.binary())
def test_no_line_breaks_the_decoder(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_from_worker(line)


@given(st.lists(st.binary().map(lambda b: b.replace(b"\n", b""))), st.binary(), st.data())
def test_lines_come_out_as_they_went_in(
    lines: list[bytes], rest: bytes, data: st.DataObject
) -> None:
    rest = rest.replace(b"\n", b"")
    stream = b"".join(line + b"\n" for line in lines) + rest
    cuts = data.draw(st.lists(st.integers(0, len(stream))).map(sorted))
    reader, out = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += reader.feed(stream[start:end])
    assert out == lines
    assert reader.unfinished == rest


@pytest.mark.parametrize("data", [b"x" * 11, b"x" * 11 + b"\n", b"\n" + b"x" * 11])
def test_a_line_that_is_too_long_is_an_error(data: bytes) -> None:
    reader = Lines(maximum_bytes=10)
    with pytest.raises(ProtocolError, match="more than 10 bytes: 'xxx"):
        reader.feed(data)
    assert Lines(maximum_bytes=11).feed(data) in ([], [b"x" * 11], [b""])


def test_an_excerpt_can_be_printed() -> None:
    assert excerpt(b"\x1b[1m\xff" + b"a" * 200).isprintable()
