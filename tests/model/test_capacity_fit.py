"""Capacities that are fitted to measured sets: what is found, what is an error, what is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept import RESULTS, unpacked
from planted.capacities import CapacityScore, planted_capacities
from planted.noise import recorded
from planted.planted_model import Model, between, down, up
from waywiser.curves.name import name_of
from waywiser.machine.bounds import Bound, bound
from waywiser.model.alone import AloneCurves, SampledCurve
from waywiser.model.capacity import Capacity, CapacityModel, CapacityModelReader
from waywiser.model.capacity_fit import capacity_findings, fit_capacities
from waywiser.model.errors import ModelError
from waywiser.model.share import Demand, fill
from waywiser.model.timed_sets import TimedSet, timed
from waywiser.model.whatif import with_capacity, with_gpus, with_latency
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Transfer, Workload

MIB = 2**20
LATENCY, RATE = 5e-6, 50e9
SIZES = tuple(2**n for n in range(10, 29))
MACHINE = Model(count=4, sockets="one").machine
HOST = "device and pinned by copy-engine"


def seconds(size: int, rate: float = RATE) -> float:
    return LATENCY + size / rate


def workload(*paths: str, size: int = 64 * MIB) -> Workload:
    return Workload(tuple(Transfer.parse(f"{path} of {size}") for path in paths))


def singles() -> list[TimedSet]:
    paths = [*map(up, range(4)), *map(down, range(4))]
    return [
        TimedSet(workload(path, size=size), (seconds(size), seconds(size)))
        for path in paths
        for size in SIZES
    ]


def together(rate: float, *paths: str) -> TimedSet:
    """A set whose bytes took so many bytes per second."""
    what = workload(*paths)
    span = LATENCY + what.bytes / rate
    own = tuple(span for _ in paths)
    return TimedSet(what, (span, span * 1.001), (own, own))


def fitted(*sets: TimedSet, validation: Iterable[str] = ()) -> CapacityModel:
    return fit_capacities(MACHINE, singles(), sets, validation=validation)


def found(model: CapacityModel) -> dict[str, float]:
    """The capacities that sets show, in GB/s."""
    return {
        each.resource: each.bytes_per_second / 1e9
        for each in model.capacities
        if each.basis == "sets"
    }


ALL_UP, ALL_DOWN = [up(gpu) for gpu in range(4)], [down(gpu) for gpu in range(4)]
UNLIMITED = 4 * RATE


def test_sets_that_nothing_slows_have_no_capacities() -> None:
    model = fitted(together(UNLIMITED, *ALL_UP), together(2 * RATE, up(0), down(0)))
    assert found(model) == {}
    assert model.findings == ()


def test_a_link_that_one_transfer_fills_has_its_rate() -> None:
    known = {each.resource: each for each in fitted().capacities}
    assert known["PCIe to gpu:*"].bytes_per_second == pytest.approx(RATE, rel=1e-3)
    assert known["PCIe to gpu:*"].basis == "one transfer"


def test_a_link_that_carries_more_for_several_is_not_filled_by_one() -> None:
    """Two copies by one GPU's link reach 58 GB/s together; one reaches 50."""
    twice = workload(up(0), up(0))
    known = fitted(
        TimedSet(twice, (LATENCY + 128 * MIB / 58e9,) * 2),
        together(2 * RATE, up(0), up(1)),
    )
    assert found(known) == {"PCIe to gpu:*": pytest.approx(58, rel=0.01)}
    assert known.predicted(twice).span == pytest.approx(LATENCY + 128 * MIB / 58e9, rel=0.01)


@pytest.mark.parametrize("faster", [1.4, 3.0])
def test_a_link_that_a_copy_exceeds_is_filled_by_no_other(faster: float) -> None:
    most = bound(MACHINE, Workload.parse(up(0)))
    assert most is not None
    slow, fast = 0.9 * most.bytes_per_second, faster * most.bytes_per_second
    pageable = up(0).replace("pinned", "pageable")
    measured = [
        TimedSet(workload(path, size=size), (seconds(size, rate),) * 2)
        for path, rate in ((pageable, slow), (up(1), fast))
        for size in SIZES
    ]
    model = fit_capacities(MACHINE, measured, [])
    assert model.capacities == ()
    (text,) = [each for each in model.findings if "PCIe to gpu:*" in each]
    assert "the description of the link is wrong" in text
    alone = model.predicted(workload(pageable))
    assert alone.capacities == () and alone.span == pytest.approx(seconds(64 * MIB, slow))


@given(
    st.lists(st.floats(0.3, 1.1), min_size=2, max_size=4),
    st.lists(st.tuples(st.floats(0.2, 1.1), st.sampled_from((2, 3, 4)), st.booleans()), max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_no_capacity_is_less_than_what_was_measured_through_it(
    alone: list[float], sets: list[tuple[float, int, bool]]
) -> None:
    paths = {up(n): share * RATE for n, share in enumerate(alone)}
    paths |= {path: RATE for path in (*ALL_UP, *ALL_DOWN) if path not in paths}
    one = [TimedSet(workload(path, size=size), (seconds(size, rate),) * 2)
           for path, rate in paths.items() for size in SIZES]  # fmt: skip
    several = [together(share * count * RATE, *(ALL_UP if to_gpus else ALL_DOWN)[:count])
               for share, count, to_gpus in sets]  # fmt: skip
    model = fit_capacities(MACHINE, one, several)
    reader = CapacityModelReader(model)
    for timed_one in (*one[len(SIZES) - 1 :: len(SIZES)], *several):
        through: dict[tuple[str, str], float] = {}
        for transfer in timed_one.workload.transfers:
            for use in reader.uses(transfer):
                moved = through.get((use.name, use.kind), 0.0)
                through[use.name, use.kind] = moved + use.passes * transfer.bytes
        for names, moved in through.items():
            for each in model.capacities:
                if each.resource in names:
                    assert each.bytes_per_second > 0.98 * moved / timed_one.span
    for path, rate in paths.items():
        assert model.predicted(workload(path)).span == pytest.approx(seconds(64 * MIB, rate))


def test_both_directions_of_a_link_are_narrower_than_what_the_host_shares() -> None:
    assert found(fitted(together(80e9, up(0), down(0)))) == {
        "PCIe of gpu:*, both directions": pytest.approx(80, rel=0.01)
    }


def test_writes_of_the_host_limit_all_gpus_but_not_two() -> None:
    model = fitted(
        together(140e9, *ALL_DOWN),
        together(2 * RATE, down(0), down(1)),
        together(UNLIMITED, *ALL_UP),
    )
    assert found(model) == {"writes of numa:0": pytest.approx(140, rel=0.01)}


def test_a_joint_limit_that_a_set_exceeds_is_not_taken() -> None:
    """All directions together carry 200 GB/s, so 140 GB/s of writes are a limit of writes."""
    model = fitted(together(140e9, *ALL_DOWN), together(200e9, *ALL_UP, *ALL_DOWN))
    assert found(model) == {
        "writes of numa:0": pytest.approx(140, rel=0.01),
        "reads and writes of numa:0": pytest.approx(200, rel=0.01),
    }


def test_two_gpus_behind_one_port_are_found_from_pairs() -> None:
    pairs = [
        together(60e9 if (a, b) == (0, 1) else 2 * RATE, up(a), up(b))
        for a in range(4)
        for b in range(a + 1, 4)
    ]
    model = fitted(*pairs, together(120e9, *ALL_UP))
    assert found(model) == {"port to gpu:0-1": pytest.approx(60, rel=0.01)}
    assert model.groups == ((0, 1),)


def test_a_gpu_that_differs_from_its_equals_has_a_capacity_of_its_own() -> None:
    duplex = [together(90e9 if gpu else 70e9, up(gpu), down(gpu)) for gpu in range(4)]
    known = found(fitted(*duplex))
    assert known["PCIe of gpu:*, both directions"] == pytest.approx(90, rel=0.02)
    assert known["PCIe of gpu:0, both directions"] == pytest.approx(70, rel=0.01)


def test_validation_sets_are_never_fitted() -> None:
    slow = together(140e9, *ALL_DOWN)
    assert found(fitted(slow))
    assert not found(fitted(slow, validation=[slow.workload.identity]))


def test_transfers_that_wait_for_one_another_are_a_queue() -> None:
    paths = [between(0, gpu) for gpu in (1, 2, 3)]
    alone = [
        TimedSet(workload(path, size=size), (seconds(size, 390e9),) * 2)
        for path in [between(a, b) for a in range(4) for b in range(4) if a != b]
        for size in SIZES
    ]
    each = seconds(64 * MIB, 390e9)
    span = 3 * each + 2 * 4e-6
    star = TimedSet(workload(*paths), (span, span), ((each,) * 3,) * 2)
    model = fit_capacities(MACHINE, alone, [star])
    (queue,) = model.queues
    assert (queue.end, queue.gap) == ("source", pytest.approx(4e-6, rel=0.01))
    other = model.predicted(workload(*(between(3, gpu) for gpu in (0, 1))))
    assert other.span == pytest.approx(2 * each + 4e-6, rel=1e-3)
    assert model.predicted(workload(between(0, 1), between(1, 0))).span == pytest.approx(
        each, rel=1e-3
    )


def test_a_capacity_above_the_bound_is_a_finding() -> None:
    """The link is described as PCIe 5 x16: 63 GB/s in each direction."""
    model = fit_capacities(MACHINE, singles(), [together(140e9, up(0), down(0), up(1), down(1))])
    high = Capacity("PCIe to gpu:*", HOST, 90e9, None, "sets")
    changed = msgspec.structs.replace(model, capacities=(high,))
    (finding,) = capacity_findings(changed, singles())
    assert "PCIe to gpu:* carries 90.0 GB/s by the sets, but its bound is 63.02 GB/s" in finding


def test_more_than_was_measured_of_a_resource_is_unknown_with_a_bound() -> None:
    model = fitted(together(2 * RATE, up(0), up(1)))
    two = model.predicted(workload(up(2), up(3)))
    assert two.is_known
    four = model.predicted(workload(*ALL_UP))
    assert four.unknown == ("reads of numa:0",)
    assert four.span == pytest.approx(seconds(64 * MIB), rel=1e-3)
    assert four.interval.high == pytest.approx(LATENCY + 256 * MIB / (2 * RATE), rel=0.01)


def test_a_set_of_other_sizes_is_predicted_over_time() -> None:
    """80 GB/s in both directions: 40 each until the short one is done, then 50 alone."""
    model = fitted(together(80e9, up(0), down(0)))
    short, long = (
        Transfer.parse(f"{up(0)} of {32 * MIB}"),
        Transfer.parse(f"{down(0)} of {128 * MIB}"),
    )
    known = model.predicted(Workload((short, long)))
    first = 32 * MIB / 40e9
    assert known.seconds == pytest.approx(
        (LATENCY + first, LATENCY + first + 96 * MIB / RATE), rel=2e-3
    )
    assert known.limits[0] == "PCIe of gpu:0, both directions"
    assert known.rests_on == (str(workload(up(0), down(0))),)
    assert known.interval.low < known.span < known.interval.high


def test_transfers_by_several_methods_share_the_same_resource() -> None:
    """Copies by another executor are measured alone, and have no sets of their own."""
    kernel = [path.replace("copy-engine", "sm") for path in (up(0), down(0))]
    alone = [
        TimedSet(workload(path, size=size), (seconds(size),) * 2)
        for path in kernel
        for size in SIZES
    ]
    model = fit_capacities(MACHINE, [*singles(), *alone], [together(80e9, up(0), down(0))])
    mixed = model.predicted(workload(up(0), kernel[1]))
    assert mixed.span == pytest.approx(LATENCY + 128 * MIB / 80e9, rel=2e-3)
    assert mixed.is_known
    assert not model.predicted(workload(*kernel)).is_known


def test_a_model_is_the_same_after_json() -> None:
    model = fitted(together(80e9, up(0), down(0)))
    again = msgspec.json.decode(msgspec.json.encode(model), type=CapacityModel)
    assert again == model
    assert again.predicted(workload(*ALL_UP)) == model.predicted(workload(*ALL_UP))


def test_transfers_that_differ_have_wider_intervals_than_their_set() -> None:
    """One of two directions that share a link gets more, which no max-min share predicts."""
    even = together(80e9, up(0), down(0))
    uneven = [
        TimedSet(e.workload, e.spans, tuple((0.8 * e.span, e.span) for _ in e.spans))
        for e in (together(80e9, up(gpu), down(gpu)) for gpu in range(4))
    ]
    for sets, is_wider in ([even], False), (uneven, True):
        found = fitted(*sets).predicted(workload(up(0), down(0)))
        own = found.seconds[0] / found.intervals[0].low
        of_all = found.span / found.interval.low
        assert (own > 1.1 * of_all) is is_wider
        assert found.intervals[0].high <= found.interval.high, "none ends after all"
        assert found.intervals[0].low <= sets[0].transfer_seconds[0] <= found.intervals[0].high


def test_a_transfer_that_waits_counts_from_its_turn() -> None:
    demands = [Demand(100, 100.0, 0.1, queue="one", gap=0.2) for _ in range(3)]
    found = fill(demands)
    assert found.waited == pytest.approx((0.0, 1.1, 2.4))
    assert found.own_seconds == pytest.approx((1.1, 1.3, 1.3))


# What-if.


def test_a_faster_link_makes_single_transfers_faster_and_no_shared_limit() -> None:
    model = fitted(together(90e9, up(0), down(0)))
    faster = with_capacity(model, "PCIe to gpu:*", 60e9)
    assert faster.predicted(workload(up(1))).span == pytest.approx(
        LATENCY + 64 * MIB / 60e9, rel=1e-3
    )
    assert faster.predicted(workload(down(1))).span == pytest.approx(seconds(64 * MIB), rel=1e-3)
    both = faster.predicted(workload(up(0), down(0)))
    assert both.limits[1] == "PCIe of gpu:0, both directions"


def test_a_slower_device_is_one_device() -> None:
    slower = with_capacity(fitted(), "PCIe to gpu:3", 25e9)
    assert slower.predicted(workload(up(3))).span == pytest.approx(
        LATENCY + 64 * MIB / 25e9, rel=1e-3
    )
    assert slower.predicted(workload(up(2))).span == pytest.approx(seconds(64 * MIB), rel=1e-3)


def peak(model: CapacityModel, path: str) -> Bound:
    """The bound of the path on the machine of the model."""
    shown = bound(model.machine, workload(path))
    assert shown is not None
    return shown


def test_copies_reach_the_same_share_of_the_bound_of_a_changed_link() -> None:
    before = fitted()
    share = RATE / peak(before, up(1)).bytes_per_second
    for rate in (60e9, 20e9):
        after = peak(with_capacity(before, "PCIe to gpu:*", rate), up(1))
        assert rate / after.bytes_per_second == pytest.approx(share, rel=1e-2)
        assert after.made_of.startswith(f"assumed: {after.bytes_per_second / 1e9:.1f} GB/s")
    again = with_capacity(with_capacity(before, "PCIe to gpu:*", 20e9), "PCIe to gpu:*", 60e9)
    assert peak(again, up(1)) == peak(with_capacity(before, "PCIe to gpu:*", 60e9), up(1))
    assert peak(again, down(1)) == peak(before, down(1))


def test_the_bound_of_one_changed_device_is_its_own() -> None:
    before = fitted()
    changed = with_capacity(with_capacity(before, "PCIe to gpu:*", 60e9), "PCIe to gpu:3", 20e9)
    assert peak(changed, up(3)).bytes_per_second < peak(before, up(3)).bytes_per_second
    assert peak(changed, up(2)).bytes_per_second > peak(before, up(2)).bytes_per_second


def test_another_latency_moves_all_times() -> None:
    quick = with_latency(fitted(), up(0), 1e-6)
    change = quick.predicted(workload(up(0))).span - fitted().predicted(workload(up(0))).span
    assert change == pytest.approx(1e-6 - seconds(1024), rel=1e-3)


def test_more_gpus_are_like_the_measured_ones() -> None:
    model = with_gpus(fitted(together(80e9, up(0), down(0))), 8)
    assert len(model.machine.gpus) == 8
    last = model.predicted(workload(up(7), down(7)))
    assert last.span == pytest.approx(LATENCY + 128 * MIB / 80e9, rel=1e-3)
    assert not model.predicted(workload(*(up(gpu) for gpu in range(8)))).is_known


def test_fewer_gpus_keep_what_the_others_showed() -> None:
    one = with_gpus(fitted(together(80e9, up(0), down(0))), 1)
    assert one.predicted(workload(up(0), down(0))).is_known
    with pytest.raises(ModelError, match="was not measured alone"):
        one.predicted(workload("pageable@numa:0 -> device@gpu:0 by copy-engine"))


# Questions that have no answer: one clear line.


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("inf"), float("nan")])
def test_absurd_capacities_are_errors(capacity: float) -> None:
    with pytest.raises(ModelError, match="cannot have a capacity") as error:
        with_capacity(fitted(), "PCIe to gpu:*", capacity)
    assert "\n" not in str(error.value)


def test_a_capacity_of_nothing_names_what_there_is() -> None:
    with pytest.raises(ModelError, match=r"no resource of this machine is 'PCI'.*PCIe to gpu:\*"):
        with_capacity(fitted(), "PCI", 1e9)


@pytest.mark.parametrize("count", [0, -1, 10**9])
def test_absurd_numbers_of_gpus_are_errors(count: int) -> None:
    with pytest.raises(ModelError, match="GPUs is not possible"):
        with_gpus(fitted(), count)


def test_direct_links_to_further_gpus_are_not_known() -> None:
    mesh = fit_capacities(Model(count=4, wiring="mesh").machine, singles(), [])
    with pytest.raises(ModelError, match="linked directly"):
        with_gpus(mesh, 8)


def test_a_latency_of_no_transfer_is_an_error() -> None:
    with pytest.raises(ModelError, match="no measured transfer"):
        with_latency(fitted(), "nothing", 1e-6)
    with pytest.raises(ModelError, match="not possible"):
        with_latency(fitted(), up(0), -1.0)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (Workload(), "none is named"),
        (workload(up(0), size=0), "without a size"),
        (Workload(workload(up(0), up(1)).transfers, shared=True), "one shared buffer"),
        (Workload(workload(up(0)).transfers, cache="flushed"), "flushed"),
        (workload("pageable@numa:0 -> device@gpu:0 by cpu"), "was not measured alone"),
        (workload(up(17)), "was not measured alone"),
    ],
)
def test_workloads_without_an_answer_are_one_clear_line(what: Workload, reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as error:
        fitted().predicted(what)
    assert "\n" not in str(error.value)


def test_a_kept_model_with_a_capacity_of_zero_is_an_error() -> None:
    model = fitted()
    broken = msgspec.structs.replace(
        model, capacities=(Capacity("PCIe to gpu:*", HOST, 0.0, None, "sets"),)
    )
    with pytest.raises(ModelError, match="the capacity of PCIe to gpu:0 is 0 B/s"):
        broken.predicted(workload(up(0)))


# Single transfers.


def test_a_curve_is_lines_between_sizes_and_the_last_line_beyond() -> None:
    curve = SampledCurve((10, 20, 40), (1.0, 2.0, 3.0))
    assert [curve.seconds(n) for n in (1, 10, 15, 40, 60)] == [1.0, 1.0, 1.5, 3.0, 4.0]


def test_a_transfer_with_few_sizes_has_the_shape_of_its_class() -> None:
    long = SampledCurve(SIZES, tuple(map(seconds, SIZES)))
    short = SampledCurve((64 * MIB,), (1.1 * seconds(64 * MIB),))
    known = AloneCurves({up(0): long, up(1): short}, MACHINE)
    far = known.of(Transfer.parse(f"{up(1)} of {256 * MIB}"))
    assert far is not None
    assert far.seconds == pytest.approx(1.1 * seconds(256 * MIB))
    assert far.latency == pytest.approx(1.1 * LATENCY, rel=0.05)
    unmeasured = known.of(Transfer.parse(f"{up(2)} of {MIB}"))
    assert unmeasured is not None
    assert unmeasured.seconds == pytest.approx(seconds(MIB))
    assert known.of(Transfer.parse(f"{down(0)} of {MIB}")) is None


# Planted and recorded machines.


def test_planted_capacities_are_found_and_false_groups_are_not() -> None:
    score = CapacityScore()
    for seed in range(3):
        score.add(planted_capacities(seed, recorded()))
    assert score.planted > 5
    assert score.found >= 0.9 * score.planted
    assert score.exact_groups == score.machines
    assert score.false_groups == 0
    errors = sorted(map(abs, score.errors))
    assert errors[int(0.95 * len(errors))] < 0.03


def test_capacities_of_four_h200s_explain_all_their_sets(tmp_path: Path) -> None:
    """Ten sets of two executors are fitted, and the others predicted."""
    kept = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
    with Profile.open(unpacked(kept, tmp_path / "four.wwp")) as profile:
        alone, sets = timed(SeriesFrame.read(profile))
        machine = profile.machine
    usual = [
        each
        for each in sets
        if {m.kind for t in each.workload.transfers for m in t.path.ends} <= {"pinned", "device"}
    ]
    first = ("one-to-all", "all-to-host", "host-and-all", up(0), between(0, 1))
    calibrating = [
        each
        for each in usual
        if each.workload.transfers[0].bytes == 64 * MIB
        and (name_of(each.workload).startswith(first) or _is_duplex_of_first(each.workload))
    ]
    model = fit_capacities(machine, alone, calibrating)
    assert len(calibrating) == 10
    errors = sorted(
        abs(model.predicted(each.workload).span / each.span - 1)
        for each in usual
        if each not in calibrating
    )
    assert len(errors) == 42
    assert errors[len(errors) // 2] < 0.01
    assert errors[-1] < 0.06


def _is_duplex_of_first(workload: Workload) -> bool:
    places = {str(place) for place in workload.places}
    is_first = places in ({"numa:0", "gpu:0"}, {"gpu:0", "gpu:1"})
    return len(workload.transfers) == 2 and is_first
