from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

import profiles
import sides as synthetic
from waywiser.curves.overview import overview_of
from waywiser.profile.locality import decide_sides, local_and_remote, nearness
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words.records import Series, Visit

SIDES = decide_sides(synthetic.records(5))
ON = {0: (5.8e-6,) * 4 + (6.4e-6,) * 4, 1: (6.4e-6,) * 4 + (5.8e-6,) * 4}


def visit(
    block: int, sides: Sequence[int | None], median: float, path: str = profiles.H2D
) -> Visit:
    """One whose buffers in host memory are on these sides, in the order of its transfers."""
    what = profiles.workload(path, 2**20)
    left = list(sides)
    made = profiles.visit(
        what,
        block,
        profiles.samples(random.Random(block), median, noise=0.0, transfers=len(what.transfers)),
    )
    buffers = []
    for buffer in made.buffers:
        if buffer.memory.startswith("pinned"):
            side = left.pop(0)
            latencies = () if side is None else ON[side]
            buffer = msgspec.structs.replace(buffer, gpu_seconds=latencies)
        buffers.append(buffer)
    return msgspec.structs.replace(made, buffers=tuple(buffers))


def test_memory_is_near_a_gpu_of_its_side() -> None:
    assert nearness(visit(0, [0], 1e-4), SIDES) == "local"
    assert nearness(visit(0, [1], 1e-4), SIDES) == "remote"
    assert nearness(visit(0, [None], 1e-4), SIDES) == ""
    assert nearness(visit(0, [0], 1e-4), None) == ""
    both = f"{profiles.H2D}; {profiles.D2H}"
    assert nearness(visit(0, [0, 1], 1e-4, both), SIDES) == "mixed"


def result(*visits: Visit) -> str:
    blocks = [found for each in visits if (found := profiles.block_of(each)) is not None]
    return local_and_remote({each.block: nearness(each, SIDES) for each in visits}, blocks)


def test_blocks_on_both_sides_are_distinguished_where_it_matters() -> None:
    apart = result(visit(0, [0], 1.0e-4), visit(1, [1], 1.1e-4))
    assert apart == "with its memory on the remote side it takes +10.0%"
    assert result(visit(0, [0], 1.0e-4), visit(1, [1], 1.001e-4)) == ""
    assert result(visit(0, [0], 1.0e-4), visit(1, [0], 1.2e-4)) == ""


def test_an_overview_shows_it_of_every_block_that_knows() -> None:
    what = profiles.workload(profiles.H2D, 2**20)
    known = Series(what, (visit(0, [0], 1e-4), visit(1, [1], 1e-4), visit(2, [None], 1e-4)))
    seen = overview_of(
        profiles.machine(),
        SeriesFrame.of([known]).series_blocks(),
        first={what.curve: what.curve},
        localities=synthetic.records(5),
    )
    assert seen.nearness == {what.identity: {0: "local", 1: "remote"}}
