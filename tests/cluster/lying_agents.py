"""Agents that behave, but for one value of one kind of their messages, or for how they send it."""

from __future__ import annotations

import hashlib
import json
import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from waywiser.cluster.connection.coordinator_link import CoordinatorLink
from waywiser.cluster.connection.joining import AgentError, Joining
from waywiser.cluster.connection.protocol import (
    Answer,
    Answered,
    AskMachine,
    AskNode,
    BridgePath,
    CheckEnded,
    FilePart,
    FindBridge,
    FromAgent,
    JoinRequest,
    KillLaunch,
    KillResult,
    MachineNow,
    NodeFile,
    NodeNow,
    ReadPart,
    RequestFailed,
    RunCheck,
    encode,
)
from waywiser.cluster.connection.rail_requests import (
    AbortTest,
    BytesCounted,
    CloseRails,
    CountBytes,
    MeasureRails,
    RailsClosed,
    RailsMeasured,
    RailsReady,
    RankLoss,
    ReadyRails,
)
from waywiser.cluster.connection.token_proof import JoinExchange, agent_proof
from waywiser.cluster.node.agent import Agent, Handler
from waywiser.machine.machine import Gpu, Machine, NumaNode
from waywiser.measure.supervise.deadline import NEVER
from waywiser.words.cluster import ClusterNode, Interface, Rail, RailTime
from waywiser.words.records import Failure

TOKEN = "0123456789abcdef"

LIES: tuple[Any, ...] = (
    *(None, True, "", "x", [], {}, 0, -1, -(2**63), 2**31, 2**62 + 1, 2**64 - 1, 10**30, 10**400),
    *(0.5, -0.0, 5e-324, 1e308, math.inf, -math.inf, math.nan, "9" * 5000, "x" * 200_000),
    *("\x1b]0;title\x07\x1b[31m\n\u202e", "\ud800", "../../etc/passwd", "a\0b", "<script>", "n1"),
    *(["x"] * 20_000, [[]] * 3, {"x": 1}, {f"k{n}": n for n in range(5000)}, [0, 0], [None]),
)
"""Values of wrong types, and impossible, huge and odd ones of the right type."""

MANNERS = ("silent", "half", "endless", "twice", "another", "closed", "garbage", "deep")
"""How an answer does not come as it should."""


class Lie(NamedTuple):
    """What is wrong with the messages of one tag: a value at a path, or how they are sent."""

    tag: str
    path: tuple[str | int, ...] = ()
    value: Any = None
    manner: str = ""


def interface() -> Interface:
    return Interface("eth0", "ethernet", 1e9)


def honest_node(name: str) -> ClusterNode:
    return ClusterNode(
        name,
        rails=(Rail(0, 0, interface()), Rail(1, 1, interface())),
        versions={"nccl": "2.28.9", "waywiser": "0.1"},
        counters={"eth0 rx_errors": 3},
    )


def honest_machine() -> Machine:
    gpus = tuple(
        Gpu(number, f"GPU-{number}", "a GPU", f"0000:{number:02x}:00.0", 0) for number in (0, 1)
    )
    numa = (NumaNode(0, (0, 1), 2**30, 0),)
    return Machine("host", "x86_64", "a CPU", (), numa, (), gpus)


LOSS = RankLoss(Failure("crash", "a reason"), "own", 0, "sending")

EXAMPLES: tuple[tuple[Any, Answer], ...] = (
    (AskNode(), NodeNow(honest_node("n4"))),
    (AskMachine(), MachineNow(honest_machine())),
    (RunCheck(), CheckEnded(0, NodeFile("check.wwp", 10, "0" * 64), "printed")),
    (ReadPart("check.wwp"), FilePart(b"some bytes")),
    (KillLaunch("secret"), KillResult(2, (77,))),
    (FindBridge("0" * 64), BridgePath("/a/bridge.so")),
    (ReadyRails(2, makes_key=True), RailsReady("ab12", LOSS, "stuck")),
    (CloseRails(), RailsClosed("stuck")),
    (CountBytes(), BytesCounted({"eth0": 5})),
    (AskNode(), RequestFailed("a reason")),
)
"""A request and an answer of each kind with all of its fields; that of `MeasureRails` needs parts.
"""


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values in JSON, containers included."""
    yield path
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from paths_of(value[key], (*path, key))


def lied(message: Any, lie: Lie) -> Any:
    """The message, as JSON, with the value of the lie; as it is if it has no such path."""
    if not lie.path:
        return lie.value
    found = message
    with suppress(KeyError, IndexError, TypeError):
        for key in lie.path[:-1]:
            found = found[key]
        found[lie.path[-1]] = lie.value
    return message


def line_of(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def lying_line(message: FromAgent, lie: Lie) -> bytes:
    """The line of a message with the lie in its answer, or in the node that joins."""
    value = json.loads(encode(message))
    place = "answer" if isinstance(message, Answered) else "node"
    value[place] = lied(value[place], lie)
    return line_of(value)


def rail_answer(request: MeasureRails) -> RailsMeasured:
    """The times of nodes that are equally fast."""
    counted = tuple({"eth0": 800} for _ in request.parts) if request.watched else ()
    if request.first_rank:
        return RailsMeasured(setup_seconds=0.01, counted=counted)
    times = tuple(
        RailTime(rail, part.sender, seconds, 0.99 * seconds, 1.01 * seconds, 6)
        for part in request.parts
        for rail in range(request.rails)
        for seconds in [part.workload.size / 1e10]
    )
    return RailsMeasured(times, 0.01, tuple(800 for _ in request.parts), counted)


class LyingAgent(Agent):
    """Joins in a thread, and answers what a survey over NCCL requests; ``lie`` is None for an
    honest one."""

    def __init__(
        self, address: str, name: str, lie: Lie | None = None, profile: bytes = b""
    ) -> None:
        self.lie = lie
        self.lies = 0
        self.error: AgentError | None = None
        self._profile = profile
        node = honest_node(name)
        if lie is not None and lie.tag == "join":
            self.lies += 1
        joins = _lying_node(node, lie) if lie is not None and lie.tag == "join" else node
        super().__init__(Joining(address, TOKEN, joins), self._handlers_of(node))
        self.thread = threading.Thread(target=self._join, daemon=True)
        self.thread.start()

    def _join(self) -> None:
        try:
            self.run(60.0)
        except AgentError as error:
            self.error = error

    def _handlers_of(self, node: ClusterNode) -> Mapping[type, Handler]:
        sha256 = hashlib.sha256(self._profile).hexdigest()
        file = NodeFile("check.wwp", len(self._profile), sha256)
        return {
            AskNode: lambda _: NodeNow(node),
            AskMachine: lambda _: MachineNow(honest_machine()),
            RunCheck: lambda _: CheckEnded(0, file) if self._profile else CheckEnded(2, None, "no"),
            ReadPart: lambda request: FilePart(self._profile[request.offset : request.offset + 7]),
            ReadyRails: lambda request: RailsReady("ab12" if request.makes_key else ""),
            MeasureRails: rail_answer,
            AbortTest: lambda _: RailsClosed(),
            CloseRails: lambda _: RailsClosed(),
            CountBytes: lambda _: BytesCounted({"eth0": 800}),
        }

    def _answer(self, link: CoordinatorLink, message: FromAgent) -> None:
        lie = self.lie
        if lie is None or not isinstance(message, Answered) or lie.tag != tag_of(message.answer):
            super()._answer(link, message)
            return
        self.lies += 1
        with suppress(OSError):
            if lie.manner:
                _send(link, message, lie.manner)
            else:
                link.send(lying_line(message, lie), NEVER)


def _lying_node(node: ClusterNode, lie: Lie) -> ClusterNode:
    """The node with the lie, if it has the right type: `joining_line` sends the others."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(lied(msgspec.to_builtins(node), lie), ClusterNode)
    return node


def tag_of(answer: Answer) -> str:
    return str(type(answer).__struct_config__.tag)


def _send(link: CoordinatorLink, message: Answered, manner: str) -> None:
    line = encode(message)
    lines: dict[str, Callable[[], bytes]] = {
        "silent": lambda: b"",
        "half": lambda: line[: len(line) // 2],
        "endless": lambda: b"x" * (9 << 20),
        "twice": lambda: line + line,
        "another": lambda: encode(Answered(message.id + 1000, message.answer)),
        "closed": lambda: line[:10],
        "garbage": lambda: random.Random(1).randbytes(3000) + b"\n",
        "deep": lambda: b'{"v":2,"type":"answer","id":1,"answer":' + b"[" * 100_000 + b"\n",
    }
    link.send(lines[manner](), NEVER)
    if manner == "closed":
        link.close()


def joining_line(exchange: JoinExchange, lie: Lie) -> bytes:
    """The greeting of a node that states a lie about itself."""
    name, proof = exchange.name, agent_proof(TOKEN, exchange)
    return lying_line(JoinRequest(name, exchange.nonce, proof, honest_node(name)), lie)


def lies_about(value: Any, tag: str) -> list[Lie]:
    """All lies about a value and the values in it."""
    paths = paths_of(json.loads(msgspec.json.encode(value)))
    return [Lie(tag, path, lie) for path in paths for lie in LIES]
