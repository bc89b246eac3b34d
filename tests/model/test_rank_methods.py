"""Methods between GPUs of two nodes that were measured from end to end."""

from __future__ import annotations

import pytest

from waywiser.curves.curve import Point, points_of
from waywiser.exchange.imports.summary import summary
from waywiser.model.message_strategies import strategies_of
from waywiser.model.rank_methods import methods_of
from waywiser.model.rank_nodes import node_of
from waywiser.model.strategy_steps import MessageModels
from waywiser.model.strategy_table import strategy_table
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Workload
from waywiser.words.records import Series, Visit


def end(rank: int, node: int) -> str:
    return f"device[gpu={rank % 2},node={node},socket=0]@rank:{rank}"


def text(
    executor: str, size: int, pairs: list[tuple[int, int]], nodes: tuple[int, int] = (0, 1)
) -> str:
    return "; ".join(
        f"{end(a, nodes[0])} -> {end(b, nodes[1])} by {executor} of {size}" for a, b in pairs
    )


def summaries(times: dict[str, tuple[float, ...]]) -> list[Point]:
    series = []
    for name, seconds in times.items():
        workload = Workload.parse(name)
        visits = [Visit(workload, n, "limit", "", samples=summary(t))
                  for n, t in enumerate(seconds)]  # fmt: skip
        series.append(Series(workload, tuple(visits)))
    return points_of(SeriesFrame.of(series))


def test_each_executor_with_its_settings_is_a_method() -> None:
    found = methods_of(summaries({
        text("mpi", 64, [(0, 4)]): (1e-6, 2e-6),
        text("mpi", 64, [(0, 4), (0, 5)]): (3e-6,),
        text("mpi-staged[chunk=2MiB]", 64, [(0, 4)]): (5e-6,),
        text("alltoall", 64, [(0, 4), (0, 5), (1, 4), (1, 5)]): (7e-6,),
    }))  # fmt: skip
    assert found == {
        "mpi": {(64, 1): pytest.approx((1e-6, 2e-6)), (64, 2): pytest.approx((3e-6,))},
        "mpi-staged[chunk=2MiB]": {(64, 1): pytest.approx((5e-6,))},
        "alltoall": {(64, 2): pytest.approx((7e-6,))},
    }


@pytest.mark.parametrize(
    "workload",
    [
        text("mpi[test=ping-pong]", 64, [(0, 4)]),
        text("mpi", 64, [(0, 1)], (0, 0)),
        text("mpi", 64, [(0, 4)]) + "; " + text("mpi", 128, [(0, 5)]),
        text("mpi", 64, [(0, 4)]) + "; " + text("mpi-staged", 64, [(0, 5)]),
        text("alltoall", 64, [(0, 4), (0, 5), (1, 4)]),
        "device@rank:0 -> device@rank:4 by mpi of 64",
        "pinned[node=0,socket=0]@rank:0 -> pinned[node=1,socket=0]@rank:4 by mpi of 64",
        "device@gpu:0 -> device@gpu:1 by copy-engine of 64",
    ],
)
def test_what_is_no_such_method(workload: str) -> None:
    assert methods_of(summaries({workload: (1e-6,)})) == {}


def test_methods_are_compared_as_strategies_are() -> None:
    times = {}
    for size in (8, 64, 512, 4096):
        times[text("mpi", size, [(0, 4)])] = (1e-6 + size / 1e9, 1.02e-6 + size / 1e9)
        times[text("mpi-staged", size, [(0, 4)])] = (2e-6 + size / 9e9, 2.02e-6 + size / 9e9)
    series = summaries(times)
    others = methods_of(series)
    found = strategies_of([], MessageModels([], []), node_of(series), others=others)
    measured, modelled = strategy_table(found).bases
    assert measured.strategies == ("mpi", "mpi-staged") and modelled.strategies == ()
    (pair,) = [each for each in measured.comparisons if each.axis == "bytes"]
    (crossing,) = pair.crossings
    assert (crossing.faster, crossing.after, crossing.at) == ("mpi-staged", 512, 4096)
    assert crossing.surely_from == 4096
