from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import profiles
from waywiser.profile.estimate import Estimate, estimate
from waywiser.stats.order import median
from waywiser.words.records import SUMMARY, Failure, Samples, Series, Visit


def estimated(series: Series) -> Estimate:
    found = estimate(series)
    assert found is not None
    return found


def with_visit(series: Series, visit: Visit) -> Series:
    return Series(series.workload, (*series.visits, visit))


def test_one_block_speaks_for_itself() -> None:
    found = estimated(profiles.series(medians=[1e-3]))
    (block,) = found.blocks
    assert (found.median, found.interval) == (block.median, block.interval)
    assert found.kind == "within process"
    assert found.converged and found.stop == "converged"


def test_a_process_that_is_an_outlier_moves_no_figure_and_stays_among_the_blocks() -> None:
    quiet = [1.0, 1.001, 1.002, 0.999, 1.003, 0.998, 1.0005]
    found = estimated(profiles.series(medians=[*quiet, 2.2]))
    alone = estimated(profiles.series(medians=quiet))
    assert len(found.blocks) == 8 and found.outliers == (7,)
    assert found.used == alone.blocks
    assert (found.median, found.host_median) == (alone.median, alone.host_median)
    for own, others in (
        (found.interval, alone.interval),
        (found.host_interval, alone.host_interval),
    ):
        assert own is not None and others is not None
        assert own.low == others.low
        assert own.high == pytest.approx(others.high + others.width / 8)
    (flag,) = (flag for flag in found.quality_flags if flag.kind == "outlier process")
    assert flag.what == "1 of 8 processes not used (block 7), up to +120% in time"


@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
def test_few_blocks_take_the_hull_of_their_intervals(blocks: int) -> None:
    medians = [1e-3 * (1 + 0.05 * block) for block in range(blocks)]
    found = estimated(profiles.series(medians=medians))
    intervals = [block.interval for block in found.blocks if block.interval]
    assert found.kind == "within process"
    assert found.interval is not None and len(intervals) == blocks
    assert found.interval.low == min(interval.low for interval in intervals)
    assert found.interval.high == max(interval.high for interval in intervals)
    assert found.median == median([block.median for block in found.blocks])


def test_six_blocks_give_an_interval_between_processes() -> None:
    found = estimated(profiles.series(medians=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]))
    assert found.kind == "between processes"
    medians = sorted(block.median for block in found.blocks)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (medians[0], medians[-1])


def test_ten_blocks_leave_the_extremes_out() -> None:
    found = estimated(profiles.series(medians=[1.0 + n / 10 for n in range(10)]))
    medians = sorted(block.median for block in found.blocks)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (medians[1], medians[-2])


def test_a_block_without_an_interval_leaves_the_series_without() -> None:
    short = profiles.samples(random.Random(1), 1e-3, count=5)
    series = profiles.series(medians=[1e-3])
    found = estimated(with_visit(series, profiles.visit(series.workload, 1, short)))
    assert found.interval is None and found.relative is None
    assert found.rate is not None and found.rate.interval is None


def test_no_counted_sample_is_no_estimate() -> None:
    gone = profiles.visit(profiles.workload(profiles.H2D, 8), failure=Failure("crash", "SIGSEGV"))
    assert estimate(Series(gone.workload, (gone,))) is None
    assert estimate(Series(gone.workload, ())) is None


def test_the_worst_block_shows_why_sampling_stopped() -> None:
    series = profiles.series(medians=[1e-3])
    late = profiles.samples(random.Random(1), 1e-3)
    found = estimated(with_visit(series, profiles.visit(series.workload, 1, late, stop="budget")))
    assert found.stop == "budget" and not found.converged
    gone = profiles.visit(series.workload, 2, failure=Failure("timeout", "no answer"))
    assert estimated(with_visit(series, gone)).stop == "failed"


def test_six_blocks_converge_where_they_agree_though_each_ran_out_of_budget() -> None:
    rng = random.Random(1)
    what = profiles.workload(profiles.H2D, 2**20)

    def blocks(step: float) -> Series:
        visits = (
            profiles.visit(what, n, profiles.samples(rng, 1 + step * n), stop="budget")
            for n in range(6)
        )
        return Series(what, tuple(visits))

    assert estimated(blocks(0.001)).converged
    assert not estimated(blocks(0.1)).converged


def test_rate_is_bytes_over_median_time() -> None:
    found = estimated(profiles.series(profiles.H2D, 10**9, medians=[0.02]))
    assert found.rate is not None and found.rate.interval is not None
    assert found.interval is not None
    assert found.rate.value == 10**9 / found.median
    assert found.rate.interval.low == 10**9 / found.interval.high


def test_a_workload_of_several_transfers_counts_all_their_bytes() -> None:
    found = estimated(profiles.series(f"{profiles.H2D}; {profiles.D2H}", 10**9, medians=[0.02]))
    assert found.rate is not None
    assert found.rate.value == 2 * 10**9 / found.median


def test_an_operation_has_no_rate() -> None:
    empty = next(v for v in profiles.visits() if v.workload.operation is not None)
    assert estimated(Series(empty.workload, (empty,))).rate is None


@given(
    st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_the_order_of_blocks_does_not_matter(medians: list[float], rng: random.Random) -> None:
    series = profiles.series(medians=medians, count=8)
    shuffled = list(series.visits)
    rng.shuffle(shuffled)
    plain, other = estimated(series), estimated(Series(series.workload, tuple(shuffled)))
    assert (plain.median, plain.interval) == (other.median, other.interval)
    assert (plain.rate, plain.kind, plain.converged) == (other.rate, other.kind, other.converged)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=9))
def test_the_median_lies_in_its_interval(medians: list[float]) -> None:
    found = estimated(profiles.series(medians=medians, count=12))
    assert found.interval is not None
    assert found.interval.low <= found.median <= found.interval.high
    assert found.relative is not None and found.relative >= 0


def test_six_processes_cover_the_median_of_all_processes() -> None:
    rng = random.Random(20261120)
    rounds, hits = 250, 0
    for seed in range(rounds):
        medians = [rng.lognormvariate(0.0, 0.05) for _ in range(6)]
        found = estimated(profiles.series(medians=medians, seed=seed, count=6, noise=0.001))
        assert found.interval is not None
        hits += found.interval.low <= 1.0 <= found.interval.high
    assert hits / rounds >= 0.94  # exact: 96.9 %


def test_summaries_give_no_interval_between_processes_either() -> None:
    one = Samples(span=(1e-3,), repetitions=(1,), flags=(SUMMARY,))
    what = profiles.workload(profiles.H2D, 2**20)
    found = estimated(Series(what, tuple(profiles.visit(what, n, one) for n in range(8))))
    assert found.summary and found.count == 8
    assert (found.median, found.interval) == (1e-3, None)
    assert found.rate is not None and found.rate.interval is None


def timed(spans: list[float], hosts: list[float]) -> Estimate:
    samples = Samples(span=tuple(spans), host=tuple(hosts))
    return estimated(Series(profiles.WHAT, (profiles.visit(profiles.WHAT, 0, samples),)))


TIMES = st.lists(st.floats(1e-6, 1e-3), min_size=1, max_size=30)


@given(TIMES, st.data())
def test_the_application_never_sees_less_than_the_transfer(
    spans: list[float], data: st.DataObject
) -> None:
    count = len(spans)
    hosts = data.draw(st.lists(st.floats(1e-6, 1e-3), min_size=count, max_size=count))
    found = timed(spans, hosts)
    if found.host_median is None:
        assert found.host_interval is None and median(hosts) < found.median
        return
    assert found.host_median >= found.median
    if found.host_interval is not None:
        assert found.host_interval.low <= found.host_median <= found.host_interval.high


def test_shorter_executions_say_nothing_of_what_the_application_sees() -> None:
    """A prefetch of pages that are there already takes 17.5 µs, one that moves them 50 µs."""
    spans = [50e-6 + n * 1e-8 for n in range(20)]
    found = timed(spans, [17.5e-6 + n * 1e-8 for n in range(20)])
    assert (found.host_median, found.host_interval) == (None, None)
    close = timed(spans, [span - 1e-8 for span in spans])
    assert close.host_median == close.median
