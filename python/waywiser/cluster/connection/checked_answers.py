"""What an agent answers, checked on arrival: the kind that the request has, and possible values.

An answer that is none costs its request: it becomes `RequestFailed`, whose reason says what is
wrong, and the node is named with it. The bounds are those of a cluster's folder
(`waywiser.profile.cluster_validation`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from waywiser.cluster.connection.protocol import (
    PART_BYTES,
    Alive,
    Answer,
    AskAlive,
    AskMachine,
    AskNode,
    BridgePath,
    CheckEnded,
    FilePart,
    FindBridge,
    KillLaunch,
    KillProcesses,
    KillResult,
    MachineNow,
    NodeNow,
    PutBridge,
    ReadPart,
    Request,
    RequestFailed,
    RunCheck,
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
from waywiser.profile import InvalidRecord, possible_counters, require_valid_node
from waywiser.profile.cluster_validation import (
    LONGEST_WORD,
    require_count,
    require_valid_times,
    require_words,
    short_text,
)
from waywiser.profile.validation import MOST_INDEX, require_valid
from waywiser.words import KILLED, MESSAGES

_LONGEST_PATH = 4096
"""Characters (PATH_MAX of Linux)."""

_LONGEST_KEY = 4096
"""Characters of the name of a communicator; that of NCCL has 256."""

_MOST_SURVIVORS = 10_000

_KINDS_OF_LOSS = frozenset(
    {"not-supported", "out-of-memory", KILLED, "sticky", "gpu", "wrong-bytes", "crash", "timeout"}
    | {MESSAGES, "protocol", "interrupted", "other-member"}
)
"""The kinds of a `waywiser.words.records.Failure` that a rank can have."""


def checked(request: Request, answer: Answer) -> Answer:
    """The answer, with its texts shortened; `RequestFailed` if it is no possible answer."""
    if isinstance(answer, RequestFailed):
        return RequestFailed(short_text(answer.reason))
    kind, check = _ANSWERS[type(request)]
    if not isinstance(answer, kind):
        name = str(type(answer).__struct_config__.tag)
        return RequestFailed(f"its agent answered something else: {name}")
    try:
        found: Answer = check(request, answer)
    except InvalidRecord as error:
        return RequestFailed(f"its agent gave an impossible answer: {error}")
    return found


def _node(request: AskNode, answer: NodeNow) -> NodeNow:
    counters = possible_counters(answer.node.counters)
    require_valid_node(replace(answer.node, counters=counters))
    return answer  # who uses the counters says which are left out


def _machine(request: AskMachine, answer: MachineNow) -> MachineNow:
    require_valid(answer.machine)
    return answer


def _alive(request: AskAlive, answer: Alive) -> Alive:
    require_words("requests", answer.doing)
    return answer


def _check(request: RunCheck, answer: CheckEnded) -> CheckEnded:
    if (profile := answer.profile) is not None:
        require_words("words", (profile.name, profile.sha256))
        require_count("bytes of a profile", profile.bytes)
    _require(abs(answer.exit_code) < MOST_INDEX, "an exit code")
    return replace(answer, printed=short_text(answer.printed))


def _part(request: ReadPart, answer: FilePart) -> FilePart:
    _require(len(answer.content) <= PART_BYTES, f"a part of {len(answer.content)} bytes")
    return answer


def _kill(request: KillProcesses | KillLaunch, answer: KillResult) -> KillResult:
    require_count("killed processes", answer.killed)
    _require(len(answer.survivors) <= _MOST_SURVIVORS, f"{len(answer.survivors)} processes")
    _require(all(0 < pid < 2**31 for pid in answer.survivors), "a number of a process")
    return answer


def _bridge(request: FindBridge | PutBridge, answer: BridgePath) -> BridgePath:
    _require(len(answer.path) <= _LONGEST_PATH, f"a path of {len(answer.path)} characters")
    return answer


def _ready(request: ReadyRails, answer: RailsReady) -> RailsReady:
    _require(len(answer.key) <= _LONGEST_KEY, f"a key of {len(answer.key)} characters")
    loss = _loss(answer.loss, request.rails)
    _require(bool(answer.key) or not request.makes_key or loss is not None, "no key")
    return replace(answer, loss=loss, stuck=short_text(answer.stuck))


def _measured(request: MeasureRails, answer: RailsMeasured) -> RailsMeasured:
    """Only the node of the first rank has times."""
    require_valid_times(answer.times, [part.sender for part in request.parts], request.rails)
    require_count("seconds", answer.setup_seconds)
    for sent in answer.sent:
        require_count("bytes sent", sent)
    for counted in answer.counted:
        require_words("interfaces", counted)
        for count in counted.values():
            require_count("bytes counted", count)
    loss = _loss(answer.loss, request.ranks)
    parts = len(request.parts)
    _require(len(answer.counted) in (0, parts), f"counters of {len(answer.counted)} parts")
    if loss is None and request.first_rank == 0:
        _require(bool(answer.times), "no time was measured")
        _require(len(answer.sent) == parts, f"what was sent in {len(answer.sent)} of {parts} parts")
    return replace(answer, loss=loss, stuck=short_text(answer.stuck))


def _closed(request: AbortTest | CloseRails, answer: RailsClosed) -> RailsClosed:
    return RailsClosed(short_text(answer.stuck))


def _counted(request: CountBytes, answer: BytesCounted) -> BytesCounted:
    require_words("interfaces", answer.sent)
    return BytesCounted(possible_counters(answer.sent))


def _loss(loss: RankLoss | None, rails: int) -> RankLoss | None:
    if loss is None:
        return None
    kind = loss.failure.kind
    _require(kind in _KINDS_OF_LOSS, f"{kind[:LONGEST_WORD]!r} is no kind of a failure")
    _require(-1 <= loss.rail < rails, "a loss of a rail that the test does not have")
    failure = replace(loss.failure, reason=short_text(loss.failure.reason))
    return replace(loss, failure=failure, doing=short_text(loss.doing))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidRecord(what)


_ANSWERS: dict[type, tuple[type, Callable[[Any, Any], Any]]] = {
    AskAlive: (Alive, _alive),
    AskNode: (NodeNow, _node),
    AskMachine: (MachineNow, _machine),
    RunCheck: (CheckEnded, _check),
    ReadPart: (FilePart, _part),
    KillProcesses: (KillResult, _kill),
    KillLaunch: (KillResult, _kill),
    FindBridge: (BridgePath, _bridge),
    PutBridge: (BridgePath, _bridge),
    ReadyRails: (RailsReady, _ready),
    MeasureRails: (RailsMeasured, _measured),
    AbortTest: (RailsClosed, _closed),
    CloseRails: (RailsClosed, _closed),
    CountBytes: (BytesCounted, _counted),
}
"""The kind of each request's answer, and its check, which raises `InvalidRecord`."""
