"""What the coordinator and the agents say to each other, in lines of
`waywiser.measure.supervise.channel`, and in TLS from the first byte on
(`waywiser.cluster.connection.secure_channel`).

    coordinator -> agent   challenge  a nonce
    agent -> coordinator   join       its name, the node, and a proof that it has the token
    coordinator -> agent   welcome    the same proof in return (or rejection)
    coordinator -> agent   ask        a request, with its id
    agent -> coordinator   answer     what came of it, with the same id
    coordinator -> agent   begin      tests follow: no node may join any more
    coordinator -> agent   leave      the run has ended

An agent answers requests in any order: each runs in a thread of its own. Neither side sends the
token (`waywiser.cluster.connection.token_proof`).

A new request is a class with a tag here, in `Request`; its answer one in `Answer`; and a handler in
the agent (`waywiser.cluster.node.agent.Handlers`).
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from waywiser.cluster.connection.rail_requests import RailAnswer, RailRequest
from waywiser.machine import Machine
from waywiser.measure.supervise import LineProtocol, RunningProcess
from waywiser.measure.supervise.channel import decode_any
from waywiser.words import ClusterNode, Value, single_line_json

VERSION = 2

JOIN_LINE_BYTES = 1 << 16
"""The longest line of who has not been admitted."""

LINE_BYTES = 8 << 20
"""The longest line after that: a collective of 10,000 rails is shorter."""

PART_BYTES = 1 << 18
"""The longest part of a file in one line."""


class Challenge(Value, frozen=True, tag="challenge", tag_field="type"):
    nonce: str


class JoinRequest(Value, frozen=True, tag="join", tag_field="type"):
    """``name``, ``nonce`` and ``proof`` are the same in every version of the protocol."""

    name: str
    nonce: str
    proof: str
    node: ClusterNode


class Welcome(Value, frozen=True, tag="welcome", tag_field="type"):
    name: str
    """As the coordinator knows the node: that of its list, if the agent gave it in full."""
    proof: str


class Rejection(Value, frozen=True, tag="rejection", tag_field="type"):
    """The agent may not join. It may try again unless the rejection is final."""

    reason: str
    remedy: str = ""
    final: bool = True
    proof: str = ""
    """As that of a `Welcome`, if the agent has shown that it has the token."""


class Begin(Value, frozen=True, tag="begin", tag_field="type"):
    """Tests follow: an agent that loses its connection may not join again."""


class Leave(Value, frozen=True, tag="leave", tag_field="type"):
    """The orderly end."""


class AskAlive(Value, frozen=True, tag="alive", tag_field="type"):
    """Asks what the agent does. It is answered by another thread than those that work."""


class AskNode(Value, frozen=True, tag="node", tag_field="type"):
    """Asks for the node again, with its counters of now."""


class AskMachine(Value, frozen=True, tag="machine", tag_field="type"):
    """Asks for the machine of the node, as a survey of it would find it."""


class RunCheck(Value, frozen=True, tag="check", tag_field="type"):
    """Surveys the node by itself, without messages between nodes. ``preset``, ``gpus`` and ``only``
    are as those options of ``waywiser survey``."""

    preset: str = "check"
    gpus: str = "all"
    only: tuple[str, ...] = ()
    seconds: float = 600.0
    """Waiting for another survey of the same host included."""


class ReadPart(Value, frozen=True, tag="read", tag_field="type"):
    """Asks for a part of a `NodeFile`."""

    name: str
    offset: int = 0


class KillProcesses(Value, frozen=True, tag="kill", tag_field="type"):
    processes: tuple[RunningProcess, ...]
    seconds: float = 15.0
    """How long to wait until they are gone."""


class KillLaunch(Value, frozen=True, tag="kill-launch", tag_field="type"):
    """Kills every process of this user that a launch of ranks has started on the node."""

    secret: str
    """That of the launch; it is in the environment of its ranks."""
    seconds: float = 15.0


class FindBridge(Value, frozen=True, tag="find-bridge", tag_field="type"):
    """Asks for the bridge with this SHA-256: at this path, if the nodes share files, or stored by
    an earlier `PutBridge`."""

    sha256: str
    path: str = ""


class PutBridge(Value, frozen=True, tag="put-bridge", tag_field="type"):
    """Stores the compiled bridge to the MPI library."""

    sha256: str
    content: bytes


Request = (
    AskAlive
    | AskNode
    | AskMachine
    | RunCheck
    | ReadPart
    | KillProcesses
    | KillLaunch
    | FindBridge
    | PutBridge
    | RailRequest
)


class Alive(Value, frozen=True, tag="alive", tag_field="type"):
    """The requests that are being worked on, by their tags."""

    doing: tuple[str, ...] = ()


class NodeNow(Value, frozen=True, tag="node", tag_field="type"):
    node: ClusterNode


class MachineNow(Value, frozen=True, tag="machine", tag_field="type"):
    machine: Machine


class NodeFile(Value, frozen=True):
    """A file of a node that `ReadPart` reads (`waywiser.cluster.node.node_files`)."""

    name: str
    bytes: int
    sha256: str


class CheckEnded(Value, frozen=True, tag="check", tag_field="type"):
    exit_code: int
    profile: NodeFile | None = None
    """None if there is none."""
    printed: str = ""
    """Its last lines, if it failed."""
    is_late: bool = False
    """Whether it took too long, and was killed."""


class FilePart(Value, frozen=True, tag="part", tag_field="type"):
    """No bytes: the end of the file."""

    content: bytes


class KillResult(Value, frozen=True, tag="kill", tag_field="type"):
    killed: int = 0
    survivors: tuple[int, ...] = ()
    """Process ids of those that did not end in time."""


class BridgePath(Value, frozen=True, tag="bridge", tag_field="type"):
    """Where the bridge is on the node; empty if it is not there."""

    path: str


class RequestFailed(Value, frozen=True, tag="failed", tag_field="type"):
    """The request came to nothing."""

    reason: str


Answer = (
    Alive
    | NodeNow
    | MachineNow
    | CheckEnded
    | FilePart
    | KillResult
    | BridgePath
    | RequestFailed
    | RailAnswer
)


class Requested(Value, frozen=True, tag="ask", tag_field="type"):
    id: int
    request: Request


class Answered(Value, frozen=True, tag="answer", tag_field="type"):
    id: int
    answer: Answer


ToAgent = Challenge | Welcome | Rejection | Requested | Begin | Leave
FromAgent = JoinRequest | Answered

_PROTOCOL: LineProtocol[ToAgent, FromAgent] = LineProtocol(VERSION, ToAgent, FromAgent)
encode, decode_to_agent = _PROTOCOL.encode, _PROTOCOL.decode_said


def decode_from_agent(line: bytes) -> FromAgent:
    """What an agent said, with each text in one line that does not steer a terminal. Raises
    `waywiser.measure.supervise.channel.ProtocolError`."""
    with suppress(UnicodeDecodeError):
        line = single_line_json(line.decode()).encode()
    return _PROTOCOL.decode_heard(line)


class AnyVersion(msgspec.Struct, frozen=True):
    """What lines of the first exchange have in every version of the protocol."""

    v: int
    type: str = ""
    nonce: str = ""
    name: str = ""
    proof: str = ""
    reason: str = ""
    remedy: str = ""
    final: bool = True


def decode_any_version(line: bytes) -> AnyVersion | None:
    """The common fields of a line of another version; None for a line that has none."""
    return decode_any(line, AnyVersion)
