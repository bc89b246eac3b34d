"""Who is fastest where bytes lie apart."""

from __future__ import annotations

import math

import msgspec
import pytest
from tests.profiles import series

from waywiser.profile.estimate import Estimate, estimate
from waywiser.profile.layout_crossover import layout_crossovers
from waywiser.stats.order import Interval
from waywiser.words import Layout, Transfer

SIZE = 64 * 2**20


@pytest.fixture(scope="module")
def some() -> Estimate:
    found = estimate(series("pinned@numa:0 -> device@gpu:0 by sm", SIZE))
    assert found is not None
    return found


def entry(some: Estimate, method: str, piece: int, seconds: float) -> tuple[Transfer, Estimate]:
    text = f"pinned@numa:0 -> device@gpu:0 by {method} as list[piece={piece}] of {SIZE}"
    interval = Interval(0.99 * seconds, 1.01 * seconds)
    seen = {"host_median": seconds, "host_interval": interval}
    timed = msgspec.structs.replace(some, median=seconds / 2, interval=interval, **seen)
    return Transfer.parse(text), timed


def test_methods_cross_over_as_pieces_grow(some: Estimate) -> None:
    found = [
        entry(some, method, piece, seconds)
        for method, times in {"sm": (1.0, 1.0, 1.0), "batch": (3.0, 1.005, 0.5)}.items()
        for piece, seconds in zip((8192, 28672, 65536), times, strict=True)
    ]
    (result,) = layout_crossovers(found)
    assert [each.fastest for each in result.fastest] == ["sm", "sm", "batch"]
    assert [each.is_sure for each in result.fastest] == [True, False, True]
    assert result.fastest[2].most == pytest.approx(1.0)
    assert str(result) == (
        "fastest from call to completion, 64 MiB in pieces of: 8 KiB sm; "
        "28 KiB batch or sm (about even); 64 KiB batch"
    )


def test_what_one_way_alone_moves_has_no_rival(some: Estimate) -> None:
    assert layout_crossovers([entry(some, "sm", 4096, 1.0)]) == []


def test_runs_are_reported_in_order_and_together(some: Estimate) -> None:
    pieces = (1048576, 4096, 131072, 28672)
    found = [
        entry(some, method, piece, seconds)
        for piece in pieces
        for method, seconds in (("batch", 2.0), ("pack", 1.0))
    ]
    (result,) = layout_crossovers(found)
    assert str(result) == (
        "fastest from call to completion, 64 MiB in pieces of: 4 KiB to 1 MiB pack"
    )


def test_contiguous_bytes_are_left_aside(some: Estimate) -> None:
    plain, result = entry(some, "sm", 4096, 1.0)
    same = msgspec.structs.replace(plain, layout=None)
    boxed = msgspec.structs.replace(plain, layout=Layout("box", {"width": "8", "height": "64"}))
    assert layout_crossovers([(same, result), (boxed, result)]) == []


def test_methods_are_ranked_from_call_to_completion(some: Estimate) -> None:
    """A method whose device time is the shortest, and whose call takes longer, is not the
    fastest. Without such a time it is ranked by that of the transfer."""
    (laid_out, sm), (same, batch) = (entry(some, method, 4096, 1.0) for method in ("sm", "batch"))
    short = Interval(0.099, 0.101)
    quick = msgspec.structs.replace(sm, median=0.1, interval=short)
    slow = msgspec.structs.replace(quick, host_median=3.0, host_interval=Interval(2.9, 3.1))
    unknown = msgspec.structs.replace(quick, host_median=None, host_interval=None)
    found = [layout_crossovers([(laid_out, one), (same, batch)])[0] for one in (slow, unknown)]
    assert [each.fastest[0].fastest for each in found] == ["batch", "sm"]
    assert all(each.fastest[0].is_sure for each in found)
    assert found[0].fastest[0].most == pytest.approx(2.0)


def test_between_sizes_that_are_far_apart_one_is_interpolated(some: Estimate) -> None:
    """From 28 to 128 KiB the methods go from 1 to 4 and from 4 to 1 on logarithmic scales, 64 KiB
    lies 0.54 of the way."""
    times = {"sm": {28672: 1.0, 131072: 4.0}, "batch": {28672: 4.0, 131072: 1.0}}
    found = [
        entry(some, method, piece, t) for method, at in times.items() for piece, t in at.items()
    ]
    (result,) = layout_crossovers(found)
    below, between, above = result.fastest
    assert (between.low, between.interpolated, between.is_sure) == (65536, True, False)
    share = math.log(65536 / 28672) / math.log(131072 / 28672)
    assert (between.fastest, between.second) == ("batch", "sm")
    assert between.most == pytest.approx(4 ** (2 * share - 1) - 1)
    assert not below.interpolated and not above.interpolated
    assert result.ranges == ["28 KiB sm", "64 KiB batch or sm (interpolated)", "128 KiB batch"]


@pytest.mark.parametrize(
    ("low", "high", "between"), [(4096, 28672, 8192), (28672, 2**17, 2**16), (2**17, 2**20, 2**18)]
)
def test_the_interpolated_size_is_the_power_of_two_in_the_middle(
    some: Estimate, low: int, high: int, between: int
) -> None:
    times = {"sm": {low: 1.0, high: 4.0}, "batch": {low: 4.0, high: 1.0}}
    found = [
        entry(some, method, piece, t) for method, at in times.items() for piece, t in at.items()
    ]
    (result,) = layout_crossovers(found)
    assert [each.low for each in result.fastest if each.interpolated] == [between]


def test_between_two_results_that_agree_the_interpolated_one_is_clear(some: Estimate) -> None:
    pieces, methods = (28672, 131072), {"sm": 1.0, "batch": 2.0}
    found = [entry(some, method, piece, t) for piece in pieces for method, t in methods.items()]
    (result,) = layout_crossovers(found)
    assert result.fastest[1].is_sure and result.fastest[1].most == pytest.approx(1.0)
    assert result.ranges == ["28 KiB to 128 KiB sm"]


def test_near_sizes_and_sizes_too_far_apart_have_none_between_them(some: Estimate) -> None:
    for pieces in ((28672, 65536, 131072), (4096, 16384), (4096, 131072), (28672, 1048576)):
        found = [
            entry(some, method, piece, t)
            for piece in pieces
            for method, t in (("sm", 1.0), ("batch", 2))
        ]
        (result,) = layout_crossovers(found)
        assert [each.low for each in result.fastest] == list(pieces)
        assert not any(each.interpolated for each in result.fastest)


def test_lists_with_a_contiguous_side_are_compared_apart(some: Estimate) -> None:
    found = [entry(some, method, 4096, n) for n, method in enumerate(("batch", "sm"), 1)]
    for side in ("destination", "source"):
        layout = Layout("list", {"piece": "4096", "scattered": side})
        for seconds, method in enumerate(("sm", "batch"), 1):
            transfer, timed = entry(some, method, 4096, seconds)
            found.append((msgspec.structs.replace(transfer, layout=layout), timed))
    assert list(map(str, layout_crossovers(found))) == [
        "fastest from call to completion, 64 MiB in pieces of: 4 KiB batch",
        "fastest from call to completion, 64 MiB in pieces, scattered in the destination alone, "
        "of: 4 KiB sm",
        "fastest from call to completion, 64 MiB in pieces, scattered in the source alone, "
        "of: 4 KiB sm",
    ]
