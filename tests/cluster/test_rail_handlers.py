"""What an agent answers for the workers of its rails."""

from __future__ import annotations

from collections.abc import Sequence

from profiles import machine
from waywiser.cluster.connection.rail_requests import (
    AbortTest,
    CloseRails,
    MeasureRails,
    RailsClosed,
    RailsReady,
    RankLoss,
    ReadyRails,
)
from waywiser.cluster.node.rail_group import RailGroup
from waywiser.cluster.node.rail_handlers import rail_handlers
from waywiser.cluster.node.rail_workers import RailWorkers
from waywiser.measure.probe.worker_process import ProbeError
from waywiser.words.cluster import Rail
from waywiser.words.records import Failure

STUCK = "worker 7 does not end, although killed"


class StuckGroup:
    """It gets ready, makes a key, and does not end."""

    lost = False
    usable = True
    blamed = None
    size = 0
    runs = True

    def get_ready(self, *_: object) -> Failure | None:
        return None

    def kill(self) -> None:
        pass

    def end(self, seconds: float) -> None:
        raise ProbeError(STUCK)

    def close(self) -> None:
        raise ProbeError(STUCK)


class WellGroup(StuckGroup):
    """It ends."""

    def end(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


def make(gpus: Sequence[int], number: int) -> RailGroup:
    return StuckGroup()  # type: ignore[return-value]


def test_what_does_not_end_is_stated_in_each_answer() -> None:
    handlers = rail_handlers(RailWorkers(machine, (Rail(0, gpu=0),), make))
    assert handlers[AbortTest](AbortTest("3 a b")) == RailsClosed()
    assert handlers[ReadyRails](ReadyRails(1)) == RailsReady()
    assert handlers[CloseRails](CloseRails()) == RailsClosed(STUCK)
    assert handlers[ReadyRails](ReadyRails(1)) == RailsReady(
        loss=RankLoss(Failure("timeout", STUCK), "own", doing="getting ready"), stuck=STUCK
    )
    found = handlers[MeasureRails](MeasureRails("3 a b", "ab", 0, 1, 2, (), 1, 1.0))
    assert found.stuck == ""  # it was stopped before it began
    assert handlers[MeasureRails](MeasureRails("4 a b", "ab", 0, 1, 2, (), 1, 1.0)).stuck == STUCK


def test_workers_that_are_killed_may_be_started_again() -> None:
    handlers = rail_handlers(RailWorkers(machine, (Rail(0, gpu=0),), lambda *_: WellGroup()))  # type: ignore[arg-type, return-value]
    assert handlers[ReadyRails](ReadyRails(1)) == RailsReady()
    assert handlers[CloseRails](CloseRails(kills=True)) == RailsClosed()
    assert handlers[ReadyRails](ReadyRails(1)) == RailsReady()
