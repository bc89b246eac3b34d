"""What ranks of a test measure, and the times of rails."""

from __future__ import annotations

from msgspec.structs import replace

from waywiser.cluster.connection.rank_orders import (
    STREAM_OF_NCCL,
    collective_part,
    least_sent_bytes,
    memory_kind,
    most_memory,
    order_of,
    pair_parts,
    placed_rails,
    rail_times,
    sent_bytes,
)
from waywiser.machine.machine import Gpu, Machine, NumaNode
from waywiser.words.cluster import ClusterNode, Rail
from waywiser.words.records import VOID, Samples

HOST = (Rail(0), Rail(1))
ON_GPUS = (Rail(0, gpu=0), Rail(1, gpu=3))

MACHINE = Machine(
    hostname="n",
    architecture="x86_64",
    cpu_model="",
    packages=(),
    numa=(NumaNode(0, (0, 1), 1 << 30, 0), NumaNode(1, (2, 3), 1 << 30, 0)),
    caches=(),
    gpus=tuple(Gpu(n, f"GPU-{n}", "a", f"0:{n}", numa=n // 2) for n in range(4)),
)


def node(name: str, rails: tuple[Rail, ...] = HOST) -> ClusterNode:
    return ClusterNode(name, rails=rails)


def test_a_pair_sends_on_all_rails_in_one_direction_after_the_other() -> None:
    there, back = pair_parts(node("a"), node("b"), 1 << 20, "mpi")
    assert there.sender == "a"
    assert str(there.workload) == (
        "pageable@rank:0 -> pageable@rank:2 by mpi[test=bw,window=4] of 1048576; "
        "pageable@rank:1 -> pageable@rank:3 by mpi[test=bw,window=4] of 1048576"
    )
    assert back.sender == "b"
    assert [str(t.path) for t in back.workload.transfers] == [
        "pageable@rank:2 -> pageable@rank:0 by mpi",
        "pageable@rank:3 -> pageable@rank:1 by mpi",
    ]


def test_nodes_with_other_numbers_of_rails_use_those_that_both_have() -> None:
    nodes = node("a", ON_GPUS), node("b", ON_GPUS[:1])
    there, _ = pair_parts(*nodes, 8, "nccl", settings=STREAM_OF_NCCL)
    assert str(there.workload) == "device@rank:0 -> device@rank:1 by nccl[test=bw] of 8"


def test_memory_is_of_gpus_only_if_each_rail_has_one() -> None:
    assert memory_kind((node("a", ON_GPUS), node("b", ON_GPUS))) == "device"
    assert memory_kind((node("a", ON_GPUS), node("b", HOST))) == "pageable"


def test_a_collective_is_among_all_rails() -> None:
    part = collective_part([node("a"), node("b"), node("c")], 4096, "alltoall")
    assert (part.sender, str(part.workload)) == (
        "",
        "pageable@rank:0-5 -> pageable@rank:0-5 by alltoall of 4096",
    )


def test_an_order_may_take_as_long_as_its_test() -> None:
    part = pair_parts(node("a"), node("b"), 8, "mpi")[0]
    order = order_of(part, 7, 3.0)
    assert (order.workload, order.seed, order.timeout_seconds) == (part.workload, 7, 3.0)


def test_each_rail_has_its_own_time_without_void_samples() -> None:
    part = pair_parts(node("a"), node("b"), 8, "mpi")[1]
    times = tuple((1.0 + n / 10, 2.0) for n in range(7))
    samples = Samples(
        span=tuple(max(each) for each in times),
        flags=(*(0 for _ in range(6)), VOID),
        transfers=times,
    )
    slow, fast = sorted(rail_times(part, samples), key=lambda each: -each.seconds)
    assert (slow.rail, slow.sender, slow.seconds, slow.n) == (1, "b", 2.0, 6)
    assert (fast.seconds, fast.low, fast.high) == (1.25, 1.0, 1.5)


def test_a_single_rail_has_the_time_of_the_whole() -> None:
    part = pair_parts(node("a", HOST[:1]), node("b"), 8, "mpi")[0]
    (time,) = rail_times(part, Samples(span=(3.0, 1.0), flags=(0, 0)))
    assert (time.seconds, time.low, time.high, time.n) == (2.0, 1.0, 3.0, 2)
    assert rail_times(part, Samples()) == ()


def test_rails_have_the_cpus_of_the_node_of_their_gpu() -> None:
    placed = placed_rails(MACHINE, ON_GPUS)
    assert [(rank.index, rank.gpu, rank.numa, rank.cpus) for rank in placed] == [
        (0, 0, 0, (0, 1)),
        (1, 3, 1, (2, 3)),
    ]
    assert [rank.numa for rank in placed_rails(replace(MACHINE, gpus=()), HOST)] == [0, 1]


def test_what_a_rail_sent_is_counted_by_the_messages_of_its_samples() -> None:
    part = pair_parts(node("a"), node("b"), 100, "mpi")[0]
    assert sent_bytes(part, Samples(span=(1.0,) * 3, repetitions=(2, 2, 3))) == 700
    assert least_sent_bytes(part) == 600
    exchange = collective_part([node("a"), node("b")], 100, "alltoall")
    assert sent_bytes(exchange, Samples(span=(1.0,))) == least_sent_bytes(exchange) == 0


def test_a_rank_has_memory_for_its_messages_and_not_much_more() -> None:
    """With 1 GiB or more a worker makes each buffer of 64 MiB, however small a message is."""
    assert {most_memory(size) for size in (1, 2**15, 2**24)} == {2**28}
    assert most_memory(2**25 + 7) == 16 * (2**25 + 7)
    assert most_memory(2**31) == 2**32
