"""What a rank says to the process that launched it before they speak a protocol of their own: two
lines of JSON.

    Greeting   with the secret of the launch, before MPI starts
    Joined     after MPI has started
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from waywiser.words import Value

VARIABLE = "WAYWISER_RANKS"
"""The environment of a rank: ``HOST:PORT:SECRET`` of the socket that it connects to."""

NODE_VARIABLE = "WAYWISER_NODE"
"""The environment of a rank: the name of its node, if that is not the name of its host."""

MOST_LINE_BYTES = 1 << 16

_Line = TypeVar("_Line", "Greeting", "Joined")


class Greeting(Value, frozen=True):
    """A process that the launcher has started."""

    secret: str
    pid: int
    rank: int = -1
    """Its number as the launcher states it in the environment; -1 if it does not."""
    host: str = ""
    """The node that it runs on, as it knows it."""


class Joined(Value, frozen=True):
    """A rank of the world that MPI made."""

    rank: int
    size: int
    library: str
    """What the library that it loaded calls itself."""
    threads: str
    cuda_stated: int
    """Whether the library states that it takes memory of CUDA: 1, 0, or -1 if it does not say."""
    shared: tuple[str, ...] = ()
    """Files in ``/dev/shm`` that the process has mapped."""


def to_line(line: Greeting | Joined) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def from_line(line: bytes, kind: type[_Line]) -> _Line | None:
    """None for a line that is none of this kind."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
