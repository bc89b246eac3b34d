"""What an agent answers for the workers of its rails."""

from __future__ import annotations

from waywiser.cluster.connection.rail_requests import (
    AbortTest,
    CloseRails,
    MeasureRails,
    RailsClosed,
    ReadyRails,
)
from waywiser.cluster.node.agent import Handlers
from waywiser.cluster.node.rail_groups import RailError
from waywiser.cluster.node.rail_workers import RailWorkers


def rail_handlers(workers: RailWorkers) -> Handlers:
    """Handlers of an agent. `RailWorkers.close` belongs to the agent's end."""

    def abort(request: AbortTest) -> RailsClosed:
        workers.abort(request.test)
        return RailsClosed(workers.stuck)

    def close(request: CloseRails) -> RailsClosed:
        if request.kills:
            workers.kill()
            return RailsClosed(workers.stuck)
        try:
            workers.stop()
        except RailError:
            if not workers.stuck:
                raise
        return RailsClosed(workers.stuck)

    return {
        ReadyRails: workers.ready,
        MeasureRails: workers.measure,
        AbortTest: abort,
        CloseRails: close,
    }
