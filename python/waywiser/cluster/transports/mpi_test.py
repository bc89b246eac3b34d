"""One test by some ranks of an MPI launch, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from msgspec.structs import replace

from waywiser.cluster.connection.rank_orders import TestPart, order_of, rail_times
from waywiser.cluster.transports.mpi_world import MpiWorld
from waywiser.cluster.transports.watched_sender import WatchedSender
from waywiser.measure.probe.group import WorkerGroup
from waywiser.measure.supervise import Deadline
from waywiser.words import FailedTest, Failure, Memory, Path, Place, PlannedTest, RailTime, Value


class TestEnd(Value, frozen=True):
    """How a test ended: with times, or with a failure."""

    __test__ = False  # it is no class of tests

    elapsed_seconds: float
    times: tuple[RailTime, ...] = ()
    failed: FailedTest | None = None
    is_lost: bool = False
    """Its ranks are of no use any more."""


def run_test(
    world: MpiWorld,
    test: PlannedTest,
    parts: Sequence[TestPart],
    *,
    number: int,
    seed: int,
    seconds: float,
    watch: Callable[[TestPart], WatchedSender | None] = lambda part: None,
) -> TestEnd:
    """Measures the parts one after the other, in ``seconds`` together. ``watch`` is called before
    each, and returns what reads the counters of its sender, if they are to be read."""
    deadline = Deadline(seconds)
    numbers = world.ranks_of(test.nodes)
    times: list[RailTime] = []
    with closing(world.part(numbers, number)) as group:
        for part in parts:
            order = order_of(renumbered(part, numbers), seed, deadline.left)
            watched = watch(part)
            visit, _ = group.measure(order)
            if visit.failure:
                failed = _failed(world, group, visit.failure, part, test)
                return TestEnd(deadline.elapsed, failed=failed, is_lost=group.lost)
            found = rail_times(part, visit.samples)
            times += watched.with_crossed(found, visit.samples) if watched else found
    return TestEnd(deadline.elapsed, tuple(times))


def _failed(
    world: MpiWorld, group: WorkerGroup, failure: Failure, part: TestPart, test: PlannedTest
) -> FailedTest:
    """No node is to blame for wrong bytes: they may be of the sender, of the receiver, or of what
    is between. The reason names both."""
    if group.blamed is None:
        return FailedTest(failure)
    rank, doing = group.blamed.rank, group.blamed.doing
    if failure.kind != "wrong-bytes":
        return FailedTest(failure, world.node_of(rank), rank, doing)
    receiver = next((n for n in test.nodes if n != part.sender), "") if part.sender else ""
    where = f"{receiver} received from {part.sender}" if receiver else f"on {world.node_of(rank)}"
    return FailedTest(replace(failure, reason=f"{where}: {failure.reason}"), "", rank, doing)


def renumbered(part: TestPart, numbers: Sequence[int]) -> TestPart:
    """The part with the numbers that its ranks have in their launch, in its order. Those of all
    ranks together stay."""

    def of_memory(memory: Memory) -> Memory:
        if memory.place.is_several:
            return memory
        return replace(memory, place=Place("rank", numbers[memory.place.index]))

    transfers = []
    for transfer in part.workload.transfers:
        path = transfer.path
        ends = (of_memory(path.source), of_memory(path.destination))
        transfers.append(replace(transfer, path=Path(*ends, path.executor)))
    return replace(part, workload=replace(part.workload, transfers=tuple(transfers)))
