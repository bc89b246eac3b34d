"""A level that shifts within a series and returns accuses nothing; one that stays is found.

Shifts are of at least `SEEN` deviations of a path's processes: smaller ones are that noise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import msgspec
import pytest
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import of_series, sized

import profiles
from analysis.comparison import nodes
from planted.changes import PROCESS, slow_path, survey
from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.questions.identical import answer
from waywiser.analysis.questions.irregular_curves import irregular_classes
from waywiser.curves.curve import points_of
from waywiser.curves.headline import group_of
from waywiser.curves.subject import Subject
from waywiser.profile.series_frame import SeriesFrame
from waywiser.stats import level_shift
from waywiser.words.records import Samples, Series

VARIANTS = range(24)
ORDER = "2026-11-{day:02}T03:00:00.000+00:00"

SEEN = 10

Stretch = tuple[int, int, float]
"""The first value of a shift, the one after its last, and the factor of the time."""


def stretch(rng: random.Random, count: int) -> Stretch:
    """Most of the values shift, so that their median does, and those at the ends do not."""
    ends = math.ceil(count / 8)
    length = rng.randint(count // 2 + 1, max(count // 2 + 1, count - 2 * ends))
    start = rng.randint(ends, max(ends, count - ends - length))
    return start, start + length, rng.choice((1.04, 1.06, 1.1, 1.3, 2.0, 1 / 1.1))


def with_blocks(node: Subject, which: Callable[[str], bool], shift: Stretch) -> Subject:
    """The blocks of a shift, of all series that are meant."""
    start, stop, factor = shift
    series = tuple(
        nodes.digest(
            each.workload,
            [b.median * (factor if start <= n < stop else 1) for n, b in enumerate(each.blocks)],
            0.001,
        )
        if which(each.curve)
        and abs(math.log(factor)) >= SEEN * PROCESS[group_of(each.workload) or "H2D"]
        else each
        for each in node.points
    )
    return msgspec.structs.replace(node, points=series)


def dated(node: Subject, day: int) -> Subject:
    return msgspec.structs.replace(node, created=ORDER.format(day=day))


def some_paths(rng: random.Random) -> Callable[[str], bool]:
    """One path, all of a GPU, or everything."""
    one = rng.choice((nodes.h2d(1), nodes.d2h(0), nodes.peer(0, 1)))
    kinds = (lambda text: text == one, lambda text: "gpu:1" in text, lambda text: True)
    return rng.choice(kinds)


def accused(new: Subject, base: Subject) -> set[str]:
    """What a check says of paths, and of the whole machine."""
    found = check_up(new, [base])
    changed = found.comparison.of("regression", "improvement", "suspected")
    said = {path.curve for path in changed} | set(found.suspects)
    return said | {line for line in found.reasons if "whole" in line}


@pytest.mark.parametrize("seed", VARIANTS)
def test_processes_whose_level_returns_are_no_change(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(5, 16)
    base, new = (survey(10_000 + 2 * seed + n, processes=count) for n in range(2))
    sides = [dated(base, 20), dated(new, 21)]
    steady = accused(sides[1], sides[0])
    at = rng.randrange(2)
    sides[at] = with_blocks(sides[at], some_paths(rng), stretch(rng, count))
    assert accused(sides[1], sides[0]) <= steady


@pytest.mark.parametrize("seed", VARIANTS)
def test_a_level_that_the_last_processes_leave_is_no_loss(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(6, 16)
    base, new = (dated(survey(20_000 + 2 * seed + n, processes=count), 20 + n) for n in range(2))
    shift = 0, rng.randint(count // 2 + 1, count - 2), rng.choice((1.05, 1.1, 1.3, 2.0))
    left = with_blocks(new, some_paths(rng), shift)
    assert accused(left, base) <= accused(new, base)


def taken(rng: random.Random, seconds: float, count: int, shift: Stretch | None) -> Samples:
    found = profiles.samples(rng, seconds, count, noise=0.001)
    if shift is None:
        return found
    spans = tuple(
        each * (shift[2] if shift[0] <= n < shift[1] else 1) for n, each in enumerate(found.span)
    )
    return msgspec.structs.replace(
        found,
        span=spans,
        host=tuple(each + 2e-6 for each in spans),
        transfers=tuple((each,) * len(found.transfers[0]) for each in spans),
    )


def sampled(
    rng: random.Random, blocks: int, shifted: Callable[[str], bool], *, gpus: int = 2
) -> list[Series]:
    """Series of which some have a shift among the samples of each block."""
    found = []
    for what, seconds in nodes.workloads(gpus):
        visits = []
        for block in range(blocks):
            count = rng.randint(10, 150)
            shift = stretch(rng, count) if shifted(what.curve) else None
            level = seconds * rng.lognormvariate(0, 0.001)
            own = taken(rng, level, count, shift)
            visits.append(profiles.visit(what, block, own))
        found.append(Series(what, tuple(visits)))
    return found


def node_of(series: Sequence[Series], day: int, host: str = "node0", gpus: int = 2) -> Subject:
    found = tuple(points_of(SeriesFrame.of(series)))
    return Subject(
        host, nodes.machine(host, gpus), found, f"{host}-{day}.wwp", ORDER.format(day=day)
    )


def nothing(_: str) -> bool:
    return False


@pytest.mark.parametrize("seed", VARIANTS)
def test_samples_whose_level_returns_are_no_change(seed: int) -> None:
    rng = random.Random(30_000 + seed)
    blocks, which = rng.choice((1, 2, 4, 8)), [nothing, some_paths(rng)]
    rng.shuffle(which)
    base, new = (node_of(sampled(rng, blocks, each), 20 + n) for n, each in enumerate(which))
    assert not accused(new, base)


@pytest.mark.parametrize("seed", VARIANTS)
def test_a_shift_that_returns_makes_no_host_of_a_fleet_suspect(seed: int) -> None:
    rng = random.Random(40_000 + seed)
    hosts = [nodes.node(seed, f"n{n}", blocks=8, gpus=2) for n in range(rng.randint(4, 12))]
    which = some_paths(rng)
    hosts[1] = with_blocks(hosts[1], which, stretch(rng, 8))
    hosts[2] = with_blocks(hosts[2], which, (0, rng.randint(5, 6), 1.1))
    assert not assess_fleet(hosts).of("bad", "suspect")


@pytest.mark.parametrize("seed", VARIANTS)
def test_one_block_whose_samples_return_makes_no_host_suspect(seed: int) -> None:
    rng = random.Random(50_000 + seed)
    which = some_paths(rng)
    hosts = [node_of(sampled(rng, 1, which if n == 1 else nothing), 20, f"n{n}") for n in range(6)]
    assert not assess_fleet(hosts).of("bad", "suspect")


@pytest.mark.parametrize("blocks", [1, 2, 6, 8])
@pytest.mark.parametrize("seed", VARIANTS[:6])
def test_no_link_is_accused_by_a_level_that_returns(seed: int, blocks: int) -> None:
    """Among the samples; of many blocks among these."""
    rng = random.Random(60_000 + seed)
    slow = nodes.h2d(1)
    series = sampled(rng, blocks, slow.__eq__ if blocks < 6 else nothing, gpus=4)
    if blocks >= 6:
        start, stop, factor = stretch(rng, blocks)
        own = next(each for each in series if each.workload.curve == slow)
        seconds = [
            visit.samples.span[0] * (factor if start <= visit.block < stop else 1)
            for visit in own.visits
        ]
        series[series.index(own)] = Series(own.workload, tuple(
            profiles.visit(own.workload, block, taken(rng, each, 20, None))
            for block, each in enumerate(seconds)
        ))  # fmt: skip
    assert answer(of_series(machine(4), series)).findings == ()


@pytest.mark.parametrize("blocks", [2, 5])
@pytest.mark.parametrize("seed", VARIANTS[:10])
def test_no_size_is_irregular_by_a_level_that_returns(seed: int, blocks: int) -> None:
    rng = random.Random(70_000 + seed)
    sizes = tuple(2**n for n in range(10, 27))
    odd = rng.choice(sizes[3:-3])
    series = []
    for size in sizes:
        what = sized(nodes.h2d(0), size)
        visits = []
        for block in range(blocks):
            count = rng.randint(10, 80)
            shift = stretch(rng, count) if size == odd else None
            own = taken(rng, 5e-6 + size / 50e9, count, shift)
            visits.append(profiles.visit(what, block, own))
        series.append(Series(what, tuple(visits)))
    subject = of_series(machine(2), series)
    assert not any(irregular_classes(subject, subject.curves))


def test_a_step_that_stays_is_found_as_often_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are of 3.5 to 10 %, in all new processes or from one of them on."""
    sides = []
    for seed in range(80):
        rng = random.Random(seed)
        base, new = (dated(survey(80_000 + 2 * seed + n), 20 + n) for n in range(2))
        path, loss = rng.choice((nodes.h2d(1), nodes.d2h(1))), rng.uniform(0.035, 0.1)
        start = rng.choice((0, 0, 1, 2))
        shift = start, 8, 1 / (1 - loss)
        sides.append((base, with_blocks(new, path.__eq__, shift), path))
    found = [path in nodes.losses(compare([base], [new])) for base, new, path in sides]
    monkeypatch.setattr(level_shift, "LEAST_SHIFT", float("inf"))
    before = [path in nodes.losses(compare([base], [new])) for base, new, path in sides]
    assert sum(before) >= 54 and sum(found) >= sum(before) - 1


def test_a_slow_path_is_named_beside_one_whose_level_returns() -> None:
    base = dated(survey(90_000), 20)
    new = dated(survey(90_001, slow_path(nodes.d2h(1), 1.06)), 21)
    new = with_blocks(new, nodes.h2d(1).__eq__, (1, 7, 1.06))
    assert nodes.losses(compare([base], [new])) == {nodes.d2h(1)}
