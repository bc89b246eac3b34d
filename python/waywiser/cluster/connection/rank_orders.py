"""What the ranks of a test measure, and the times of rails in what they found.

Ranks of a test are numbered node by node, in the order of the test's nodes, and rail by rail in a
node. A pair of nodes sends between equal rails, all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from waywiser.cluster.connection.message_size import MOST_BYTES
from waywiser.machine import DECLARED, Machine, PlacedRank
from waywiser.machine.ranks import STREAM, TEST, WINDOW
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.ranks.placement import place_ranks
from waywiser.profile.block import counted
from waywiser.stats import median, median_interval
from waywiser.words import (
    MOST_TOGETHER,
    ClusterNode,
    Memory,
    Order,
    Path,
    Place,
    Process,
    Rail,
    RailTime,
    Rule,
    Samples,
    Transfer,
    Value,
    WaywiserError,
    Workload,
)

RULE = Rule(minimum=6, minimum_seconds=0.03, soft_seconds=0.1, hard_seconds=0.4)
"""Nodes differ by more than the interval of one test: more tests show more than more samples."""

STREAM_OF_MPI = {TEST: STREAM, WINDOW: "4"}
"""Messages in one direction. So many in flight fill a link if they are large, and few enough to be
sent in little time."""

STREAM_OF_NCCL = {TEST: STREAM}


_BUFFERS = 16
"""The buffers of a rank have the size of a message, and are fewer than this."""


class RankOrderError(WaywiserError):
    """A test that no order can describe."""


class TestPart(Value, frozen=True):
    """One measurement of a test: all rails of one direction, or a collective."""

    __test__ = False  # it is no class of tests

    sender: str
    """The node that sends; empty for a collective."""
    workload: Workload


def rails_of(nodes: Sequence[ClusterNode]) -> int:
    """The rails that all the nodes have."""
    return min((len(node.rails) for node in nodes), default=0)


def memory_kind(nodes: Sequence[ClusterNode]) -> str:
    """The kind of memory of a test: that of GPUs if each rail that takes part has one."""
    rails = rails_of(nodes)
    on_gpus = all(rail.gpu >= 0 for node in nodes for rail in node.rails[:rails])
    places = ("gpu", "gpu") if on_gpus and rails else ("host", "numa")
    return DECLARED.reference_memory(*places)  # type: ignore[arg-type]


def pair_parts(
    one: ClusterNode,
    other: ClusterNode,
    size: int,
    executor: str,
    kind: str = "",
    settings: Mapping[str, str] = STREAM_OF_MPI,
) -> tuple[TestPart, TestPart]:
    """Both directions of a pair test, one message of ``size`` bytes on each rail. ``kind`` is that
    of the memory; empty for `memory_kind`. Raises `RankOrderError` for a node without rails."""
    rails = rails_of((one, other))
    if rails == 0:
        without = one.name if not one.rails else other.name
        raise RankOrderError(f"{without} has no rail")
    kind = kind or memory_kind((one, other))
    ends = [
        (Memory(kind, Place("rank", rail)), Memory(kind, Place("rank", rails + rail)))
        for rail in range(rails)
    ]
    there = [Path(first, second, executor) for first, second in ends]
    back = [path.opposite for path in there]
    return (
        TestPart(one.name, _together(there, size, settings)),
        TestPart(other.name, _together(back, size, settings)),
    )


def _together(paths: Sequence[Path], size: int, settings: Mapping[str, str]) -> Workload:
    return Workload(tuple(Transfer(path, size, dict(settings)) for path in paths))


def collective_part(
    nodes: Sequence[ClusterNode],
    size: int,
    executor: str,
    kind: str = "",
    settings: Mapping[str, str] | None = None,
) -> TestPart:
    """A collective or an exchange among all rails of all nodes; ``size`` is what each rank has.
    Raises `RankOrderError` for too many ranks."""
    ranks = rails_of(nodes) * len(nodes)
    if not 1 < ranks <= MOST_TOGETHER:
        raise RankOrderError(
            f"a collective of {ranks} ranks cannot be measured: of 2 to {MOST_TOGETHER} it can"
        )
    memory = Memory(kind or memory_kind(nodes), Place("rank", 0, last=ranks - 1))
    transfer = Transfer(Path(memory, memory, executor), size, dict(settings or {}))
    return TestPart("", Workload((transfer,)))


def most_memory(size: int) -> int:
    """The most bytes that a rank may use for buffers. A worker that may use much more than a
    message has makes its buffers larger, for other sizes: a rank measures only one."""
    return min(_BUFFERS * max(size, MOST_BYTES), ProbeOptions().memory_bytes)


def order_of(part: TestPart, seed: int, seconds: float) -> Order:
    """The order of a measurement, which may take that long."""
    return Order(
        workload=part.workload,
        block=0,
        process=Process(),
        rule=RULE,
        seed=seed,
        buffer_bytes=part.workload.bytes,
        expected_seconds=min(RULE.hard_seconds, seconds),
        timeout_seconds=seconds,
    )


def rail_times(part: TestPart, samples: Samples) -> tuple[RailTime, ...]:
    """The times of a measurement, rail by rail; one time, as of rail 0, of a collective."""
    found = []
    for rail in range(len(part.workload.transfers)):
        times = [_seconds(samples, n, rail) for n in counted(samples)]
        if not times:
            continue
        middle, interval = median(times), median_interval(times)
        low, high = (interval.low, interval.high) if interval else (min(times), max(times))
        found.append(RailTime(rail, part.sender, middle, low, high, len(times)))
    return tuple(found)


def sent_bytes(part: TestPart, samples: Samples) -> int:
    """What each rail sent in the samples of a pair's direction. Executions before and between
    samples send more. 0 of a collective."""
    if not part.sender:
        return 0
    return part.workload.size * sum(samples.repetitions or (1,) * len(samples))


def least_sent_bytes(part: TestPart) -> int:
    """The least that each rail sends in a pair's direction; 0 of a collective."""
    return part.workload.size * RULE.minimum if part.sender else 0


def _seconds(samples: Samples, number: int, rail: int) -> float:
    of_rails = samples.transfers[number] if samples.transfers else ()
    return of_rails[rail] if of_rails else samples.span[number]


def placed_rails(machine: Machine, rails: Sequence[Rail]) -> tuple[PlacedRank, ...]:
    """The CPUs and the GPU of each rail of this node. Raises
    `waywiser.measure.ranks.placement.PlacementError` for a machine without CPUs."""
    used = {rail.gpu for rail in rails}
    gpus = tuple(gpu for gpu in machine.gpus if gpu.index in used)
    placed = place_ranks(replace(machine, gpus=gpus), len(rails))
    by_gpu = {rank.gpu: rank for rank in placed if rank.gpu >= 0}
    return tuple(replace(by_gpu.get(rail.gpu, placed[n]), index=n) for n, rail in enumerate(rails))
