"""What a comparison, a fleet and a relation must not depend on: which side is first, in what unit
times are, what else was measured, and in which order files are named."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import nodes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.comparison.path_change import PathChange, ProfileComparison
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject

SIZES = (4096, 2**20, nodes.SIZE)

few = settings(max_examples=12)
seeds = st.integers(0, 10**6)
blocks = st.sampled_from([2, 4, 8])


def surveyed(seed: int, count: int, effect: float = 1.0, dip: float = 1.0) -> Subject:
    """Two GPUs; the link of one, and one size of the other's, takes longer."""
    found = nodes.node(
        seed, gpus=2, blocks=count, sizes=SIZES, slow=nodes.slow_host_link(1, effect)
    )
    return msgspec.structs.replace(
        found,
        points=tuple(
            times(each, dip) if (each.curve, each.bytes) == (nodes.h2d(0), 2**20) else each
            for each in found.points
        ),
    )


def times(digest: Point, factor: float) -> Point:
    longer = tuple(nodes.scaled(block, factor) for block in digest.blocks)
    return msgspec.structs.replace(digest, blocks=longer)


def with_digests(node: Subject, digests: Sequence[Point]) -> Subject:
    return msgspec.structs.replace(node, points=tuple(digests))


def verdicts(found: ProfileComparison) -> dict[str, str]:
    return {path.curve: path.verdict for path in found.paths}


def ratios(found: ProfileComparison) -> dict[str, tuple[float, float, float]]:
    return {
        size.series: (
            size.decision.ratio,
            size.decision.interval.low if size.decision.interval else 0.0,
            size.decision.interval.high if size.decision.interval else 0.0,
        )
        for path in found.paths
        for part in path.parts
        for size in part.sizes
    }


def is_gain(path: PathChange) -> bool:
    """Whether a part or a size is significantly faster."""
    return any(each.outcome == "different" and not each.slower for each in path.changes)


@few
@given(seeds, blocks, st.sampled_from([1.0, 1.05, 1.3]), st.sampled_from([1.0, 1.3]))
def test_the_sides_exchanged_give_the_inverse(
    seed: int, count: int, effect: float, dip: float
) -> None:
    base, new = surveyed(2 * seed, count), surveyed(2 * seed + 1, count, effect, dip)
    there, back = compare([base], [new]), compare([new], [base])
    assert nodes.losses(there) <= {path.curve for path in there.of("suspected")}
    gained = {path.curve for path in back.paths if is_gain(path)}
    assert gained == nodes.losses(there)
    for series, (ratio, low, high) in ratios(there).items():
        assert ratios(back)[series] == pytest.approx((1 / ratio, 1 / high, 1 / low))


@few
@given(seeds, blocks, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(seed: int, count: int, unit: float) -> None:
    base, new = surveyed(2 * seed, count), surveyed(2 * seed + 1, count, 1.05)
    in_unit = [
        with_digests(node, [times(each, unit) for each in node.points]) for node in (base, new)
    ]
    found, again = compare([base], [new]), compare([in_unit[0]], [in_unit[1]])
    assert verdicts(found) == verdicts(again)
    for series, ratio in ratios(found).items():
        assert ratios(again)[series] == pytest.approx(ratio)


@few
@given(seeds, blocks)
def test_a_further_path_changes_no_others_ratio(seed: int, count: int) -> None:
    base, new = surveyed(2 * seed, count), surveyed(2 * seed + 1, count, 1.05)
    fewer = with_digests(new, new.points[6:])
    whole, part = ratios(compare([base], [new])), ratios(compare([base], [fewer]))
    assert part and part.keys() < whole.keys()
    assert all(whole[series][0] == ratio for series, (ratio, _, _) in part.items())


@few
@given(seeds, st.randoms())
def test_the_order_of_files_and_of_series_does_not_matter(seed: int, rng: random.Random) -> None:
    base = [surveyed(10 * seed + n, 1 + n % 2) for n in range(3)]
    new = [surveyed(10 * seed + 5 + n, 2, 1.05) for n in range(3)]
    found = compare(base, new)
    shuffled = [
        with_digests(node, rng.sample(node.points, len(node.points))) for node in (*base, *new)
    ]
    base, new = shuffled[:3], shuffled[3:]
    again = compare(rng.sample(base, 3), rng.sample(new, 3))
    assert verdicts(again) == verdicts(found)
    for series, ratio in ratios(found).items():
        assert ratios(again)[series] == pytest.approx(ratio)


def test_a_gpu_that_one_of_several_files_lacks_is_gone_in_whatever_order() -> None:
    base, whole = nodes.node(1), nodes.node(2)
    lacks = nodes.without(nodes.node(3), "0000:04:00.0")
    for new in ([whole, lacks], [lacks, whole]):
        found = compare([base], new)
        assert [gpu.place for gpu in found.missing_gpus] == ["gpu:3"]
        assert sum("is gone" in note for note in found.notes) == 1
    for old in ([base, lacks], [lacks, base]):
        found = compare(old, [whole])
        assert not found.missing_gpus
        assert not found.of("new")
        assert all(";" in path.curve for path in found.of("missing"))  # sets of the seven alone


@few
@given(seeds, st.randoms())
def test_who_is_ill_does_not_depend_on_the_order_of_hosts(seed: int, rng: random.Random) -> None:
    slow = nodes.slow_host_link(1, 1.2)
    fleet = [
        nodes.node(seed, f"node{n}", gpus=2, **({"slow": slow} if n == 4 else {}))
        for n in range(12)
    ]
    found = {host.host: host.status for host in assess_fleet(fleet).hosts}
    again = {host.host: host.status for host in assess_fleet(rng.sample(fleet, 12)).hosts}
    assert found == again
    assert found["node4"] == "suspect"
