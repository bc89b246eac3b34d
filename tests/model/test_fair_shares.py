"""Max-min fair shares: what they promise for any transfers and capacities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.model.errors import ModelError
from waywiser.model.share import LEAST_SHARE, Demand, fill, max_min_rates, rates_with_last

ROUNDING = 1e-9

CAPACITIES = {"link": 50.0, "memory": 120.0, "port": 80.0}

rates = st.floats(1.0, 100.0)


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    """Transfers over some of three resources."""
    found = []
    for _ in range(draw(st.integers(1, 7))):
        used = draw(st.lists(st.sampled_from(sorted(CAPACITIES)), unique=True))
        passes = {name: draw(st.integers(1, 2)) for name in used}
        found.append(
            Demand(
                bytes=draw(st.integers(1, 10**6)),
                rate=draw(rates),
                latency=draw(st.floats(0.0, 10.0)),
                loads={name: times / CAPACITIES[name] for name, times in passes.items()},
                passes=passes,
            )
        )
    return found


def used(demands: list[Demand], rates: list[float]) -> dict[str, float]:
    """The share of each resource that is in use."""
    shares = dict.fromkeys(CAPACITIES, 0.0)
    for demand, rate in zip(demands, rates, strict=True):
        for name, load in demand.loads.items():
            shares[name] += load * rate
    return shares


@given(demands())
def test_no_resource_carries_more_than_its_capacity(needed: list[Demand]) -> None:
    found, _ = max_min_rates(needed)
    assert all(share <= 1 + ROUNDING for share in used(needed, found).values())
    assert all(
        0 < rate <= each.rate * (1 + ROUNDING) for rate, each in zip(found, needed, strict=True)
    )


@given(demands())
def test_each_transfer_has_its_own_rate_or_crosses_a_full_resource(needed: list[Demand]) -> None:
    """The shares waste nothing; and where a transfer is limited, no other has more of that
    resource than it."""
    found, limits = max_min_rates(needed)
    shares = used(needed, found)
    for each, rate, limit in zip(needed, found, limits, strict=True):
        if not limit:
            assert rate == pytest.approx(each.rate)
            continue
        assert shares[limit] == pytest.approx(1.0)
        others = [r for other, r in zip(needed, found, strict=True) if limit in other.loads]
        assert rate >= max(others) * (1 - ROUNDING)


@given(demands(), st.randoms(use_true_random=False))
def test_the_order_of_transfers_does_not_matter(needed: list[Demand], random: object) -> None:
    order = list(range(len(needed)))
    random.shuffle(order)  # type: ignore[attr-defined]
    found, moved = fill(needed), fill([needed[n] for n in order])
    for position, n in enumerate(order):
        assert moved.seconds[position] == pytest.approx(found.seconds[n], rel=1e-6)


@given(demands(), st.sampled_from(sorted(CAPACITIES)), st.floats(1.0, 4.0))
def test_more_capacity_never_lowers_the_least_shares(
    needed: list[Demand], name: str, times: float
) -> None:
    """Sorted rates only rise in lexicographic order: that is what max-min fair means."""
    wider = [
        Demand(
            bytes=each.bytes,
            rate=each.rate,
            loads={n: load / times if n == name else load for n, load in each.loads.items()},
        )
        for each in needed
    ]
    before, after = (sorted(max_min_rates(each)[0]) for each in (needed, wider))
    for less, more in zip(before, after, strict=True):
        if more > less * (1 + ROUNDING):
            break
        assert more == pytest.approx(less)


@settings(max_examples=50)
@given(demands())
def test_all_bytes_are_moved_no_faster_than_alone(needed: list[Demand]) -> None:
    found = fill(needed)
    for each, seconds in zip(needed, found.seconds, strict=True):
        assert seconds >= (each.latency + each.bytes / each.rate) * (1 - ROUNDING)
    for name, capacity in CAPACITIES.items():
        moved = sum(each.bytes * each.passes.get(name, 0) for each in needed)
        assert found.span >= moved / capacity * (1 - ROUNDING)
        assert found.carried.get(name, 0.0) <= capacity * (1 + ROUNDING)


def test_a_rate_rises_when_another_transfer_ends() -> None:
    """Both at 5 B/s until the short one is done, then the other 70 bytes at 10 B/s."""
    loads = {"link": 1 / 10}
    short, long = Demand(50, 10.0, loads=loads), Demand(120, 10.0, loads=loads)
    found = fill([short, long])
    assert found.seconds == pytest.approx((10.0, 17.0))
    assert found.limits == ("link", "")


def test_a_transfer_takes_nothing_during_its_latency() -> None:
    loads = {"link": 1 / 10}
    found = fill([Demand(50, 10.0, loads=loads), Demand(50, 10.0, latency=5.0, loads=loads)])
    assert found.seconds == pytest.approx((5.0, 10.0))


def test_transfers_of_one_queue_run_one_after_another() -> None:
    queued = Demand(10, 1.0, latency=1.0, queue="engine", gap=0.5)
    other = Demand(10, 1.0, latency=1.0)
    found = fill([queued, queued, queued, other])
    assert found.seconds == pytest.approx((11.0, 22.5, 34.0, 11.0))


def test_two_passes_take_twice_the_capacity() -> None:
    found = fill([Demand(100, 100.0, loads={"memory": 2 / 100}, passes={"memory": 2})])
    assert found.span == pytest.approx(2.0)
    assert found.carried == pytest.approx({"memory": 100.0})


def test_no_bytes_end_with_the_latency() -> None:
    assert fill([Demand(0, 10.0, latency=2.0)]).span == 2.0


@pytest.mark.parametrize(
    ("demand", "what"),
    [
        (Demand(1, 0.0), "has no end"),
        (Demand(1, math.nan), "has no end"),
        (Demand(1, 1.0, latency=-1.0), "a latency of -1 s is not possible"),
        (Demand(1, 1.0, latency=math.inf), "is not possible"),
        (Demand(-1, 1.0), "-1 bytes are not possible"),
        (Demand(1, 1.0, loads={"link": math.inf}), "link has no capacity"),
        (Demand(1, 1.0, loads={"link": -1.0}), "link has no capacity"),
    ],
)
def test_demands_without_sense_are_one_clear_line(demand: Demand, what: str) -> None:
    with pytest.raises(ModelError, match=what) as error:
        fill([demand])
    assert "\n" not in str(error.value)


def test_a_set_without_transfers_is_an_error() -> None:
    with pytest.raises(ModelError, match="without transfers"):
        fill([])


@given(demands(), st.data())
def test_the_last_gets_what_others_leave_and_no_more_than_its_share(
    needed: list[Demand], data: st.DataObject
) -> None:
    last = data.draw(st.integers(0, len(needed) - 1))
    fair, _ = max_min_rates(needed)
    found, limits = rates_with_last(needed, last)
    assert LEAST_SHARE * fair[last] <= found[last] <= fair[last]
    assert limits[last] == "" or limits[last] in needed[last].loads
    others = [n for n in range(len(needed)) if n != last]
    if others:
        assert [found[n] for n in others] == max_min_rates([needed[n] for n in others])[0]
    if found[last] > LEAST_SHARE * fair[last] * (1 + ROUNDING):
        assert all(share <= 1 + ROUNDING for share in used(needed, found).values())


def test_the_last_waits_until_the_others_end() -> None:
    link = {"link": 1 / 60}
    both = [Demand(100, 50.0, loads=link), Demand(100, 50.0, loads=link)]
    assert fill(both).seconds == pytest.approx((100 / 30, 100 / 30))
    assert fill(both, last=1).seconds == pytest.approx((2.0, 2.0 + 80 / 50))
