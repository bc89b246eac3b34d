"""Requests to the workers of a node's rails, and their answers.

A test takes two requests of each of its nodes: get ready, which also makes the key by which ranks
find each other; and measure.
"""

from __future__ import annotations

from typing import Literal

from waywiser.cluster.connection.rank_orders import TestPart
from waywiser.words import Failure, RailTime, Value

LossCause = Literal["own", "others"]
"""``own``: what happened in a process of this node, or that it did not leave the test when it was
asked to. ``others``: it waited for a rank of another node, a message failed or arrived with wrong
bytes, or it was stopped."""


class RankLoss(Value, frozen=True):
    """Why the ranks of one node did not finish a test."""

    failure: Failure
    cause: LossCause
    rail: int = -1
    """-1: it is not known which."""
    doing: str = ""


class ReadyRails(Value, frozen=True, tag="ready-rails", tag_field="type"):
    """Starts the workers of so many rails that do not run."""

    rails: int
    makes_key: bool = False
    """One node of a test makes the key of its ranks."""


class RailsReady(Value, frozen=True, tag="ready-rails", tag_field="type"):
    key: str = ""
    loss: RankLoss | None = None
    """Why they are not ready."""
    stuck: str = ""
    """As in `RailsMeasured`."""


class MeasureRails(Value, frozen=True, tag="measure-rails", tag_field="type"):
    """Lets the workers of the first rails join the others of a test, and measure its parts."""

    test: str
    """A name for `AbortTest`."""
    key: str
    first_rank: int
    """The number of this node's first rank among those of the test."""
    rails: int
    ranks: int
    """How many the test has in all."""
    parts: tuple[TestPart, ...]
    seed: int
    seconds: float
    """The longest that all of it may take."""
    watched: bool = False
    """Whether the byte counters of the interfaces are read around each part."""


class RailsMeasured(Value, frozen=True, tag="measure-rails", tag_field="type"):
    """What one node knows of a test. Times are known by the node of the first rank alone."""

    times: tuple[RailTime, ...] = ()
    setup_seconds: float = 0.0
    sent: tuple[int, ...] = ()
    """The bytes that each rail sent in the samples of each part; not known by other nodes than that
    of the first rank."""
    counted: tuple[dict[str, int], ...] = ()
    """The bytes that interfaces counted as sent around each part in which this node sends."""
    loss: RankLoss | None = None
    stuck: str = ""
    """A process that did not end although it was killed; empty for none."""


class AbortTest(Value, frozen=True, tag="abort-test", tag_field="type"):
    """Ends a test that runs or begins later; its own request is answered then."""

    test: str


class CloseRails(Value, frozen=True, tag="close-rails", tag_field="type"):
    """Ends the workers, so that others may use the GPUs. They are started again if needed."""

    kills: bool = False
    """Whether the test that runs is ended too; else the workers end after it."""


class RailsClosed(Value, frozen=True, tag="close-rails", tag_field="type"):
    """The answer to `AbortTest` and `CloseRails`."""

    stuck: str = ""


class CountBytes(Value, frozen=True, tag="count-bytes", tag_field="type"):
    """Reads the byte counters of the node's interfaces."""


class BytesCounted(Value, frozen=True, tag="count-bytes", tag_field="type"):
    sent: dict[str, int]
    """What each interface has sent since it is up, by its name."""


RailRequest = ReadyRails | MeasureRails | AbortTest | CloseRails | CountBytes
RailAnswer = RailsReady | RailsMeasured | RailsClosed | BytesCounted
