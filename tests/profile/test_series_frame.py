"""A frame says of all visits at once what each visit's samples say alone."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import profiles
from plain_statistics import blocks_of
from waywiser.curves.curve import points_of
from waywiser.profile import Profile
from waywiser.profile.block import OF_MEDIAN
from waywiser.profile.estimate import estimate
from waywiser.profile.series_frame import SeriesFrame
from waywiser.profile.writable import write_profile
from waywiser.words import TimingMode, Workload
from waywiser.words.records import BELOW_RESOLUTION, SUMMARY, VOID, Samples, Visit

TWO = Workload.parse(f"{profiles.H2D} of 1MiB; {profiles.D2H} of 1MiB")


def stored(path: Path, visits: list[Visit]) -> Path:
    write_profile(path, profiles.machine(), {}, visits)
    return path


def frame_of(path: Path) -> SeriesFrame:
    with Profile.open(path) as profile:
        return SeriesFrame.read(profile)


def require_equal(path: Path) -> None:
    """The statistics of each visit are those of its samples alone, to the bit."""
    with Profile.open(path) as profile:
        series = profile.series()
        frame = SeriesFrame.read(profile)
    found = list(frame.series_blocks())
    assert [each.series.workload for each in found] == [each.workload for each in series]
    in_memory = SeriesFrame.of(series).series_blocks()
    for known, same, one in zip(found, in_memory, series, strict=True):
        assert list(known.taken) == list(same.taken) == [len(v.samples) for v in one.visits]
        assert list(known.blocks) == list(same.blocks) == blocks_of(one)
        assert known.series == same.series
        assert not any(len(visit.samples) for visit in known.series.visits)
    for short, one in zip(points_of(frame), series, strict=True):
        blocks = [block for block in blocks_of(one) if block]
        blocks = [block for block in blocks if block.median > 0]
        assert [block.median for block in short.blocks] == [block.median for block in blocks]
        assert [block.count for block in short.blocks] == [block.count for block in blocks]
        of_intervals = [block.deviation if block.interval else None for block in blocks]
        known = [block.standard_error if block.has_interval else None for block in short.blocks]
        assert known == of_intervals
        assert short.failures == tuple(visit.failure for visit in one.visits if visit.failure)
        assert (short.text, short.curve) == (str(one.workload), one.workload.curve)


def test_the_slowdowns_of_a_set_with_a_collective(tmp_path: Path) -> None:
    work = Workload.parse(
        "device@gpu:0-1 -> device@gpu:0-1 by nccl[collective=allreduce] of 1MiB; "
        f"{profiles.D2H} of 1MiB"
    )
    rng = random.Random(1)

    def visit(block: int, count: int) -> Visit:
        taken = profiles.samples(rng, 1e-3, count, transfers=2)
        alone = tuple((rng.uniform(1e-3, 2e-3), rng.uniform(1e-3, 2e-3)) for _ in range(count))
        return profiles.visit(work, block, msgspec.structs.replace(taken, alone=alone), mode="host")

    path = stored(tmp_path / "a.wwp", [visit(block, count) for block, count in enumerate((9, 3))])
    require_equal(path)
    with Profile.open(path) as profile:
        (series,) = profile.series()
    assert [len(each.samples.alone) for each in series.visits] == [9, 3]
    found = estimate(series)
    assert found is not None and found.rate is None
    assert [each.interval for each in found.slowdowns] == [None, None], "the second has too few"
    assert all(1 / 3 < each.median < 3 for each in found.slowdowns)


def test_the_statistics_of_a_survey(tmp_path: Path) -> None:
    require_equal(profiles.write(tmp_path / "a.wwp", blocks=3))


times = st.one_of(
    st.floats(1e-7, 1e-2), st.integers(1, 40).map(lambda n: n * 32e-9), st.just(0.0),
    st.floats(-1e-6, 0.0),
)  # fmt: skip
flags = st.sampled_from((0, 0, 0, 0, VOID, BELOW_RESOLUTION, SUMMARY))


@st.composite
def any_visits(draw: st.DrawFn) -> list[Visit]:
    visits = []
    for block in range(draw(st.integers(1, 5))):
        count = draw(st.integers(0, 30))
        what = draw(st.sampled_from((profiles.WHAT, TWO)))

        def column(values: st.SearchStrategy[float], of: int = count) -> tuple[float, ...]:
            return tuple(draw(st.lists(values, min_size=of, max_size=of)))

        batch = st.just(draw(st.integers(1, 4))) if draw(st.booleans()) else st.integers(1, 40)
        width = draw(st.integers(0, 2))
        parts = [column(times) for _ in range(width)]
        taken = Samples(
            span=column(times),
            host=column(st.one_of(times, st.just(math.nan))) if draw(st.booleans()) else (),
            repetitions=column(batch) if draw(st.booleans()) else (),  # type: ignore[arg-type]
            flags=column(flags) if draw(st.booleans()) else (),  # type: ignore[arg-type]
            transfers=tuple(zip(*parts, strict=True)),
        )
        mode: TimingMode = draw(st.sampled_from(("device", "host")))
        visit = profiles.visit(what, block, taken, mode=mode)
        visits.append(msgspec.structs.replace(visit, sampling_seconds=0.0, elapsed_seconds=0.0))
    return visits


@settings(max_examples=60)
@given(visits=any_visits())
def test_the_statistics_of_any_visits(
    tmp_path_factory: pytest.TempPathFactory, visits: list[Visit]
) -> None:
    require_equal(stored(tmp_path_factory.mktemp("any") / "a.wwp", visits))


def test_few_samples_have_a_spread_instead_of_an_interval(tmp_path: Path) -> None:
    few = profiles.visit(profiles.WHAT, 0, Samples(span=(1.0, 2.0, 3.0)))
    one = profiles.visit(profiles.WHAT, 1, Samples(span=(1.0,)))
    foreign = profiles.visit(profiles.WHAT, 2, Samples(span=(1.0, 2.0), flags=(SUMMARY, SUMMARY)))
    (short,) = points_of(frame_of(stored(tmp_path / "a.wwp", [few, one, foreign])))
    errors = [block.standard_error for block in short.blocks]
    assert errors == [pytest.approx(OF_MEDIAN * 0.5 / 3**0.5), 0.0, 0.0]
    assert not any(block.has_interval for block in short.blocks)


def test_arrays_have_an_entry_per_visit_and_per_sample(tmp_path: Path) -> None:
    frame = frame_of(profiles.write(tmp_path / "a.wwp"))
    taken = [visit.samples for visit in frame.visits]
    assert frame.taken.tolist() == taken
    assert len(frame.span) == len(frame.host) == sum(taken)


def test_a_profile_without_samples_has_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.wwp"
    profiles.new(path).close()
    empty = frame_of(path)
    assert not empty.summaries() and not list(empty.series_blocks())
    failed = [v for v in profiles.visits() if v.failure][:2]
    frame = frame_of(stored(tmp_path / "b.wwp", failed))
    assert [each.blocks for each in points_of(frame)] == [()] * len(frame.series)
    assert all(block is None for each in frame.series_blocks() for block in each.blocks)


def test_only_some_series(tmp_path: Path) -> None:
    frame = frame_of(profiles.write(tmp_path / "a.wwp"))
    some = frame.only(lambda workload: workload.bytes == 2**20)
    assert points_of(some) == [each for each in points_of(frame) if each.bytes == 2**20]
