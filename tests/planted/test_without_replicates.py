"""Files with one number per size: the noise is how sizes scatter, or a change is not decidable."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import pytest

from analysis.comparison import nodes
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import answer_lines, suspected_lines
from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject
from waywiser.profile.block import BlockSummary

VARIANTS = range(24)


def imported(
    rng: random.Random, sizes: Sequence[int], noise: float, factor: float = 1.0
) -> Subject:
    """One number of each size of a path, which is ``factor`` slower."""
    series = []
    for size in sizes:
        seconds = factor * (5e-6 + size / 25e9) * rng.lognormvariate(0, noise)
        what = nodes.workload(nodes.h2d(0), size=size)
        series.append(Point.of(what, [BlockSummary(0, seconds, count=1)]))
    node = Subject("m", nodes.machine(gpus=1), tuple(series), "m.wwp", tools=("a tool",))
    return msgspec.structs.replace(node, created=f"2026-11-20T03:00:00.{rng.randrange(1000):03}")


def said(found: ProfileComparison) -> str:
    return "\n".join((*answer_lines(found), *found.notes))


@pytest.mark.parametrize("seed", VARIANTS)
def test_the_noise_is_how_sizes_scatter_around_a_line(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [2**n for n in range(24, 24 + rng.randint(5, 7))]
    noise = rng.choice((0.002, 0.01, 0.03))
    before, again = (imported(rng, sizes, noise) for _ in range(2))
    (path,) = compare([before], [again]).paths
    assert path.verdict == "no change" and path.detectable is not None
    for size in path.parts[-1].sizes:
        assert size.decision.ratio > 1 - (size.decision.detectable or 0)
    found = compare([before], [imported(rng, sizes, noise, 1.5)])
    assert nodes.losses(found) == {nodes.h2d(0)}
    assert "how sizes scatter around a line" in said(found)


@pytest.mark.parametrize("sizes", [1, 2, 3, 4])
@pytest.mark.parametrize("change", [1.0, 1.02, 2.0])
def test_with_fewer_than_five_sizes_a_change_is_not_decidable(sizes: int, change: float) -> None:
    rng = random.Random(sizes)
    bytes_ = [2**n for n in range(24, 24 + sizes)]
    found = compare([imported(rng, bytes_, 0.001)], [imported(rng, bytes_, 0.001, change)])
    (path,) = found.paths
    assert not found.of("regression", "improvement")
    assert path.detectable is None and "would have been found" not in said(found)
    assert "not decidable" in said(found)
    assert found.is_decided(path) == (change == 2.0)
    reasons = "".join(suspected_lines(found))
    assert ("fewer than 5 sizes of one kind" in reasons) == (change == 2.0)
    assert any("compare several files of before with several of now" in x for x in found.notes)


def test_several_files_are_jobs_and_show_the_noise() -> None:
    rng = random.Random(1)
    sides = [[imported(rng, [2**26], 0.01, factor) for _ in range(4)] for factor in (1.0, 1.2)]
    (path,) = compare(*sides).paths
    assert path.verdict == "regression" and path.detectable is not None
    assert path.detectable < 0.1
